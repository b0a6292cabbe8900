// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask probe`: compiles the parts of the governor that run in the kernel.
//!
//! The objects are committed, because few who build Weir have a compiler for eBPF. Each carries the sum of its source,
//! so that one that is out of date is seen without a compiler too.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};
use weir_stage::command::Run;

use crate::workspace::Workspace;

/// Each is `NAME.bpf.c`, and its object `NAME.bpf.o` beside it.
const PARTS: [(&str, &str); 2] = [
    ("node-governor/uprobe/src", "probe"),
    ("node-governor/src/apply/network", "egress"),
];
/// Another version makes other instructions of the same source, and could not be compared.
const COMPILER: &str = "clang version 14.";
const NO_COMPILER: &str = "no clang 14: `apt-get install clang-14 llvm-14`, or name one in CLANG";
/// Before the sum of the source, in the object.
const MARK: &str = "source sha256 ";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing: fail where a committed object is not what its source makes, or where that cannot be told
    #[arg(long)]
    check: bool,
}

/// What a check was able to compare.
pub(crate) enum Checked {
    /// The objects with those made anew.
    Object,
    /// The sums of the sources only: there is no compiler.
    Source,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    if args.check {
        return match check(workspace)? {
            Checked::Object => Ok(()),
            Checked::Source => bail!("only the sums of the sources were compared: {NO_COMPILER}"),
        };
    }
    let compiler = compiler()?;
    for (folder, name) in PARTS {
        let part = Part::of(workspace, folder, name);
        let object = part.compile(&compiler)?;
        fs::write(part.folder.join(&part.object), &object)?;
        println!("probe: {folder}/{}: {} bytes", part.object, object.len());
    }
    Ok(())
}

/// That the committed objects are what their sources make.
pub(crate) fn check(workspace: &Workspace) -> Result<Checked> {
    let compiler = compiler().ok();
    for (folder, name) in PARTS {
        Part::of(workspace, folder, name).check(compiler.as_deref())?;
    }
    Ok(match compiler {
        Some(_) => Checked::Object,
        None => Checked::Source,
    })
}

/// One that runs in the kernel.
struct Part {
    folder: PathBuf,
    source: String,
    object: String,
}

impl Part {
    fn of(workspace: &Workspace, folder: &str, name: &str) -> Self {
        Self {
            folder: workspace.root.join(folder),
            source: format!("{name}.bpf.c"),
            object: format!("{name}.bpf.o"),
        }
    }

    fn check(&self, compiler: Option<&OsStr>) -> Result<()> {
        let (source, object) = (&self.source, self.folder.join(&self.object));
        let committed = fs::read(&object)?;
        let sum = self.sum()?;
        let wanted = format!("{MARK}{sum}");
        let renew = "renew it with `cargo xtask probe`";
        let holds = |object: &[u8]| {
            object
                .windows(wanted.len())
                .any(|bytes| bytes == wanted.as_bytes())
        };
        ensure!(
            holds(&committed),
            "{} was made of another {source}: {renew}",
            object.display()
        );
        let Some(compiler) = compiler else {
            return Ok(());
        };
        let made = self.compile(compiler)?;
        ensure!(
            made == committed,
            "{} is not what {source} makes: {renew}",
            object.display()
        );
        Ok(())
    }

    fn sum(&self) -> Result<String> {
        let source = fs::read(self.folder.join(&self.source))?;
        let sum = Sha256::digest(&source);
        Ok(sum.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn compile(&self, compiler: &OsStr) -> Result<Vec<u8>> {
        let made = env::temp_dir().join(format!("weir-probe-{}.o", std::process::id()));
        let built = Command::new(compiler)
            .current_dir(&self.folder)
            // 64-bit atomics that return what was there: Linux 5.12.
            .args(["-target", "bpf", "-mcpu=v3", "-O2"])
            // The kernel's types, for fields that are not where they were in another kernel; no paths of this machine.
            .args(["-g", "-fdebug-compilation-dir=."])
            .args(["-Wall", "-Wextra", "-Werror"])
            .arg(format!("-DSOURCE=\"{MARK}{}\"", self.sum()?))
            .args(["-c", &self.source, "-o"])
            .arg(&made)
            .shown();
        let object = built.and_then(|()| {
            Command::new(strip(compiler)?)
                .arg("-g")
                .arg(&made)
                .shown()?;
            Ok(fs::read(&made)?)
        });
        let _ = fs::remove_file(&made);
        object
    }
}

/// `CLANG`, or what Debian's package installs.
fn compiler() -> Result<OsString> {
    let named = env::var_os("CLANG");
    let tried = named.map_or(vec!["clang-14".into(), "clang".into()], |named| vec![named]);
    let found = tried.into_iter().find(|name: &OsString| {
        let version = Command::new(name).arg("--version").captured();
        version.is_ok_and(|version| version.contains(COMPILER))
    });
    found.context(NO_COMPILER)
}

/// Of the same version, beside the compiler.
fn strip(compiler: &OsStr) -> Result<PathBuf> {
    let said = Command::new(compiler)
        .arg("--print-prog-name=llvm-strip")
        .captured()?;
    let path = PathBuf::from(said.trim());
    if !path.is_absolute() {
        bail!("no llvm-strip beside clang: `apt-get install llvm-14`");
    }
    Ok(path)
}
