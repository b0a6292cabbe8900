// SPDX-License-Identifier: Apache-2.0
//! What the pages claim of whole experiments, on short runs.

mod document001;
mod orders;
