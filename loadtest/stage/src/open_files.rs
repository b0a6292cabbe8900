// SPDX-License-Identifier: Apache-2.0
//! How many files and connections a process may have open.

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Makes room for `wanted`, in this process and in those that it starts from now on.
///
/// # Errors
/// The system allows fewer.
pub fn allow(wanted: u64) -> Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= wanted {
        return Ok(());
    }
    ensure!(
        hard >= wanted,
        "{wanted} open files are needed and {hard} allowed; raise it with `ulimit -Hn`"
    );
    setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).context("raising the limit of open files")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_system_allows_is_refused_with_what_to_do() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        if let Some(more) = hard.checked_add(1) {
            assert!(allow(more).unwrap_err().to_string().contains("ulimit -Hn"));
        }
        allow(1).unwrap();
    }
}
