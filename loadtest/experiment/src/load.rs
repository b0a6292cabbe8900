// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask load SCENARIO`: k6 against a fleet, and its outcome.
//!
//! ```text
//!  scenario.json ─> weir-replay ─> requests, plan ─> k6 ──> 2 Envoys (callers) ──> hosts (emulated)
//!                                      │             │            ▲                  │
//!                                      │             │            └── weir-control <─┘   way `weir` only
//!                                      └── verdict <─┴─ k6.json     new processes for every way
//!                                              └─> table.txt, run.json, report.html
//! ```

mod against;
mod figures;
mod k6;
mod kept;
mod mesh;
mod plan;
mod report;
mod stage;
mod table;
#[cfg(test)]
mod tests;
mod verdict;
mod ways;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use weir_stage::busy::Busy;
use weir_stage::command::Run as _;
use weir_stage::processes::Processes;
use weir_stage::{interrupt, machine};

use crate::demo::kept as demo_kept;
use crate::demo::programs::Programs;
use crate::demo::sampler::{Sampler, samples, samples::Sample};
use crate::load::against::{Fleet, Queue};
use crate::load::figures::Figures;
use crate::load::k6::{K6, Made};
use crate::load::kept::{Run, Tried};
use crate::load::plan::Plan;
use crate::load::table::Table;
use crate::load::ways::Way;
use crate::tools;
use crate::workspace::Workspace;

/// The tool that sends.
pub(crate) const TOOL: &str = "k6";
/// The record of running processes, in the folder of a way.
const RECORD: &str = "processes.json";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// One of loadtest/scenarios, by its name
    #[arg(required_unless_present = "list")]
    scenario: Option<String>,
    /// Print the scenarios and what each is to show, and run nothing
    #[arg(long)]
    list: bool,
    /// Shorten or stretch all stages so that it lasts so many seconds for each way
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// Protection of the hosts from too much work: weir, least_request, admission_control,
    /// adaptive_concurrency, or all; repeatable
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
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let folder = workspace.root.join("loadtest/scenarios");
    let Some(scenario) = args.scenario.as_ref().filter(|_| !args.list) else {
        return list(&folder);
    };
    let file = folder.join(format!("{scenario}.json"));
    ensure!(
        file.is_file(),
        "there is no scenario {scenario}: `cargo xtask load --list` names them"
    );
    let ways = ways(&args.way)?;
    ensure!(
        args.against == Fleet::Static || ways == [Way::Weir],
        "in the mesh the callers' sidecars have Weir: Envoy's own ways are compared by --against static"
    );
    let load = Load::prepare(workspace, args)?;
    let begun = demo_kept::now()?;
    let made = load.make(&file, args.seconds.map(Duration::from_secs), args.seed)?;
    let header = load.header(&made.plan);
    println!("\n{header}\n");
    let tried = ways
        .into_iter()
        .map(|way| load.try_way(way, &made).context(way.name()));
    let (ways, samples): (Vec<_>, Vec<_>) = tried.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let run = Run {
        begun,
        command: args.command(scenario),
        header,
        versions: load.versions(workspace)?,
        plan: made.plan,
        ways,
    };
    run.write(&load.folder)?;
    let told = format!("{}\n{}", Table(&run.ways), run.closing());
    fs::write(
        load.folder.join("table.txt"),
        format!("{}\n\n{told}\n", run.header),
    )?;
    println!("\n{told}\n");
    let report = report::write(&run, &samples, &load.folder)?;
    println!("The report is {}", workspace.shown(&report));
    println!(
        "k6's own summaries, every configuration and log are kept in {}",
        workspace.shown(&load.folder)
    );
    ensure!(
        !args.strict || !run.misses(Way::Weir),
        "Weir misses an objective: see above"
    );
    Ok(())
}

/// The names on the command line; `all` is all of them.
fn ways(names: &[String]) -> Result<Vec<Way>> {
    let mut ways = Vec::new();
    for name in names {
        let known: Vec<Way> = Way::ALL
            .into_iter()
            .filter(|way| name == "all" || way.name() == name)
            .collect();
        if known.is_empty() {
            let known = Way::ALL.map(Way::name).join(", ");
            bail!("there is no way {name}: {known}, all");
        }
        ways.extend(
            known
                .into_iter()
                .filter(|way| !ways.contains(way))
                .collect::<Vec<_>>(),
        );
    }
    Ok(ways)
}

/// The scenarios by name.
fn list(folder: &Path) -> Result<()> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let file = entry?.path();
        if file
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            let text = fs::read(&file)?;
            let scenario: serde_json::Value = serde_json::from_slice(&text)
                .with_context(|| format!("reading {}", file.display()))?;
            let text = |field: &str| scenario[field].as_str().unwrap_or_default().to_owned();
            all.push((text("name"), text("objective")));
        }
    }
    all.sort();
    for (name, objective) in all {
        println!("{name:<14} {objective}");
    }
    Ok(())
}

