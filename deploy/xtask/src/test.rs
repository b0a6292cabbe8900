// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask test`: everything that must hold before a change lands.
//!
//! A failing step does not stop the others, so one run reports all there is to repair.

mod envoys;
pub(crate) mod licences;
mod miri;
mod native;
mod set_up;
mod suite;
mod summary;
mod untested;
pub(crate) mod whole_envoys;

use anyhow::{Result, bail, ensure};
use clap::ValueEnum;

use crate::experiment::Flags;
use crate::packages::Packages;
use crate::probe::{self, Checked};
use crate::test::set_up::SetUp;
use crate::test::suite::Report;
use crate::test::summary::{Outcome, Summary};
use crate::tools::EVENTS_AGENT;
use crate::workspace::Workspace;
use crate::{build_filter, experiment, kube, release, sizes, tools};
use weir_stage::command::Run;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these steps
    #[arg(long, value_name = "STEP")]
    only: Vec<Step>,
    /// Only tests whose name contains this
    #[arg(long, value_name = "NAME")]
    filter: Option<String>,
    /// Only the tests of this package, and no other step unless `--only` names it
    #[arg(long, short, value_name = "NAME")]
    package: Option<String>,
    /// Random kills and losses at the governor as often as it is held to: 10,000 sequences, 100 runs of processes
    #[arg(long)]
    long: bool,
    /// Also what takes too long for every change: all of a kind of which one is played (faults, reloads, guests, soak,
    /// fleet), other Envoys, the size of weir-control, unsafe code under Miri, weir-control against a real API server,
    /// requests through a real Envoy Gateway, a whole release, dependencies held against today's advisories
    #[arg(long)]
    nightly: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Step {
    /// Formatting
    Fmt,
    /// Lints of the whole workspace
    Clippy,
    /// Lints of the filter as it is built for Envoy
    ClippyWasm,
    /// Documentation in the code: its links lead somewhere
    Doc,
    /// All tests
    Test,
    /// The filter as a dynamic module: its own tests, and of whole Envoys some by day, all with `--nightly`
    Native,
    /// The filter in other releases of Envoy than the pinned one; only with `--nightly` or by name
    Envoys,
    /// The Java agent's own tests, on its packed jar
    Java,
    /// The simulator and the demo have the same order of policies
    Agreement,
    /// Sizes of what is installed, as they were kept
    Sizes,
    /// What the governor runs in the kernel is what its source makes
    Probe,
    /// Unsafe code under Miri, by a nightly compiler; only with `--nightly` or by name
    Miri,
    /// weir-control against a real API server of Kubernetes, requests through a real Envoy Gateway; only with `--nightly`
    /// or by name
    Kube,
    /// A release is made, and holds what its guide says; only with `--nightly` or by name
    Release,
    /// Licences, sources and banned crates
    Deny,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let mut summary = Summary::default();
    let mut report = None;
    let only = match (args.only.as_slice(), &args.package) {
        // The other steps are the workspace's.
        ([], Some(_)) => &[Step::Test],
        (only, _) => only,
    };
    for step in Step::value_variants() {
        if !only.is_empty() && !only.contains(step) {
            continue;
        }
        match step {
            Step::Fmt => summary.run("fmt", || fmt(workspace)),
            Step::Clippy => summary.run("clippy", || clippy(workspace)),
            Step::ClippyWasm => summary.run("clippy-wasm", || clippy_wasm(workspace)),
            Step::Doc => summary.run("doc", || doc(workspace)),
            Step::Test => report = Some(set_up_and_test(workspace, args, &mut summary)),
            Step::Native => summary.run("native", || native::run(workspace, args.nightly)),
            Step::Envoys if !args.nightly && args.only.is_empty() => {}
            Step::Envoys => summary.run("envoys", || envoys::run(workspace)),
            Step::Java => summary.run("java", || {
                tools::test(workspace, EVENTS_AGENT)?;
                Ok(Outcome::Passed)
            }),
            Step::Agreement => summary.run("agreement", || {
                let flags = Flags::default();
                experiment::run(workspace, "agreement", &flags, experiment::agreement)?;
                Ok(Outcome::Passed)
            }),
            Step::Sizes => summary.run("sizes", || {
                sizes::check(workspace, args.nightly)?;
                Ok(Outcome::Passed)
            }),
            Step::Probe => summary.run("probe", || {
                Ok(match probe::check(workspace)? {
                    Checked::Object => Outcome::Passed,
                    Checked::Source => Outcome::Skipped(
                        "no clang 14 to compile it again: only the sum of its source was compared",
                    ),
                })
            }),
            Step::Miri if !args.nightly && args.only.is_empty() => {}
            Step::Miri => summary.run("miri", || miri::run(workspace)),
            Step::Kube if !args.nightly && args.only.is_empty() => {}
            Step::Kube => summary.run("kube", || {
                kube::test(workspace)?;
                Ok(Outcome::Passed)
            }),
            Step::Release if !args.nightly && args.only.is_empty() => {}
            Step::Release => summary.run("release", || {
                release::test(workspace)?;
                Ok(Outcome::Passed)
            }),
            Step::Deny => summary.run("deny", || licences::check(workspace, args.nightly)),
        }
    }
    println!("\n{summary}");
    if let Some(report) = report {
        println!("{report}");
    }
    ensure!(!summary.failed(), "some steps failed: see above");
    Ok(())
}

