// SPDX-License-Identifier: Apache-2.0
//! The programs of hosts behind Weir, and their versions.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use weir_stage::command::Run;

/// By absolute path.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = crate::driver::GIVEN)]
#[group(skip)]
pub struct Programs {
    /// Envoy
    #[arg(long, value_name = "FILE")]
    pub envoy: PathBuf,
    /// The filter, as wasm
    #[arg(long, value_name = "FILE")]
    pub filter: PathBuf,
    /// weir-control
    #[arg(long, value_name = "FILE")]
    pub control: PathBuf,
    /// weir-worker
    #[arg(long, value_name = "FILE")]
    pub worker: PathBuf,
}

impl Programs {
    /// The versions of Weir and Envoy, by name.
    ///
    /// # Errors
    /// Envoy does not tell its own.
    pub fn versions(&self) -> Result<Vec<(String, String)>> {
        let envoy = Command::new(&self.envoy).arg("--version").captured()?;
        let envoy = envoy_version(&envoy).context("`envoy --version` names no version")?;
        let mut weir = env!("CARGO_PKG_VERSION").to_owned();
        // Sources without their history have no commit to tell.
        let mut git = Command::new("git");
        git.args(["describe", "--always", "--dirty", "--abbrev=10"]);
        if let Ok(commit) = git.captured() {
            weir += &format!(", commit {}", commit.trim());
        }
        let named = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        Ok(vec![named("Weir", &weir), named("Envoy", envoy)])
    }
}

/// `envoy  version: <commit>/1.40.0/Clean/RELEASE/BoringSSL`.
fn envoy_version(said: &str) -> Option<&str> {
    said.split("version:").nth(1)?.split('/').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envoy_tells_its_version_among_other_things() {
        let said = "\nenvoy  version: 8b2d/1.40.0/Clean/RELEASE/BoringSSL\n";
        assert_eq!(envoy_version(said), Some("1.40.0"));
        assert_eq!(envoy_version("envoy"), None);
    }
}
