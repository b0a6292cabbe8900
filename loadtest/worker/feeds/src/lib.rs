// SPDX-License-Identifier: Apache-2.0
//! The item store, and a generator of projects.
