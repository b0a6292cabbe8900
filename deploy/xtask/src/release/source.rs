// SPDX-License-Identifier: Apache-2.0
//! What a release is made from, as Git tells it.

use std::env;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use weir_stage::command::Run;

use super::VERSION;
use crate::workspace::Workspace;

pub(super) struct Source {
    pub(super) commit: String,
    /// The checkout is not as it was committed.
    pub(super) is_changed: bool,
    /// Of every packed file, in seconds since 1970: SOURCE_DATE_EPOCH, or when it was committed.
    pub(super) time: u64,
}

impl Source {
    pub(super) fn of(workspace: &Workspace) -> Result<Self> {
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.current_dir(&workspace.root).args(arguments);
            command.captured()
        };
        fits(&git(&["tag", "--points-at", "HEAD"])?)?;
        let time = match env::var("SOURCE_DATE_EPOCH") {
            Ok(time) => time,
            Err(_) => git(&["log", "-1", "--format=%ct"])?,
        };
        Ok(Self {
            commit: git(&["rev-parse", "HEAD"])?.trim().to_owned(),
            is_changed: !git(&["status", "--porcelain"])?.is_empty(),
            time: time.trim().parse().context("SOURCE_DATE_EPOCH")?,
        })
    }
}

/// Whether one of the commit's tags is this version's, if it has any of a version.
fn fits(tags: &str) -> Result<()> {
    let is_version = |tag: &&str| tag.starts_with('v') && tag[1..].starts_with(char::is_numeric);
    let versions: Vec<&str> = tags.lines().filter(is_version).collect();
    let own = format!("v{VERSION}");
    ensure!(
        versions.is_empty() || versions.contains(&&*own),
        "the tag is {}, and the version in Cargo.toml is {VERSION}",
        versions.join(", ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_of_another_version_is_refused() {
        fits("").unwrap();
        fits("vacation\nnightly\n").unwrap();
        fits(&format!("v0.0.0\nv{VERSION}\n")).unwrap();
        let error = fits("v0.0.0\n").unwrap_err().to_string();
        assert!(error.contains("the tag is v0.0.0"), "{error}");
    }
}
