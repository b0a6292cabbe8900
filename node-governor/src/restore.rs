// SPDX-License-Identifier: Apache-2.0
//! Puts back what a governor has left that was killed: who had which cores, what was frozen, and frequencies.

use std::path::Path;

use crate::apply;
use crate::root::Root;
use crate::state::{self, Held};

/// What could not be put back, and is remembered still; nothing where all was, or none was killed. Creates
/// nothing: where no governor has been is an error, as is where one runs.
pub fn restore(root: &Root, folder: &Path) -> Result<Vec<apply::Error>, state::Error> {
    let held = Held::left(folder, root)?;
    apply::restore(root, &held)
}
