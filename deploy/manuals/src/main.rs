// SPDX-License-Identifier: Apache-2.0
//! `weir-manuals FOLDER`: manual pages in `FOLDER/man`, completions in `FOLDER/completions`, of every program that a
//! release has. A program of its own, so that the programs that run for months need not carry what writes them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate_to};

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Fish, Shell::Zsh];

fn main() -> Result<()> {
    let folder = env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.context("usage: weir-manuals FOLDER")?;
    for (name, command) in [
        ("weir-control", weir_control::flags::Flags::command()),
        ("weir-governor", weir_governor::flags::Flags::command()),
        ("weirctl", weirctl::flags::Flags::command()),
    ] {
        write(name, command, &folder).with_context(|| format!("the manual of {name}"))?;
    }
    Ok(())
}

fn write(name: &'static str, command: Command, folder: &Path) -> Result<()> {
    let (manual, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&manual)?;
    fs::create_dir_all(&completions)?;
    for shell in SHELLS {
        generate_to(shell, &mut command.clone(), name, &completions)?;
    }
    clap_mangen::generate_to(command.name(name), &manual)?;
    Ok(())
}
