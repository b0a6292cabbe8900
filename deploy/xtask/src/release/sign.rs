// SPDX-License-Identifier: Apache-2.0
//! A signature by `ssh-keygen`, which is wherever Git is.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use weir_stage::command::Run;

/// What the signature is good for: one of another namespace does not verify.
const NAMESPACE: &str = "weir-release";

/// Writes it beside the file, with `.sig` after its name.
pub(super) fn sign(file: &Path, key: &Path) -> Result<()> {
    Command::new("ssh-keygen")
        .args(["-Y", "sign", "-n", NAMESPACE, "-f"])
        .args([key, file])
        .captured()
        .with_context(|| format!("signing {}", file.display()))
        .map(drop)
}
