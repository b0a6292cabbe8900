// SPDX-License-Identifier: Apache-2.0
//! Ctrl-C and termination as a flag that waits look at, so that children are stopped on the way out.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on the signals only raise the flag.
///
/// # Errors
/// They are caught already.
pub fn catch() -> Result<()> {
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed)).context("catching signals")
}

/// Whether to go on.
///
/// # Errors
/// A signal has come.
pub fn check() -> Result<()> {
    ensure!(!INTERRUPTED.load(Ordering::Relaxed), "interrupted");
    Ok(())
}
