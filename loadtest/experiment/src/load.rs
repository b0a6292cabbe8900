// SPDX-License-Identifier: Apache-2.0
//! k6 against a fleet, and its outcome.
//!
//! ```text
//!  scenario.json ─> requests, plan ─> k6 ──> 2 Envoys (callers) ──> hosts (emulated)
//!                       │             │            ▲                  │
//!                       │             │            └── weir-control <─┘   way `weir` only
//!                       └── verdict <─┴─ k6.json     new processes for every way
//! ```

mod figures;
mod k6;
mod mesh;
mod report;
mod stage;
mod table;
#[cfg(test)]
mod tests;
mod tried;
mod verdict;
mod ways;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use serde::Serialize;
use weir_replay::scenario::{self, Plan, Scenario};
use weir_replay::workload;
use weir_report::Report;
use weir_stage::busy::Busy;
use weir_stage::command::Run as _;
use weir_stage::machine;
use weir_stage::processes::Processes;

use self::k6::K6;
use self::stage::Stage;
use self::table::Text;
pub use self::tried::Tried;
pub use self::ways::Way;
use crate::origin::Origin;
use crate::progress::Progress;
use crate::sampler::{self, Sampler};
use crate::variant::Variant;
use crate::verdict::Verdict;
use crate::{Experiment, driver};

/// Starting the processes of a way and making k6's virtual users.
const AROUND: Duration = Duration::from_secs(10);

/// Flags of a load.
#[derive(clap::Args)]
pub struct Args {
    /// One of loadtest/scenarios, by its name
    #[arg(required_unless_present = "list")]
    scenario: Option<String>,
    /// Print the scenarios and what each is to show, and run nothing
    #[arg(long)]
    list: bool,
    /// Shorten or stretch all stages so that it lasts so many seconds for each way
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// Who chooses hosts, and protects them from too much work: weir, least_request, bounded_ring_hash, maglev,
    /// weighted, subset, admission_control, adaptive_concurrency, or all; repeatable
    #[arg(long, value_name = "WAY", default_value = "weir")]
    way: Vec<String>,
    /// Surroundings of the fleet. In the mesh the way is Weir's
    #[arg(long, value_enum, default_value = "static")]
    against: Fleet,
    /// In which order a host takes the jobs that wait
    #[arg(long, value_enum, default_value = "priority")]
    queue: Queue,
    /// Of the requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Fail where Weir misses an objective
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    programs: Programs,
}

/// Programs and files that it needs.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = crate::driver::GIVEN)]
pub struct Programs {
    #[command(flatten)]
    fleet: crate::programs::Programs,
    /// k6
    #[arg(long, value_name = "FILE")]
    k6: PathBuf,
    /// Consul, for a fleet in a mesh
    #[arg(long, value_name = "FILE")]
    consul: Option<PathBuf>,
    /// Scenarios
    #[arg(long, value_name = "FOLDER", default_value = "loadtest/scenarios")]
    scenarios: PathBuf,
    /// What k6 runs
    #[arg(long, value_name = "FILE", default_value = "loadtest/k6/load.js")]
    script: PathBuf,
}

/// Where the fleet stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Fleet {
    /// Hosts behind the callers' Envoys, which are configured statically or told by weir-control
    Static,
    /// Hosts behind sidecars of their own, in Consul Connect
    Mesh,
}

/// In which order a host takes the jobs that wait for one of its cores.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Queue {
    /// The most important first, as document 001's hosts do
    Priority,
    /// As they came, as most servers do
    Arrival,
}

/// The experiment: a way a turn.
pub struct Load {
    args: Args,
    ways: Vec<Way>,
    made: Made,
    run: Run,
    folder: PathBuf,
    progress: Progress,
}

/// A workload with its plan, in files.
struct Made {
    workload: PathBuf,
    plan_file: PathBuf,
    plan: Plan,
}

/// What is the same for all ways: `run.json`.
#[derive(Serialize)]
struct Run {
    #[serde(flatten)]
    origin: Origin,
    plan: Plan,
}

impl Experiment for Load {
    const NAME: &'static str = "load";
    const TABLE: &'static str = "table.txt";
    const TABLE_HAS_VERDICTS: bool = true;
    type Args = Args;
    type Turn = Way;
    type Round = Tried;

