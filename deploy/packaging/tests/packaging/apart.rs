// SPDX-License-Identifier: Apache-2.0
//! A network, mounts and processes of a test's own: every port is free, and nothing is left.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::needs;

/// What a shell does first there. Envoys of one machine meet in /dev/shm.
pub(crate) const PREPARED: &str = "mount -t tmpfs tmpfs /dev/shm\nip link set lo up\n";

/// Names the test's folder where it runs apart.
const INSIDE: &str = "WEIR_TEST_APART";

/// A command that runs what follows its arguments apart, for so many seconds at most.
pub(crate) fn command(seconds: &str) -> Command {
    let mut command = Command::new("timeout");
    command
        .args([seconds, "unshare", "--user", "--map-root-user", "--net"])
        .args(["--mount", "--mount-proc", "--pid", "--fork", "--kill-child"]);
    command
}

/// The folder that a test has for itself, in a run of this program apart, where these names are those of the loopback
/// address. None outside, once such a run of the test has passed.
#[track_caller]
pub(crate) fn home(test: &str, seconds: &str, names: &[&str]) -> Option<PathBuf> {
    if let Some(home) = env::var_os(INSIDE) {
        return Some(home.into());
    }
    let folder = TempDir::new().unwrap();
    let hosts = folder.path().join("hosts");
    fs::write(&hosts, format!("127.0.0.1 localhost {}\n", names.join(" "))).unwrap();
    let script = format!("{PREPARED}mount --bind \"$HOSTS\" /etc/hosts\nexec \"$@\"");
    let output = needs::succeed(
        command(seconds)
            .args(["sh", "-ec", &script, "sh"])
            .arg(env::current_exe().unwrap())
            .args(["--exact", test])
            .env("HOSTS", hosts)
            .env("HOME", folder.path())
            .env(INSIDE, folder.path()),
    );
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed"), "{said}");
    None
}
