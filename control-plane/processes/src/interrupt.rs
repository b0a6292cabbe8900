// SPDX-License-Identifier: Apache-2.0
//! Ctrl-C and termination as a flag that waits look at, so that children are stopped on the way out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static CAUGHT: Mutex<bool> = Mutex::new(false);

/// From now on the signals only raise the flag. Steps of one command may each ask for it.
///
/// # Errors
/// Somebody else catches them.
pub fn catch() -> Result<()> {
    let mut caught = CAUGHT.lock().unwrap_or_else(PoisonError::into_inner);
    if !*caught {
        ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed))
            .context("catching signals")?;
        *caught = true;
    }
    Ok(())
}

/// Whether to go on.
///
/// # Errors
/// A signal has come.
pub fn check() -> Result<()> {
    ensure!(!INTERRUPTED.load(Ordering::Relaxed), "interrupted");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_steps_of_a_command_may_both_catch() {
        catch().unwrap();
        catch().unwrap();
        check().unwrap();
    }
}