    fn listing(args: &Args) -> Result<Option<String>> {
        let scenarios = &args.programs.scenarios;
        if args.list {
            return Ok(Some(list(scenarios)?));
        }
        let (file, ways) = (args.file()?, ways(&args.way)?);
        let name = args.scenario.as_deref().unwrap_or_default();
        ensure!(
            file.is_file(),
            "there is no scenario {name}: `cargo xtask load --list` names them"
        );
        ensure!(
            args.against == Fleet::Static || ways == [Way::Weir],
            "in the mesh the callers' sidecars have Weir: Envoy's own ways are compared by --against static"
        );
        Ok(None)
    }

    fn set_up(args: Args, folder: &Path) -> Result<Self> {
        let ways = ways(&args.way)?;
        let made = make(&args.file()?, args.seconds, args.seed, folder)?;
        let plan = made.plan.clone();
        let header = args.header(&plan);
        let origin = Origin::now(args.command(), header, args.programs.versions()?);
        println!("\n{}\n", origin.header);
        let run = Run { origin, plan };
        driver::write_json(&folder.join("run.json"), &run)?;
        let each = Duration::from_secs_f64(run.plan.length()) + AROUND;
        Ok(Self {
            progress: Progress::new(ways.len(), each),
            args,
            ways,
            made,
            run,
            folder: folder.to_owned(),
        })
    }

    fn turns(&self) -> Vec<Way> {
        self.ways.clone()
    }

    fn play(&mut self, way: &Way) -> Result<Vec<Tried>> {
        self.progress.next_way(&way.name());
        Ok(vec![self.try_way(*way).with_context(|| way.name())?])
    }

    fn table(&self, ways: &[Tried]) -> String {
        let closing: String = ways.iter().map(Tried::closing).collect();
        format!("{}\n\n{}\n{closing}", self.run.origin.header, Text(ways))
    }

    fn verdicts(&self, ways: &[Tried]) -> Vec<Verdict> {
        let verdicts = ways.iter().flat_map(|tried| &tried.verdicts);
        verdicts.cloned().collect()
    }

    fn report(&self, ways: &[Tried]) -> Option<Report> {
        Some(report::page(&self.run, ways))
    }
}

/// The names on the command line; `all` is all of them.
fn ways(names: &[String]) -> Result<Vec<Way>> {
    let mut ways = Vec::new();
    for name in names {
        let all = Way::value_variants().iter();
        let known = all.filter(|way| name == "all" || way.name() == *name);
        let known: Vec<Way> = known.copied().collect();
        if known.is_empty() {
            let all: Vec<String> = Way::value_variants().iter().map(Way::name).collect();
            bail!("there is no way {name}: {}, all", all.join(", "));
        }
        let again = known.into_iter().filter(|way| !ways.contains(way));
        ways.extend(again.collect::<Vec<_>>());
    }
    Ok(ways)
}

/// The scenarios by name.
fn list(folder: &Path) -> Result<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let file = entry?.path();
        if file.extension().is_some_and(|end| end == "json") {
            let Scenario {
                name, objective, ..
            } = Scenario::read(&file)?;
            all.push(format!("{name:<14} {objective}\n"));
        }
    }
    all.sort();
    Ok(all.concat())
}

/// Makes the requests, in the folder.
fn make(scenario: &Path, seconds: Option<u64>, seed: u64, folder: &Path) -> Result<Made> {
    let fleet = scenario::Fleet::Cores((stage::HOSTS * stage::CORES) as f64);
    let lasting = seconds.map(Duration::from_secs);
    let (requests, plan) = Scenario::read(scenario)?.make(fleet, lasting, seed)?;
    ensure!(
        !requests.is_empty(),
        "{}: no request comes at these rates in this time",
        scenario.display()
    );
    let made = Made {
        workload: folder.join("workload.ndjson"),
        plan_file: folder.join("plan.json"),
        plan,
    };
    workload::save(&requests, &made.workload)
        .with_context(|| format!("writing {}", made.workload.display()))?;
    driver::write_json(&made.plan_file, &made.plan)?;
    Ok(made)
}

impl Args {
    /// Of the scenario.
    fn file(&self) -> Result<PathBuf> {
        let name = self.scenario.as_ref().context("no scenario is named")?;
        Ok(self.programs.scenarios.join(format!("{name}.json")))
    }

