// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask release`: all that users download, in one folder.
//!
//! ```text
//! build ─┬─ libweir_native.so ──────────────────────────────┐
//!        ├─ weir_filter.wasm ────────┬─> archive (.tar.gz) ──┐
//!        ├─ programs of each machine ┼─> debian (.deb) ──────┼─> SHA256SUMS ─> signature
//!        └─ manuals, completions ────┴─> image (.oci.tar) ───┘        ^
//!                                                 provenance.json ────┘
//! ```

mod archive;
mod build;
mod crates;
mod debian;
mod sign;
mod source;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use weir_packaging::provenance::{self, Build};
use weir_packaging::{digest, layout};
use weir_stage::command::Run;

use crate::image::{self, Made};
use crate::packaging;
use crate::release::build::Built;
use crate::release::source::Source;
use crate::rustc;
use crate::toolchain::Toolchain;
use crate::tools::{self, Temporary};
use crate::workspace::Workspace;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const SUMS: &str = "SHA256SUMS";
const PROVENANCE: &str = "provenance.json";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// An empty folder for the files, or one that is not there yet
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Sign SHA256SUMS with this private key of OpenSSH
    #[arg(long, value_name = "FILE")]
    sign_key: Option<PathBuf>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let source = Source::of(workspace)?;
    empty(&args.out)?;
    let built = Built::build(workspace)?;
    write(workspace, &source, &built, &args.out)?;
    if let Some(key) = &args.sign_key {
        sign::sign(&args.out.join(SUMS), key)?;
    }
    Ok(())
}

/// Makes one, packs it again to see that nothing of the moment is in it, and holds it against its readers. Packs the
/// crates that a registry may have, too.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let folder = Temporary::new(&workspace.cache(), "release")?;
    let [out, again, key] = ["release", "again", "key"].map(|name| folder.0.join(name));
    Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key)
        .captured()?;
    for (out, sign_key) in [(&out, Some(key)), (&again, None)] {
        let out = out.clone();
        run(workspace, &Args { out, sign_key })?;
    }
    let [sums, other] = [&out, &again].map(|out| fs::read_to_string(out.join(SUMS)));
    ensure!(sums? == other?, "packed twice, files have other sums");
    crates::package(workspace)?;
    let envoy = tools::install(workspace)?.envoy;
    let mut command = workspace.cargo();
    command
        .args(["test", "--package", "weir-packaging"])
        .args(["--test", "packaging", "--", "release"])
        .env("WEIR_ENVOY", envoy)
        .env("WEIR_RELEASE", &out);
    if let Some(toolchain) = Toolchain::arm64(workspace)? {
        let emulator = tools::program(workspace, tools::ARM64_EMULATOR)?;
        command
            .env(tools::variable(tools::ARM64_EMULATOR), emulator)
            .env("QEMU_LD_PREFIX", toolchain.root());
    }
    packaging::played(command)
}

fn empty(folder: &Path) -> Result<()> {
    let context = || folder.display().to_string();
    fs::create_dir_all(folder).with_context(context)?;
    let mut entries = folder.read_dir().with_context(context)?;
    ensure!(
        entries.next().is_none(),
        "{} is not empty: a release is all that is in its folder",
        folder.display()
    );
    Ok(())
}

/// Every file, from what was built.
fn write(workspace: &Workspace, source: &Source, built: &Built, out: &Path) -> Result<()> {
    let keep = |name: &str, bytes: &[u8]| {
        let file = out.join(name);
        fs::write(&file, bytes).with_context(|| format!("writing {}", file.display()))
    };
    for programs in built.programs() {
        let (name, archive) = archive::of(workspace, built, programs, source.time)?;
        keep(&name, &archive)?;
        for program in &programs.all {
            let name = format!("{}-{VERSION}-{}.cdx.json", program.name, programs.short());
            keep(&name, program.papers.sbom().as_bytes())?;
        }
    }
    let module = format!("weir_filter-{VERSION}");
    keep(&format!("{module}.wasm"), &built.module)?;
    let sum = line(&format!("{module}.wasm"), &digest(&built.module));
    keep(&format!("{module}.wasm.sha256"), sum.as_bytes())?;
    let sbom = built.module_papers.sbom();
    keep(&format!("{module}.cdx.json"), sbom.as_bytes())?;
    let (native, target) = (&built.native, built.own.glibc.short());
    let name = format!("{}-{VERSION}-{target}", native.name);
    keep(&format!("{name}.so"), &native.bytes)?;
    keep(&format!("{name}.cdx.json"), native.papers.sbom().as_bytes())?;
    for machine in built.machines() {
        for package in debian::packages(workspace, built, machine)? {
            package.write(out, source.time)?;
        }
    }
    let mut images = image::all(workspace)?;
    // This machine's have what its loader finds; no loader here finds anything for arm64.
    if let Some(machine) = &built.arm64 {
        for named in image::PROGRAMS {
            let program = machine.musl.find(named.0)?;
            let papers = program.papers.clone();
            images.push(Made::program(named, &program.file, machine.arch, papers)?);
        }
    }
    for made in images {
        let file = out.join(format!("{}-{VERSION}{}.oci.tar", made.name, made.machine()));
        layout::archive(&made.image, &made.tagged(), &file)?;
    }
    let said = provenance::statement(&sums(out)?, &origin(workspace, source, built)?);
    keep(PROVENANCE, format!("{said:#}\n").as_bytes())?;
    let lines = sums(out)?;
    let lines: String = lines.iter().map(|(name, sum)| line(name, sum)).collect();
    print!("{lines}");
    keep(SUMS, lines.as_bytes())
}

/// As `sha256sum --check` reads it.
fn line(name: &str, digest: &str) -> String {
    format!("{}  {name}\n", digest.trim_start_matches("sha256:"))
}

/// Of the files in a folder, by name.
fn sums(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut sums = BTreeMap::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        sums.insert(name.into_owned(), digest(&bytes));
    }
    Ok(sums.into_iter().collect())
}

fn origin(workspace: &Workspace, source: &Source, built: &Built) -> Result<Build> {
    let lock = fs::read(workspace.root.join("Cargo.lock")).context("reading Cargo.lock")?;
    Ok(Build {
        command: "cargo xtask release".to_owned(),
        commit: source.commit.clone(),
        is_changed: source.is_changed,
        lock: digest(&lock),
        rust: rustc::version(workspace, "release")?,
        rust_commit: rustc::version(workspace, "commit-hash")?,
        targets: built.targets(),
    })
}
