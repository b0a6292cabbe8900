// SPDX-License-Identifier: Apache-2.0
//! What the demonstration runs.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use weir_stage::command::Run;

use crate::workspace::Workspace;
use crate::{build_filter, feeds, tools};

/// By absolute path.
pub(crate) struct Programs {
    pub(crate) envoy: PathBuf,
    pub(crate) filter: PathBuf,
    pub(crate) control: PathBuf,
    pub(crate) worker: PathBuf,
    pub(crate) replay: PathBuf,
    pub(crate) feeds: PathBuf,
}

impl Programs {
    /// Installs and builds what is missing.
    pub(crate) fn build(workspace: &Workspace, command: &str) -> Result<Self> {
        let packages = ["weir-control", "weir-worker", "weir-replay", feeds::PACKAGE];
        Self::beside_envoy(workspace, || {
            println!("{command}: building {}", packages.join(", "));
            workspace.build(&packages, false)
        })
    }

    /// The same for a taste: in half the time of a release, and slower than one. Emulated hosts sleep and need no
    /// feeds, so it is the sidecars and weir-control that take more of the machine.
    pub(crate) fn quick(workspace: &Workspace, command: &str) -> Result<Self> {
        let packages = ["weir-control", "weir-worker", "weir-replay"];
        Self::beside_envoy(workspace, || {
            println!(
                "{command}: building {} for development",
                packages.join(", ")
            );
            workspace.build(&packages, true)
        })
    }

    /// The same as tests use them: built for development.
    pub(crate) fn debug(workspace: &Workspace) -> Result<Self> {
        Self::beside_envoy(workspace, || {
            workspace.build_programs()?;
            Ok(workspace.target.join("debug"))
        })
    }

    /// Envoy and the filter, and those that are built into one folder.
    fn beside_envoy(
        workspace: &Workspace,
        build: impl FnOnce() -> Result<PathBuf>,
    ) -> Result<Self> {
        let envoy = tools::install(workspace)?.envoy;
        let filter = build_filter::run(workspace)?;
        let folder = build()?;
        Ok(Self {
            envoy,
            filter,
            control: folder.join("weir-control"),
            worker: folder.join("weir-worker"),
            replay: folder.join("weir-replay"),
            feeds: folder.join(feeds::PACKAGE),
        })
    }

    /// What ran, for the report.
    pub(crate) fn versions(&self, workspace: &Workspace) -> Result<Vec<(String, String)>> {
        let envoy = Command::new(&self.envoy).arg("--version").captured()?;
        let envoy = envoy_version(&envoy).context("`envoy --version` names no version")?;
        let mut weir = env!("CARGO_PKG_VERSION").to_owned();
        // Who has the sources without their history has no commit to tell.
        let mut git = Command::new("git");
        git.args(["describe", "--always", "--dirty", "--abbrev=10"])
            .current_dir(&workspace.root);
        if let Ok(commit) = git.captured() {
            weir += &format!(", commit {}", commit.trim());
        }
        let named = |name: &str, version: String| (name.to_owned(), version);
        Ok(vec![named("Weir", weir), named("Envoy", envoy.to_owned())])
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