impl Args {
    /// The command that these are of.
    fn command(&self, scenario: &str) -> String {
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
}

/// One run of the command.
struct Load {
    programs: Programs,
    k6: PathBuf,
    script: PathBuf,
    /// Only for a fleet in a mesh.
    consul: Option<PathBuf>,
    queue: Queue,
    /// Everything that it leaves is kept here.
    folder: PathBuf,
}

impl Load {
    /// Builds every program that it runs, and makes its folder.
    fn prepare(workspace: &Workspace, args: &Args) -> Result<Self> {
        let consul = match args.against {
            Fleet::Static => None,
            Fleet::Mesh => Some(tools::build(workspace, tools::CONSUL)?),
        };
        interrupt::catch()?;
        Ok(Self {
            programs: Programs::build(workspace, "load")?,
            k6: tools::build(workspace, TOOL)?,
            script: workspace.root.join("loadtest/k6/load.js"),
            consul,
            queue: args.queue,
            folder: workspace.new_folder("load")?,
        })
    }

    /// Makes the requests, in the folder.
    fn make(&self, scenario: &Path, lasting: Option<Duration>, seed: u64) -> Result<Made> {
        let workload = self.folder.join("workload.ndjson");
        let plan_file = self.folder.join("plan.json");
        let mut command = Command::new(&self.programs.replay);
        command
            .args(["workload", "scenario", "--scenario"])
            .arg(scenario)
            .args(["--cores", &(stage::HOSTS * stage::CORES).to_string()])
            .args(["--seed", &seed.to_string()])
            .arg("--out")
            .arg(&workload)
            .arg("--report")
            .arg(&plan_file);
        if let Some(lasting) = lasting {
            command.args(["--lasting", &format!("{}ms", lasting.as_millis())]);
        }
        command.captured().context("making the workload")?;
        let plan = Plan::read(&plan_file)?;
        Ok(Made {
            workload,
            plan_file,
            plan,
        })
    }

    /// The versions of the programs.
    fn versions(&self, workspace: &Workspace) -> Result<Vec<(String, String)>> {
        let mut versions = self.programs.versions(workspace)?;
        // `k6 v1.8.1 (go1.26.8, linux/amd64)`.
        let said = Command::new(&self.k6).arg("version").captured()?;
        let version = said.split_whitespace().nth(1).unwrap_or_default();
        versions.push((TOOL.to_owned(), version.trim_start_matches('v').to_owned()));
        Ok(versions)
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
            match self.queue {
                Queue::Priority => "priority",
                Queue::Arrival => "arrival",
            },
            plan.capacity.cores.unwrap_or(f64::NAN),
            plan.mean_run_ms,
            plan.capacity.requests_per_s,
            stage::CALLERS,
            match self.consul {
                None => "",
                Some(_) => ", sidecars of Consul Connect: mTLS to a sidecar at each host",
            },
            machine::describe(),
        )
    }

    /// Loads new processes of a way.
    fn try_way(&self, way: Way, made: &Made) -> Result<(Tried, Vec<Sample>)> {
        let plan = &made.plan;
        let folder = self.folder.join(way.name());
        let mut processes = Processes::new(folder.clone())?.bound(folder.join(RECORD));
        println!("{}: starting", way.name());
        let deadline = plan.deadline_ms;
        let (programs, queue) = (&self.programs, self.queue);
        let against = match &self.consul {
            None => stage::start(programs, way, queue, deadline, &mut processes, &folder)?,
            Some(consul) => mesh::start(programs, consul, queue, &folder)?,
        };
        println!("{}: sending for {:.0} s", way.name(), plan.length());
        let k6 = K6 {
            program: self.k6.clone(),
            script: self.script.clone(),
            workload: made.workload.clone(),
            plan_file: made.plan_file.clone(),
        };
        let busy = Busy::start();
        let looking = UNIX_EPOCH.elapsed()?.as_secs_f64();
        let sampler = Sampler::start(against.sights);
        let figures: Figures = k6.send(&mut processes, &against.callers, plan, &folder, |_| ())?;
        let (busy, mut samples) = (busy.share(), sampler.end()?);
        // k6 has made its virtual users meanwhile.
        let before = figures.began_ms / 1e3 - looking;
        samples.retain(|sample| sample.at >= before);
        samples.iter_mut().for_each(|sample| sample.at -= before);
        let file = folder.join(samples::FILE);
        fs::write(&file, samples::written(&samples))
            .with_context(|| format!("writing {}", file.display()))?;
        let tried = Tried {
            way: way.name().to_owned(),
            parameters: way.parameters(),
            verdicts: verdict::verdicts(plan, &figures),
            figures,
            busy,
        };
        println!("{}: {}", way.name(), tried.sender());
        Ok((tried, samples))
    }
}
