// SPDX-License-Identifier: Apache-2.0
//! Compiler flags that keep a machine's own paths out of what is built.
//!
//! Panics, debug information and C's `__FILE__` name source files. By these flags a file has the same name wherever
//! the checkout, the crates and the toolchain are, so the same sources and toolchain make the same bytes.
//!
//! The flags are given where something is built that is shipped, measured or compared, and nowhere else: Cargo
//! builds anew what was built with other flags.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::rustc;
use crate::workspace::Workspace;

/// Between flags, as Cargo wants them: paths may have spaces.
const SEPARATOR: &str = "\u{1f}";

/// Folders of this machine, and what they are called instead. Of several that fit a file the last counts, as for
/// rustc, gcc and clang.
#[derive(Debug, PartialEq, Eq)]
struct Names(Vec<(PathBuf, String)>);

/// Makes a `cargo build` forget where it ran.
pub(crate) fn apply(workspace: &Workspace, target: &Path, command: &mut Command) -> Result<()> {
    apply_with(workspace, target, &[], command)
}

/// The same, with other flags of rustc: Cargo takes them from one place alone.
pub(crate) fn apply_with(
    workspace: &Workspace,
    target: &Path,
    flags: &[String],
    command: &mut Command,
) -> Result<()> {
    let names = Names::of(workspace, target)?;
    let flags: Vec<String> = names.rust_flags().chain(flags.iter().cloned()).collect();
    command
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join(SEPARATOR))
        // What the crate `cc` compiles of ring, in C and in assembly.
        .env("CFLAGS", names.c_flags())
        .env("CC_SHELL_ESCAPED_FLAGS", "1");
    Ok(())
}

/// Whether something that was built names sources of crates by where this machine has them.
pub(crate) fn names_crates(workspace: &Workspace, built: &[u8]) -> bool {
    let folder = workspace.cargo_home.join("registry");
    let name = folder.as_os_str().as_encoded_bytes();
    built.windows(name.len()).any(|bytes| bytes == name)
}

impl Names {
    fn of(workspace: &Workspace, target: &Path) -> Result<Self> {
        let mut names = vec![
            (workspace.root.clone(), "/weir".to_owned()),
            // Generated sources.
            (target.to_owned(), "/weir/target".to_owned()),
        ];
        // One folder a registry; a mirror's is called otherwise.
        let registries = workspace.cargo_home.join("registry/src");
        let context = || format!("reading {}", registries.display());
        for registry in registries.read_dir().with_context(context)? {
            names.push((registry.with_context(context)?.path(), "/crates".to_owned()));
        }
        names.push(toolchain(workspace)?);
        Ok(Self(names))
    }

    fn rust_flags(&self) -> impl Iterator<Item = String> {
        self.flags("--remap-path-prefix=")
    }

    fn c_flags(&self) -> String {
        let quoted = |flag: String| format!("'{}'", flag.replace('\'', r"'\''"));
        let flags = self.flags("-ffile-prefix-map=").map(quoted);
        flags.collect::<Vec<_>>().join(" ")
    }

    fn flags(&self, option: &'static str) -> impl Iterator<Item = String> {
        let flag = move |(from, to): &(PathBuf, String)| format!("{option}{}={to}", from.display());
        self.0.iter().map(flag)
    }
}

/// The standard library's sources have their published name, unless the component `rust-src` is installed.
fn toolchain(workspace: &Workspace) -> Result<(PathBuf, String)> {
    let commit = rustc::version(workspace, "commit-hash")?;
    let sources = rustc::sysroot(workspace)?.join("lib/rustlib/src/rust");
    Ok((sources, format!("/rustc/{commit}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_crates_of_this_machine_is_noticed() {
        let workspace = Workspace {
            root: "/home/x/weir".into(),
            target: "/home/x/weir/target".into(),
            cargo_home: "/home/x/.cargo".into(),
        };
        let names = |built: &str| names_crates(&workspace, built.as_bytes());
        assert!(names(
            "at /home/x/.cargo/registry/src/i-1/prost-1/src/lib.rs"
        ));
        assert!(!names("at /crates/prost-1/src/lib.rs"));
    }

    #[test]
    fn paths_with_spaces_and_quotes_stay_one_flag_each() {
        let names = Names(vec![
            ("/home/a b/weir".into(), "/weir".into()),
            ("/home/o'neil".into(), "/crates".into()),
        ]);
        assert_eq!(
            names.rust_flags().collect::<Vec<_>>(),
            [
                "--remap-path-prefix=/home/a b/weir=/weir",
                "--remap-path-prefix=/home/o'neil=/crates"
            ]
        );
        assert_eq!(
            names.c_flags(),
            r"'-ffile-prefix-map=/home/a b/weir=/weir' '-ffile-prefix-map=/home/o'\''neil=/crates'"
        );
    }
}
