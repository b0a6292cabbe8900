// SPDX-License-Identifier: Apache-2.0
//! What a release is packed from: the filter in both of its shells, the programs for two C libraries, their manuals.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use weir_packaging::{Papers, filter, program};
use weir_stage::command::Run;

use super::VERSION;
use crate::build_filter;
use crate::image;
use crate::parts;
use crate::rustc;
use crate::workspace::Workspace;

/// A part of `rustc`'s own: what it links static programs with.
const MUSL: &str = "lib/self-contained/libc.a";

/// Those of images, and what writes their manuals.
const STATIC: [&str; 4] = {
    let [control, governor, ctl] = image::BUILT;
    [control, governor, ctl, "weir-manuals"]
};

pub(super) struct Built {
    pub(super) module: Vec<u8>,
    pub(super) module_papers: Papers,
    /// The filter as a dynamic module, for glibc as Envoy is.
    pub(super) native: Program,
    /// Manual pages in `man`, completions in `completions`.
    pub(super) manuals: PathBuf,
    pub(super) glibc: Programs,
    pub(super) musl: Programs,
}

/// All of one target.
pub(super) struct Programs {
    pub(super) target: String,
    pub(super) all: Vec<Program>,
}

/// Without names of its functions, which take half of a file.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) bytes: Vec<u8>,
    pub(super) papers: Papers,
}

impl Built {
    pub(super) fn build(workspace: &Workspace) -> Result<Self> {
        let module = build_filter::run(workspace)?;
        let module = fs::read(&module).with_context(|| format!("reading {}", module.display()))?;
        let parts = parts::of(workspace, "weir-filter", build_filter::TARGET)?;
        let musl = format!("{ARCH}-unknown-linux-musl");
        let [control, governor, ctl, manuals] = workspace.build_static(&musl, STATIC)?;
        let libc = rustc::sysroot(workspace)?.join(format!("lib/rustlib/{musl}/{MUSL}"));
        let host = rustc::version(workspace, "host")?;
        let built = workspace.build_release(image::BUILT)?;
        let native = build_filter::native(workspace)?;
        Ok(Self {
            native: Program::of("libweir_native", &native, "weir-native", (workspace, &host))?,
            module_papers: filter::papers(&module, &parts, VERSION),
            module,
            manuals: written(workspace, &manuals)?,
            musl: Programs::of(workspace, musl, [control, governor, ctl], &[libc])?,
            // The C library is the system's, and not in an archive or package.
            glibc: Programs::of(workspace, host, built, &[])?,
        })
    }

    pub(super) fn targets(&self) -> Vec<String> {
        let native = [&self.glibc, &self.musl].map(|programs| programs.target.clone());
        let mut targets = native.to_vec();
        targets.push(build_filter::TARGET.to_owned());
        targets
    }
}

impl Program {
    /// A file that was built of a package for a target, with nothing to be left out.
    fn of(
        name: &'static str,
        file: &Path,
        package: &str,
        (workspace, target): (&Workspace, &str),
    ) -> Result<Self> {
        let parts = parts::of(workspace, package, target)?;
        Ok(Self {
            name,
            bytes: fs::read(file).with_context(|| format!("reading {}", file.display()))?,
            papers: program::papers(file, &[], &parts, VERSION)?,
        })
    }
}

impl Programs {
    fn of<const N: usize>(
        workspace: &Workspace,
        target: String,
        built: [PathBuf; N],
        libraries: &[PathBuf],
    ) -> Result<Self> {
        let folder = workspace.target.join("stripped").join(&target);
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let of = |(name, built): (&'static str, PathBuf)| {
            let file = folder.join(name);
            Command::new("strip")
                .args(["--strip-all", "-o"])
                .args([&file, &built])
                .captured()?;
            let parts = parts::of(workspace, name, &target)?;
            let bytes = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
            let papers = program::papers(&file, libraries, &parts, VERSION)?;
            Ok(Program {
                name,
                bytes,
                papers,
            })
        };
        let all = image::BUILT.into_iter().zip(built).map(of);
        Ok(Self {
            all: all.collect::<Result<_>>()?,
            target,
        })
    }

    /// The target, as archives are named: `x86_64-linux-musl`.
    pub(super) fn short(&self) -> String {
        self.target.replace("-unknown", "")
    }

    pub(super) fn is_static(&self) -> bool {
        self.target.ends_with("musl")
    }

    pub(super) fn find(&self, name: &str) -> Result<&Program> {
        let mut all = self.all.iter();
        all.find(|program| program.name == name)
            .with_context(|| format!("{name} was not built"))
    }
}

fn written(workspace: &Workspace, manuals: &Path) -> Result<PathBuf> {
    let folder = workspace.target.join("manuals");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    Command::new(manuals).arg(&folder).captured()?;
    Ok(folder)
}
