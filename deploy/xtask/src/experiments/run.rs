// SPDX-License-Identifier: Apache-2.0
//! Cells, as many at a time as the machine has cores.

use std::sync::Mutex;

use anyhow::{Result, bail};

use crate::experiments::cell::Cell;
use crate::experiments::progress::Progress;
use crate::experiments::store::Store;

/// Simulates what has no file yet. A cell that fails does not stop the others; all that failed are
/// told at the end.
pub(super) fn all(store: &Store, cells: &[Cell], jobs: usize) -> Result<()> {
    let missing: Vec<&Cell> = cells.iter().filter(|cell| !store.has(cell)).collect();
    let progress = Mutex::new(Progress::start(cells.len(), missing.len()));
    let next = Mutex::new(missing.into_iter());
    let failed = Mutex::new(Vec::new());
    let take = || {
        next.lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .next()
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some(cell) = take() {
                    if let Err(error) = store.simulate(cell) {
                        let mut failed = failed
                            .lock()
                            .unwrap_or_else(|poisoned| poisoned.into_inner());
                        failed.push(format!("{}: {error:#}", cell.name()));
                    }
                    let mut progress = progress
                        .lock()
                        .unwrap_or_else(|poisoned| poisoned.into_inner());
                    progress.ended();
                }
            });
        }
    });
    let failed = failed
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(first) = failed.first() {
        bail!("{} cells failed; the first: {first}", failed.len());
    }
    Ok(())
}
