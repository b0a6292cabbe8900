// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask test`: everything that must hold before a change lands.
//!
//! A failing step does not stop the others, so one run reports all there is to repair.

mod licences;
mod suite;
mod summary;

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::ValueEnum;

use crate::probe::{self, Checked};
use crate::test::suite::Counts;
use crate::test::summary::{Outcome, Summary};
use crate::tools::{BATCH, CONSUL, EVENTS_AGENT, MEMCACHED, PROMETHEUS, SEARCH_NODE};
use crate::workspace::Workspace;
use crate::{build_filter, demo, load, packaging, sizes, tools};
use weir_stage::command::Run;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these steps
    #[arg(long, value_name = "STEP")]
    only: Vec<Step>,
    /// Only tests whose name contains this
    #[arg(long, value_name = "NAME")]
    filter: Option<String>,
    /// Only the tests of this package
    #[arg(long, short, value_name = "NAME")]
    package: Option<String>,
    /// Random kills and losses at the governor as often as it is held to: 10,000 sequences, 100 runs of processes
    #[arg(long)]
    long: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Step {
    /// Formatting
    Fmt,
    /// Lints of the whole workspace
    Clippy,
    /// Lints of the filter as it is built for Envoy
    ClippyWasm,
    /// All tests
    Test,
    /// The Java agent's own tests, on its packed jar
    Java,
    /// The simulator and the demo have the same order of policies
    Agreement,
    /// Sizes of what is installed, as they were kept
    Sizes,
    /// What the governor runs in the kernel is what its source makes
    Probe,
    /// Licences, sources and banned crates
    Deny,
}

/// What whole-process tests need, with absolute paths.
struct SetUp {
    envoy: PathBuf,
    filter: PathBuf,
    /// What a guest with a real cpufreq is made of, where it can be had.
    guest: Option<PathBuf>,
    /// memcached, the batch jobs beside it, Consul, Prometheus and k6 by name, those that can be had.
    programs: Vec<(&'static str, PathBuf)>,
    /// Where Maven could build them; tests that need them say so.
    java: Option<Java>,
}

struct Java {
    events_agent: PathBuf,
    search_node: PathBuf,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let mut summary = Summary::default();
    let mut counts = None;
    for step in Step::value_variants() {
        if !args.only.is_empty() && !args.only.contains(step) {
            continue;
        }
        match step {
            Step::Fmt => summary.run("fmt", || fmt(workspace)),
            Step::Clippy => summary.run("clippy", || clippy(workspace)),
            Step::ClippyWasm => summary.run("clippy-wasm", || clippy_wasm(workspace)),
            Step::Test => counts = Some(set_up_and_test(workspace, args, &mut summary)),
            Step::Java => summary.run("java", || {
                tools::test(workspace, EVENTS_AGENT)?;
                Ok(Outcome::Passed)
            }),
            Step::Agreement => summary.run("agreement", || {
                demo::agreement::check(workspace)?;
                Ok(Outcome::Passed)
            }),
            Step::Sizes => summary.run("sizes", || {
                sizes::check(workspace)?;
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
            Step::Deny => summary.run("deny", || licences::check(workspace)),
        }
    }
    println!("\n{summary}");
    if let Some(counts) = counts {
        println!("{counts}");
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
    workspace
        .cargo()
        .args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ])
        .shown()?;
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

/// The tests, after everything that they need. Without it they would all fail for one reason, so
/// they are not started.
fn set_up_and_test(workspace: &Workspace, args: &Args, summary: &mut Summary) -> Counts {
    let mut envoy = None;
    summary.run("tools", || {
        envoy = Some(tools::install(workspace)?.envoy);
        Ok(Outcome::Passed)
    });
    let mut guest = None;
    summary.run("guest", || {
        Ok(match tools::guest(workspace) {
            Ok(folder) => {
                guest = Some(folder);
                Outcome::Passed
            }
            Err(error) => {
                println!("THE GOVERNOR IS NOT TESTED ON A REAL CPUFREQ: {error:#}");
                Outcome::Skipped("no QEMU guest can be had: the governor meets no real cpufreq")
            }
        })
    });
    let mut programs = Vec::new();
    for name in [MEMCACHED, PROMETHEUS, CONSUL, load::TOOL]
        .into_iter()
        .chain(BATCH)
    {
        summary.run(name, || {
            Ok(match tools::any_program(workspace, name) {
                Ok(program) => {
                    programs.push((name, program));
                    Outcome::Passed
                }
                Err(error) => {
                    println!("THE TESTS THAT RUN {name} ARE SKIPPED: {error:#}");
                    Outcome::Skipped("it cannot be had: no test meets the real program")
                }
            })
        });
    }
    summary.run("packaging", || {
        let readers = packaging::readers(workspace);
        let all = packaging::are_all(&readers);
        programs.extend(readers);
        Ok(if all {
            Outcome::Passed
        } else {
            Outcome::Skipped("not all can be had that what users install is held against")
        })
    });
    let mut filter = None;
    summary.run("build-filter", || {
        filter = Some(build_filter::run(workspace)?);
        Ok(Outcome::Passed)
    });
    summary.run("binaries", || {
        workspace.build_programs()?;
        Ok(Outcome::Passed)
    });
    let mut java = None;
    summary.run("java-build", || {
        java = Some(Java {
            events_agent: tools::build(workspace, EVENTS_AGENT)?,
            search_node: tools::build(workspace, SEARCH_NODE)?,
        });
        Ok(Outcome::Passed)
    });
    let mut counts = Counts::default();
    summary.run("test", || {
        let (Some(envoy), Some(filter)) = (envoy, filter) else {
            bail!("not started: what it needs could not be set up");
        };
        let set_up = SetUp {
            envoy,
            filter,
            guest,
            programs,
            java,
        };
        suite::run(workspace, args, &set_up, &mut counts)?;
        Ok(Outcome::Passed)
    });
    counts
}
