// SPDX-License-Identifier: Apache-2.0
//! Reports as one self-contained HTML file.
