// SPDX-License-Identifier: Apache-2.0
//! What a release is packed from: the filter in both of its shells, the programs for two C libraries and each
//! architecture, their manuals.

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
use crate::toolchain::Toolchain;
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
    /// This machine's.
    pub(super) own: Machine,
    /// Built here, too, unless this machine's are.
    pub(super) arm64: Option<Machine>,
}

/// Programs for one architecture.
pub(super) struct Machine {
    /// In Rust's words.
    pub(super) arch: &'static str,
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
    /// Where it is.
    pub(super) file: PathBuf,
    pub(super) bytes: Vec<u8>,
    pub(super) papers: Papers,
}

impl Built {
    pub(super) fn build(workspace: &Workspace) -> Result<Self> {
        // Before what takes minutes: it may be missing.
        let toolchain = Toolchain::arm64(workspace)?;
        let module = build_filter::run(workspace)?;
        let module = fs::read(&module).with_context(|| format!("reading {}", module.display()))?;
        let parts = parts::of(workspace, "weir-filter", build_filter::TARGET)?;
        let arm64 = toolchain.map(|toolchain| Machine::other(workspace, &toolchain));
        let arm64 = arm64.transpose()?;
        let (own, manuals) = Machine::own(workspace)?;
        let native = build_filter::native(workspace)?;
        let host = &own.glibc.target;
        Ok(Self {
            native: Program::of("libweir_native", &native, "weir-native", (workspace, host))?,
            module_papers: filter::papers(&module, &parts, VERSION),
            module,
            manuals: written(workspace, &manuals)?,
            arm64,
            own,
        })
    }

    pub(super) fn machines(&self) -> impl Iterator<Item = &Machine> {
        [&self.own].into_iter().chain(&self.arm64)
    }

    /// Each architecture's, for each C library.
    pub(super) fn programs(&self) -> impl Iterator<Item = &Programs> {
        let of = self.machines();
        of.flat_map(|machine| [&machine.glibc, &machine.musl])
    }

    pub(super) fn targets(&self) -> Vec<String> {
        let programs = self.programs().map(|programs| programs.target.clone());
        programs.chain([build_filter::TARGET.to_owned()]).collect()
    }
}

impl Machine {
    /// This one, with the program that writes manuals.
    fn own(workspace: &Workspace) -> Result<(Self, PathBuf)> {
        let toolchain = Toolchain::own();
        let target = musl(&toolchain);
        let [control, governor, ctl, manuals] = workspace.build_for(&target, &toolchain, STATIC)?;
        let musl = Programs::musl(workspace, &toolchain, [control, governor, ctl])?;
        let host = rustc::version(workspace, "host")?;
        let built = workspace.build_release(image::BUILT)?;
        let glibc = Programs::of(workspace, &toolchain, host, built, &[])?;
        let arch = toolchain.arch;
        Ok((Self { arch, glibc, musl }, manuals))
    }

    fn other(workspace: &Workspace, toolchain: &Toolchain) -> Result<Self> {
        let build = |target: &str| workspace.build_for(target, toolchain, image::BUILT);
        let built = build(&musl(toolchain))?;
        let musl = Programs::musl(workspace, toolchain, built)?;
        let gnu = format!("{}-unknown-linux-gnu", toolchain.arch);
        let built = build(&gnu)?;
        Ok(Self {
            arch: toolchain.arch,
            glibc: Programs::of(workspace, toolchain, gnu, built, &[])?,
            musl,
        })
    }
}

fn musl(toolchain: &Toolchain) -> String {
    format!("{}-unknown-linux-musl", toolchain.arch)
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
            file: file.to_owned(),
            bytes: fs::read(file).with_context(|| format!("reading {}", file.display()))?,
            papers: program::papers(file, &[], &parts, VERSION)?,
        })
    }
}

impl Programs {
    fn musl<const N: usize>(
        workspace: &Workspace,
        toolchain: &Toolchain,
        built: [PathBuf; N],
    ) -> Result<Self> {
        let target = musl(toolchain);
        let libc = rustc::sysroot(workspace)?.join(format!("lib/rustlib/{target}/{MUSL}"));
        Self::of(workspace, toolchain, target, built, &[libc])
    }

    /// Those that were built, with libraries that are in them. A C library of the system is not in an archive or
    /// package.
    fn of<const N: usize>(
        workspace: &Workspace,
        toolchain: &Toolchain,
        target: String,
        built: [PathBuf; N],
        libraries: &[PathBuf],
    ) -> Result<Self> {
        let folder = workspace.target.join("stripped").join(&target);
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let of = |(name, built): (&'static str, PathBuf)| {
            let file = folder.join(name);
            toolchain
                .strip()?
                .args(["--strip-all", "-o"])
                .args([&file, &built])
                .captured()?;
            let parts = parts::of(workspace, name, &target)?;
            let bytes = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
            let papers = program::papers(&file, libraries, &parts, VERSION)?;
            Ok(Program {
                name,
                file,
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
