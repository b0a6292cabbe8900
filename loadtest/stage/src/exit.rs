// SPDX-License-Identifier: Apache-2.0
//! How a program ends.

use std::process::ExitCode;

use anyhow::Result;

/// The exit code of what was done; an error is printed with its causes.
#[must_use]
pub fn code(done: Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
