// SPDX-License-Identifier: Apache-2.0
//! An archive for any Linux: programs, the filter, and what they are begun with.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use weir_packaging::{Layer, gzip, program};

use super::VERSION;
use super::build::{Built, Programs};
use crate::workspace::Workspace;

/// Of the checkout, and where they are in an archive.
const FILES: [(&str, &str); 10] = [
    ("LICENSE", "LICENSE"),
    ("deploy/RELEASE.md", "README.md"),
    ("deploy/systemd/weir-control.yaml", "etc/weir-control.yaml"),
    ("node-governor/weir-governor.yaml", "etc/weir-governor.yaml"),
    (
        "deploy/systemd/weir-control.service",
        "systemd/weir-control.service",
    ),
    (
        "deploy/systemd/weir-governor.service",
        "systemd/weir-governor.service",
    ),
    (
        "deploy/systemd/weir-governor-jobs.conf",
        "systemd/weir-governor-jobs.conf",
    ),
    (
        "envoy-config/standalone/bootstrap.yaml",
        "envoy/bootstrap.yaml",
    ),
    (
        "envoy-config/standalone/bootstrap-tls.yaml",
        "envoy/bootstrap-tls.yaml",
    ),
    ("envoy-config/host/host.py", "example/host.py"),
];

/// Its name and its bytes. All is in a folder of the same name.
pub(super) fn of(
    workspace: &Workspace,
    built: &Built,
    programs: &Programs,
    time: u64,
) -> Result<(String, Vec<u8>)> {
    let name = format!("weir-{VERSION}-{}", programs.short());
    let root = Path::new(&name);
    let mut layer = Layer::default();
    for program in &programs.all {
        let place = root.join("bin").join(program.name);
        layer.add(place, 0o755, program.bytes.clone())?;
        let notices = root.join("notices").join(program.name);
        program.papers.add(notices, &mut layer)?;
    }
    layer.add(root.join("weir_filter.wasm"), 0o644, built.module.clone())?;
    let notices = root.join("notices/weir_filter.wasm");
    built.module_papers.add(notices, &mut layer)?;
    if programs.is_static() {
        let notice = program::MUSL.as_bytes().to_vec();
        layer.add(root.join("notices/musl.txt"), 0o644, notice)?;
    }
    for (from, to) in FILES {
        layer.add(root.join(to), 0o644, read(&workspace.root.join(from))?)?;
    }
    for part in ["man", "completions"] {
        for file in files(&built.manuals.join(part))? {
            let name = file.file_name().unwrap_or_default();
            layer.add(root.join(part).join(name), 0o644, read(&file)?)?;
        }
    }
    Ok((format!("{name}.tar.gz"), gzip(&layer.tar(time)?)?))
}

pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let context = || format!("reading {}", folder.display());
    let entries = folder.read_dir().with_context(context)?;
    entries
        .map(|entry| Ok(entry.with_context(context)?.path()))
        .collect()
}

pub(super) fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("reading {}", file.display()))
}
