// SPDX-License-Identifier: Apache-2.0
//! Pages with commands, followed word by word.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use weir_stage::apart::{self, PREPARED};

/// Seconds that all of a guide never takes. On a machine with four times as much to do it was three minutes.
const PATIENCE: &str = "900";

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
