// SPDX-License-Identifier: Apache-2.0
//! What tests need of a machine, and the record of those that are skipped without it.
//!
//! ```text
//! test ─> Need is missing ─> skip ─> stderr, and a line in the file that WEIR_SKIPPED names
//!                                         └─> cargo xtask test: names, reasons, and a failure
//!                                             where more are skipped than deploy/xtask/skipped.toml says
//! ```
//! The test harness has no word for a test that finds out while it runs that it cannot test anything: it counts as
//! passed there. The record is what tells them apart.

mod ports;

use std::env;
use std::error::Error;
use std::fmt::{self, Display};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process;
use std::thread;

pub use ports::{Ports, free_port};

/// The variable that names the file of the record. `cargo xtask test` sets it.
pub const RECORD: &str = "WEIR_SKIPPED";

/// The variable that `cargo xtask test --nightly` sets.
pub const NIGHTLY: &str = "WEIR_NIGHTLY";

/// Why a test waits for the night.
pub const ONE_IS_PLAYED: &str = "one of its kind is played";

/// The variable that names the folder of the workspace's own programs.
const PROGRAMS: &str = "WEIR_BIN_DIR";

/// What a test cannot do without.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Need {
    /// A program or file that `cargo xtask test` provides, by the variable that names it.
    Provided(&'static str),
    /// A program of the system, on the `PATH`.
    Installed(&'static str),
    /// Cgroups that this process may make and write.
    Cgroups,
    /// More than one core.
    Cores,
    /// The rights of root.
    Root,
    /// Network or user namespaces.
    Namespaces,
    /// An address that is not loopback.
    Network,
    /// More time than a test of every change has: `cargo xtask test --nightly`.
    Nightly,
    /// A kernel that lets this process watch functions of another one.
    Uprobes,
}

/// As in the record and in the list of what may be skipped.
impl Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Provided(variable) => variable,
            Self::Installed(program) => program,
            Self::Cgroups => "cgroups",
            Self::Cores => "cores",
            Self::Root => "root",
            Self::Namespaces => "namespaces",
            Self::Network => "network",
            Self::Nightly => "nightly",
            Self::Uprobes => "uprobes",
        })
    }
}

/// Whether there is time for what takes too long for every change.
#[must_use]
pub fn is_nightly() -> bool {
    env::var_os(NIGHTLY).is_some()
}

/// Why a test can test nothing here.
#[derive(Debug)]
pub struct Lacking {
    /// What is missing.
    pub need: Need,
    /// In words.
    pub why: String,
}

impl Lacking {
    /// A need that is not met, and why.
    pub fn new(need: Need, why: impl Display) -> Self {
        let why = why.to_string();
        Self { need, why }
    }
}

impl Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Error for Lacking {}

/// The path that a variable names.
///
/// # Errors
/// It is not set, or nothing is there.
pub fn provided(variable: &'static str) -> Result<PathBuf, Lacking> {
    let lacking = |why| Lacking::new(Need::Provided(variable), why);
    let path = env::var_os(variable).map(PathBuf::from);
    let path =
        path.ok_or_else(|| lacking(format!("{variable} is not set: `cargo xtask test` sets it")))?;
    match path.exists() {
        true => Ok(path),
        false => Err(lacking(format!(
            "{variable} is {}, which is not there",
            path.display()
        ))),
    }
}

/// One of the workspace's own programs.
///
/// # Errors
/// It is not built.
pub fn program(name: &str) -> Result<PathBuf, Lacking> {
    let file = provided(PROGRAMS)?.join(name);
    match file.is_file() {
        true => Ok(file),
        false => Err(Lacking::new(
            Need::Provided(PROGRAMS),
            format!("there is no {}", file.display()),
        )),
    }
}

/// The same for a test that is skipped without it.
#[must_use]
pub fn provided_or_skip(variable: &'static str) -> Option<PathBuf> {
    provided(variable)
        .inspect_err(|lacking| skip(lacking.need, lacking))
        .ok()
}

/// The same where all tests of the program need it: without it the program ends, and has failed nothing. To
/// `cargo xtask test`, which knows how many tests there are, that is a failure.
#[must_use]
pub fn provided_or_end(variable: &'static str) -> PathBuf {
    provided(variable).unwrap_or_else(|why| {
        let _ = writeln!(io::stderr(), "SKIPPED: all tests of this program: {why}");
        process::exit(0)
    })
}

/// Whether there is time for a test of a kind of which every change has another one; skipped else.
#[must_use]
pub fn nightly_or_skip() -> bool {
    let nightly = is_nightly();
    if !nightly {
        skip(Need::Nightly, ONE_IS_PLAYED);
    }
    nightly
}

/// Records that the test that runs on this thread tests nothing here.
pub fn skip(need: Need, why: impl Display) {
    // The harness names a test's thread by the test; with one thread for all of them it does not.
    let thread = thread::current();
    skip_test(thread.name().unwrap_or("main"), need, why);
}

/// Records that a test tests nothing here.
pub fn skip_test(test: &str, need: Need, why: impl Display) {
    let line = line(test, need, &why.to_string());
    // Not by `eprintln`, which is shown for tests that fail only.
    let _ = writeln!(io::stderr(), "SKIPPED: {test}: needs {need}: {why}");
    let Some(file) = env::var_os(RECORD) else {
        return;
    };
    let record = OpenOptions::new().create(true).append(true).open(&file);
    if let Err(error) = record.and_then(|mut record| record.write_all(line.as_bytes())) {
        // A skipped test that nobody counts would pass.
        panic!("{}: {error}", file.display());
    }
}

/// Test, need and reason, by tabs; whole in one write, as tests run side by side.
fn line(test: &str, need: Need, why: &str) -> String {
    let why: Vec<&str> = why.split_whitespace().collect();
    format!("{test}\t{need}\t{}\n", why.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_one_whatever_the_reason_holds() {
        assert_eq!(
            line("groups::made", Need::Cgroups, "denied:\n\tread-only"),
            "groups::made\tcgroups\tdenied: read-only\n"
        );
    }

    #[test]
    fn a_variable_names_something_that_is_there() {
        assert!(
            provided("WEIR_NEVER_SET").is_err_and(|lacking| lacking.why.contains("WEIR_NEVER_SET"))
        );
        assert!(provided("CARGO_MANIFEST_DIR").is_ok_and(|folder| folder.is_dir()));
    }
}
