// SPDX-License-Identifier: Apache-2.0
//! The sizes of what is installed, held against the kept ones in `deploy/xtask/sizes.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::build_filter;
use crate::workspace::Workspace;

/// Of programs, another C compiler or linker shows a little.
const TOLERANCE_PERCENT: u64 = 1;
const HEAD: &str = "\
# Bytes of what is installed: of programs what is loaded, without debug sections. Held to 1 % by
# `cargo xtask test --nightly --only sizes`, renewed by `cargo xtask keep`. A change of these lines tells its reason.
";

/// Bytes by file.
type Sizes = BTreeMap<String, u64>;

/// Fails where one is not as it was kept. A release of weir-control takes minutes to build: nightly.
pub(crate) fn check(workspace: &Workspace, nightly: bool) -> Result<()> {
    let mut sizes = Sizes::from([filter(workspace)?]);
    if nightly {
        sizes.extend([control(workspace)?]);
    }
    let changes = changes(&kept(workspace)?, &sizes);
    ensure!(
        changes.is_empty(),
        "{}\nfor good reason? `cargo xtask keep` renews {}",
        changes.join("\n"),
        workspace.shown(&file(workspace))
    );
    Ok(())
}

/// Builds both and keeps their sizes; tells which changed, by however little.
pub(crate) fn keep(workspace: &Workspace) -> Result<()> {
    let sizes = Sizes::from([filter(workspace)?, control(workspace)?]);
    let kept = kept(workspace).unwrap_or_default();
    for (name, bytes) in &sizes {
        match kept.get(name) {
            Some(old) if old == bytes => {}
            Some(old) => println!("{name}: {old} -> {bytes} bytes"),
            None => println!("{name}: {bytes} bytes"),
        }
    }
    let lines = sizes
        .iter()
        .map(|(name, bytes)| format!("\"{name}\" = {bytes}\n"));
    let text: String = std::iter::once(HEAD.to_owned()).chain(lines).collect();
    let file = file(workspace);
    fs::write(&file, text).with_context(|| format!("writing {}", file.display()))
}

fn file(workspace: &Workspace) -> PathBuf {
    workspace.root.join("deploy/xtask/sizes.toml")
}

fn kept(workspace: &Workspace) -> Result<Sizes> {
    let file = file(workspace);
    let text = fs::read_to_string(&file)
        .with_context(|| format!("reading {}: `cargo xtask keep` writes it", file.display()))?;
    toml::from_str(&text).with_context(|| file.display().to_string())
}

fn filter(workspace: &Workspace) -> Result<(String, u64)> {
    let filter = build_filter::run(workspace)?;
    let bytes = fs::metadata(&filter).with_context(|| filter.display().to_string())?;
    Ok(("weir_filter.wasm".to_owned(), bytes.len()))
}

fn control(workspace: &Workspace) -> Result<(String, u64)> {
    let [control] = workspace.build_release(["weir-control"])?;
    Ok(("weir-control".to_owned(), loaded(&control)?))
}

/// One line for each that is not what it was.
fn changes(kept: &Sizes, now: &Sizes) -> Vec<String> {
    let changed = now.iter().filter_map(|(name, bytes)| {
        let Some(old) = kept.get(name) else {
            return Some(format!("{name}: {bytes} bytes, and none were kept"));
        };
        let percent = 100.0 * (*bytes as f64 / *old as f64 - 1.0);
        (100 * bytes.abs_diff(*old) > TOLERANCE_PERCENT * old)
            .then(|| format!("{name}: {old} -> {bytes} bytes ({percent:+.1} %)"))
    });
    changed.collect()
}

/// Bytes of a program that the system maps when it starts.
fn loaded(program: &Path) -> Result<u64> {
    let bytes = fs::read(program).with_context(|| format!("reading {}", program.display()))?;
    let segments = segments(&bytes)
        .with_context(|| format!("{}: not a 64-bit ELF program", program.display()))?;
    if segments == 0 {
        bail!("{}: nothing in it is loaded", program.display());
    }
    Ok(segments)
}

/// The sum of the sizes in the file of PT_LOAD segments, elf(5).
fn segments(program: &[u8]) -> Option<u64> {
    const LOAD: u64 = 1;
    let number = |at: u64, size: usize| {
        let at = usize::try_from(at).ok()?;
        let bytes = program.get(at..at.checked_add(size)?)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |number, byte| number << 8 | u64::from(*byte)),
        )
    };
    // 64 bits, little endian.
    if program.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (table, entry, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    let mut sum = 0;
    for segment in 0..count {
        let at = table.checked_add(segment * entry)?;
        if number(at, 4)? == LOAD {
            sum += number(at.checked_add(0x20)?, 8)?;
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(filter: u64, control: u64) -> Sizes {
        Sizes::from([
            ("filter".to_owned(), filter),
            ("control".to_owned(), control),
        ])
    }

    #[test]
    fn more_than_a_hundredth_is_a_change_in_either_direction() {
        let kept = sizes(1000, 1000);
        assert_eq!(changes(&kept, &sizes(1010, 990)), Vec::<String>::new());
        assert_eq!(
            changes(&kept, &sizes(1011, 989)),
            [
                "control: 1000 -> 989 bytes (-1.1 %)",
                "filter: 1000 -> 1011 bytes (+1.1 %)"
            ]
        );
        assert_eq!(changes(&Sizes::new(), &kept).len(), 2);
    }

    #[test]
    fn what_is_loaded_of_a_program_is_less_than_all_of_it() {
        let own = std::env::current_exe().unwrap();
        let all = fs::metadata(&own).unwrap().len();
        let loaded = loaded(&own).unwrap();
        assert!(loaded > 100_000 && loaded < all, "{loaded} of {all}");
    }

    #[test]
    fn what_is_no_program_is_not_measured() {
        assert_eq!(segments(b"\x7fELF\x02\x01"), None);
        assert_eq!(segments(b"#!/bin/sh"), None);
        let mut cut = vec![0xff; 64];
        cut[..6].copy_from_slice(b"\x7fELF\x02\x01");
        assert_eq!(segments(&cut), None);
    }
}
