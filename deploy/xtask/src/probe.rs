// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask probe`: compiles the part of the governor that runs in the kernel.
//!
//! The object is committed, because few who build Weir have a compiler for eBPF. It carries the sum of its source,
//! so that one that is out of date is seen without a compiler too.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};
use weir_stage::command::Run;

use crate::workspace::Workspace;

const FOLDER: &str = "node-governor/uprobe/src";
const SOURCE: &str = "probe.bpf.c";
const OBJECT: &str = "probe.bpf.o";
/// Another version makes other instructions of the same source, and could not be compared.
const COMPILER: &str = "clang version 14.";
const NO_COMPILER: &str = "no clang 14: `apt-get install clang-14 llvm-14`, or name one in CLANG";
/// Before the sum of the source, in the object.
const MARK: &str = "source sha256 ";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing: fail where the committed object is not what its source makes, or where that cannot be told
    #[arg(long)]
    check: bool,
}

/// What a check was able to compare.
pub(crate) enum Checked {
    /// The object with one made anew.
    Object,
    /// The sum of the source only: there is no compiler.
    Source,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    if args.check {
        return match check(workspace)? {
            Checked::Object => Ok(()),
            Checked::Source => bail!("only the sum of its source was compared: {NO_COMPILER}"),
        };
    }
    let folder = workspace.root.join(FOLDER);
    let object = compile(&folder, &compiler()?)?;
    fs::write(folder.join(OBJECT), &object)?;
    println!("probe: {FOLDER}/{OBJECT}: {} bytes", object.len());
    Ok(())
}

/// That the committed object is what its source makes.
pub(crate) fn check(workspace: &Workspace) -> Result<Checked> {
    let folder = workspace.root.join(FOLDER);
    let committed = fs::read(folder.join(OBJECT))?;
    let sum = sum(&folder)?;
    let wanted = format!("{MARK}{sum}");
    let renew = "renew it with `cargo xtask probe`";
    let holds = |object: &[u8]| {
        object
            .windows(wanted.len())
            .any(|bytes| bytes == wanted.as_bytes())
    };
    ensure!(
        holds(&committed),
        "{FOLDER}/{OBJECT} was made of another {SOURCE}: {renew}"
    );
    let Ok(compiler) = compiler() else {
        return Ok(Checked::Source);
    };
    let made = compile(&folder, &compiler)?;
    ensure!(
        made == committed,
        "{FOLDER}/{OBJECT} is not what {SOURCE} makes: {renew}"
    );
    Ok(Checked::Object)
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

fn sum(folder: &Path) -> Result<String> {
    let source = fs::read(folder.join(SOURCE))?;
    let sum = Sha256::digest(&source);
    Ok(sum.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn compile(folder: &Path, compiler: &OsStr) -> Result<Vec<u8>> {
    let made = env::temp_dir().join(format!("weir-probe-{}.o", std::process::id()));
    let built = Command::new(compiler)
        .current_dir(folder)
        // 64-bit atomics that return what was there: Linux 5.12.
        .args(["-target", "bpf", "-mcpu=v3", "-O2"])
        // The kernel's types, for fields that are not where they were in another kernel; no paths of this machine.
        .args(["-g", "-fdebug-compilation-dir=."])
        .args(["-Wall", "-Wextra", "-Werror"])
        .arg(format!("-DSOURCE=\"{MARK}{}\"", sum(folder)?))
        .args(["-c", SOURCE, "-o"])
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