fn fmt(workspace: &Workspace) -> Result<Outcome> {
    if workspace
        .cargo()
        .args(["fmt", "--all", "--check", "--", "--files-with-diff"])
        .shown()
        .is_err()
    {
        bail!("the files above are not formatted: run `cargo fmt --all`");
    }
    Ok(Outcome::Passed)
}

fn clippy(workspace: &Workspace) -> Result<Outcome> {
    // "All" leaves out the tests that `cargo test` leaves out: they are named besides.
    for targets in [&["--all-targets"][..], &["--test", "*"]] {
        workspace
            .cargo()
            .args(["clippy", "--workspace"])
            .args(targets)
            .args(["--", "-D", "warnings"])
            .shown()?;
    }
    Ok(Outcome::Passed)
}

fn clippy_wasm(workspace: &Workspace) -> Result<Outcome> {
    tools::install_rust_target(workspace, build_filter::TARGET)?;
    workspace
        .cargo()
        .args([
            "clippy",
            "--package",
            "weir-filter",
            "--package",
            "weir-bench-no-op",
            "--lib",
            "--target",
            build_filter::TARGET,
        ])
        .args(["--", "-D", "warnings"])
        .shown()?;
    Ok(Outcome::Passed)
}

/// Rustdoc's lints, which no compiler has. Comments are for whoever changes the code, so private items count too, and
/// public ones may link to them. Dependencies are not documented, and clippy has checked them already.
fn doc(workspace: &Workspace) -> Result<Outcome> {
    const FLAGS: &str = "--document-private-items -D warnings -A rustdoc::private_intra_doc_links";
    workspace
        .cargo()
        .args(["doc", "--workspace", "--no-deps"])
        .env("RUSTDOCFLAGS", FLAGS)
        .shown()?;
    Ok(Outcome::Passed)
}

/// The tests, after what they need. A step that failed leaves its tests to be skipped, and the run has failed.
fn set_up_and_test(workspace: &Workspace, args: &Args, summary: &mut Summary) -> Report {
    let mut report = Report::default();
    let found = Packages::find(workspace).and_then(|packages| {
        let needs = packages.needs(args.package.as_deref())?;
        Ok((packages, needs))
    });
    let (packages, needs) = match found {
        Ok(found) => found,
        Err(error) => {
            summary.run("test", || Err(error));
            return report;
        }
    };
    let set_up = SetUp::make(workspace, &needs, summary);
    summary.run("test", || {
        suite::run(workspace, &packages, args, &set_up, &mut report)?;
        Ok(Outcome::Passed)
    });
    report
}
