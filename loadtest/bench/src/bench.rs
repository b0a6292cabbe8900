// SPDX-License-Identifier: Apache-2.0
//! What every part is given.

use std::path::PathBuf;

use crate::programs::Programs;

/// What every part is given.
pub(crate) struct Bench {
    pub(crate) programs: Programs,
    pub(crate) folder: PathBuf,
    pub(crate) quick: bool,
}
