// SPDX-License-Identifier: Apache-2.0
//! A network, mounts and processes of a test's own: every port is free, and nothing is left.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// What a shell does first there. Envoys of one machine meet in /dev/shm.
pub const PREPARED: &str = "mount -t tmpfs tmpfs /dev/shm\nip link set lo up\n";

/// Names the test's folder where it runs apart.
const INSIDE: &str = "WEIR_TEST_APART";

/// A command that runs what follows its arguments apart, for so many seconds at most.
#[must_use]
pub fn command(seconds: &str) -> Command {
    let mut command = Command::new("timeout");
    command
        .args([seconds, "unshare", "--user", "--map-root-user", "--net"])
        .args(["--mount", "--mount-proc", "--pid", "--fork", "--kill-child"]);
    command
}

/// The folder of a test that runs apart; none elsewhere.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    env::var_os(INSIDE).map(PathBuf::from)
}

/// Runs one test of this program, apart, with a folder that is its home too. A shell does what `script` says before.
///
/// # Errors
/// It has not passed, with what it said.
pub fn run(test: &str, seconds: &str, script: &str, folder: &Path) -> Result<()> {
    let script = format!("{PREPARED}{script}exec \"$@\"");
    let output = command(seconds)
        .args(["sh", "-ec", &script, "sh"])
        .arg(env::current_exe()?)
        .args(["--exact", test])
        .env("HOME", folder)
        .env(INSIDE, folder)
        .stdin(Stdio::null())
        .output()
        .context("starting `timeout`")?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let has_passed = output.status.success() && said.contains("1 passed");
    ensure!(has_passed, "{test} apart: {}\n{said}", output.status);
    Ok(())
}
