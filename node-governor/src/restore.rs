// SPDX-License-Identifier: Apache-2.0
//! Puts back what a governor has left that was killed: who had which cores, what was frozen, what jobs may send, their
//! part of caches and memory, and frequencies.

use std::path::Path;

use crate::apply::{self, network, resctrl, shares};
use crate::root::Root;
use crate::state::{self, Held};

/// What could not be put back, each with its name and reason, and is remembered still; nothing where all was, or
/// none was killed. Creates nothing: where no governor has been is an error, as is where one runs.
pub fn restore(root: &Root, folder: &Path) -> Result<Vec<String>, state::Error> {
    Ok(of(root, &Held::left(folder, root)?))
}

/// The same for who holds the directory.
pub(crate) fn of(root: &Root, held: &Held) -> Vec<String> {
    // Each whatever became of the others.
    let mut left = told(shares::restore(root, held));
    left.extend(told(network::restore(root, held)));
    left.extend(told(resctrl::restore(root, held)));
    match apply::restore(root, held) {
        Ok(errors) => left.extend(errors.iter().map(ToString::to_string)),
        Err(error) => left.push(error.to_string()),
    }
    left
}

/// What could not be put back, each with its name, or why nothing could.
fn told<E: ToString>(tried: Result<Vec<(String, std::io::Error)>, E>) -> Vec<String> {
    match tried {
        Ok(errors) => errors
            .into_iter()
            .map(|(name, error)| format!("{name}: {error}"))
            .collect(),
        Err(error) => vec![error.to_string()],
    }
}