    /// The command that these are of.
    fn command(&self) -> String {
        let scenario = self.scenario.as_deref().unwrap_or_default();
        let mut command = format!("cargo xtask load {scenario}");
        if let Some(seconds) = self.seconds {
            command += &format!(" --seconds {seconds}");
        }
        for way in &self.way {
            command += &format!(" --way {way}");
        }
        if self.against == Fleet::Mesh {
            command += " --against mesh";
        }
        if self.queue == Queue::Arrival {
            command += " --queue arrival";
        }
        command + &format!(" --seed {}", self.seed)
    }

    fn header(&self, plan: &Plan) -> String {
        let stages = plan.stages.iter().map(|stage| {
            let of = stage
                .core_seconds(&plan.capacity)
                .map_or(f64::NAN, |could| stage.run_s / could);
            format!(
                "{} {:.0} s at {of:.2}",
                stage.name,
                stage.to_s - stage.from_s
            )
        });
        let stages: Vec<String> = stages.collect();
        format!(
            "scenario: {}: {}\n\
             requests: {} in {:.0} s, Poisson or as recorded; an answer counts within {:.0} ms; seed {}\n\
             stages:   {} of the capacity\n\
             hosts:    {} with {} EMULATED cores: a job sleeps for its time and burns no CPU; a queue by {}\n\
             capacity: {:.0} cores ÷ {:.1} ms of mean run time = {:.1}/s: known exactly, not measured\n\
             callers:  {} Envoys of one worker thread{}\n\
             machine:  {}",
            plan.scenario,
            plan.objective,
            plan.requests,
            plan.length(),
            plan.deadline_ms,
            plan.seed,
            stages.join(", "),
            stage::HOSTS,
            stage::CORES,
            self.queue.name(),
            plan.capacity.cores.unwrap_or(f64::NAN),
            plan.mean_run_ms,
            plan.capacity.requests_per_s,
            stage::CALLERS.count,
            match self.against {
                Fleet::Static => "",
                Fleet::Mesh => ", sidecars of Consul Connect: mTLS to a sidecar at each host",
            },
            machine::describe(),
        )
    }
}

impl Programs {
    /// By name.
    fn versions(&self) -> Result<Vec<(String, String)>> {
        let mut versions = self.fleet.versions()?;
        // `k6 v1.8.1 (go1.26.8, linux/amd64)`.
        let said = Command::new(&self.k6).arg("version").captured()?;
        let version = said.split_whitespace().nth(1).unwrap_or_default();
        versions.push(("k6".to_owned(), version.trim_start_matches('v').to_owned()));
        Ok(versions)
    }
}

impl Load {
    /// Loads new processes of a way.
    fn try_way(&mut self, way: Way) -> Result<Tried> {
        let started = Instant::now();
        let Self { args, made, .. } = self;
        let plan = &made.plan;
        let folder = self.folder.join(way.name());
        let mut processes = Processes::bound_in(folder.clone())?;
        self.progress.say("starting", started.elapsed());
        let Stage {
            callers,
            sights,
            mesh: _mesh,
        } = match args.against {
            Fleet::Static => stage::start(args, way, plan.deadline_ms, &mut processes, &folder)?,
            Fleet::Mesh => mesh::start(args, &folder)?,
        };
        let length = plan.length().ceil();
        let busy = Busy::start();
        let looking = UNIX_EPOCH.elapsed()?.as_secs_f64();
        let sampler = Sampler::start(sights);
        let k6 = K6 {
            programs: &args.programs,
            made,
        };
        let progress = &mut self.progress;
        let figures = k6.send(&mut processes, &callers, &folder, |sent| {
            let sending = format!("sending, {} of {length} s", sent.as_secs());
            progress.say(&sending, started.elapsed());
        })?;
        let (busy, mut samples) = (busy.share(), sampler.end()?);
        // k6 has made its virtual users meanwhile.
        let before = figures.began_ms / 1e3 - looking;
        samples.retain(|sample| sample.at >= before);
        samples.iter_mut().for_each(|sample| sample.at -= before);
        driver::write_lines(&folder.join(sampler::FILE), &samples)?;
        let asserted = args.strict && way == Way::Weir;
        let tried = Tried {
            way: way.name(),
            parameters: way.parameters(),
            verdicts: verdict::verdicts(plan, &figures, asserted),
            figures,
            busy,
            samples,
        };
        progress.end_way(&tried.sender());
        Ok(tried)
    }
}
