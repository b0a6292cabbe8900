// SPDX-License-Identifier: Apache-2.0
//! Pages with commands, followed word by word.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use weir_stage::apart::{self, PREPARED};

use crate::needs::{self, ENVOY, FILTER, PROGRAMS};

/// Seconds that all of a guide never takes. On a machine with four times as much to do it was three minutes.
const PATIENCE: &str = "900";

/// New folders in a folder.
pub(crate) fn folders<const N: usize>(within: &TempDir, names: [&str; N]) -> [PathBuf; N] {
    names.map(|name| {
        let made = within.path().join(name);
        fs::create_dir(&made).unwrap();
        made
    })
}

/// A program that runs another.
pub(crate) fn wrap(file: &Path, command: &str) {
    fs::write(file, format!("#!/bin/sh\nexec {command} \"$@\"\n")).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What a page finds in the root of a clone in which everything is built, these programs among it.
pub(crate) fn clone(folder: &Path, script: &str, programs: &[&str]) {
    for name in programs {
        let file = format!("target/debug/{name}");
        assert!(script.contains(&file), "{file}");
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        symlink(PROGRAMS.path().join(name), file).unwrap();
    }
    symlink(FILTER.path(), folder.join("target/weir_filter.wasm")).unwrap();
    let configurations = needs::root().join("envoy-config");
    symlink(configurations, folder.join("envoy-config")).unwrap();
    let mut words = script.split_whitespace();
    let envoy = folder.join(words.find(|word| word.ends_with("/envoy")).unwrap());
    fs::create_dir_all(envoy.parent().unwrap()).unwrap();
    // How soon its threads hear of each other depends on how much else this machine has to do.
    let alone = format!("{} --concurrency 1", ENVOY.path().display());
    wrap(&envoy, &alone);
}

/// The blocks for a shell in a section of a page, one after another.
pub(crate) fn blocks(page: &str, section: &str) -> String {
    let heading = format!("\n## {section}\n");
    let (_, text) = page.split_once(&heading).unwrap();
    let text = text.split("\n## ").next().unwrap();
    let blocks = text.split("```sh\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap())
        .collect()
}

/// What a script says that is played in this folder, with these programs on its path: in a network of its own, so that
/// its ports are free, and nothing of it is left.
#[track_caller]
pub(crate) fn play(script: &str, folder: &Path, programs: &Path) -> String {
    let file = programs.join("guide.sh");
    fs::write(&file, format!("{PREPARED}{script}")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = apart::command(PATIENCE)
        .args(["bash", "-e"])
        .arg(&file)
        .env("PATH", format!("{}:{path}", programs.display()))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    let all = format!("{said}\n{complaints}");
    assert!(output.status.success(), "{}\n{all}", output.status);
    all
}
