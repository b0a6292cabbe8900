// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask demo`: one workload, sent five ways through real Envoys, and a table.
//!
//! ```text
//!  replay ──> 2 Envoys (callers) ──> 6 emulated hosts      new processes for every way
//!                 ▲                        │
//!                 └────── weir-control <───┘               only where Weir chooses
//! ```

mod control;
mod envoy;
mod hosts;
mod http;
mod interrupt;
mod machine;
mod plan;
mod processes;
mod progress;
mod replay;
mod results;
mod table;
mod verdict;
mod ways;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

use crate::command::Run;
use crate::demo::plan::Plan;
use crate::demo::processes::Processes;
use crate::demo::progress::Progress;
use crate::demo::replay::Workload;
use crate::demo::results::Figures;
use crate::demo::table::Table;
use crate::demo::ways::{Kind, WAYS, Way};
use crate::workspace::Workspace;
use crate::{build_filter, tools};

/// From the start of the sidecars to the filter's first choice from a table.
const FIRST_TABLE: Duration = Duration::from_secs(20);

const EXPLANATION: &str = "\
duration: of all requests, from the offset in the workload to the last answer or the giving up,
          back-off and retries included; wait: of those served, in which nothing ran for them
hit:      served requests that found their data; shed: attempts refused, each tried again;
failed:   requests without a good answer; uneven: deviation over mean of the hosts' mean waits
";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A quarter of the workload: under two minutes, and rougher figures
    #[arg(long)]
    quick: bool,
    /// Only the ways whose name contains this; repeatable
    #[arg(long, value_name = "NAME")]
    way: Vec<String>,
}

/// What is run, by absolute path.
struct Programs {
    envoy: PathBuf,
    filter: PathBuf,
    control: PathBuf,
    worker: PathBuf,
    replay: PathBuf,
}

/// One run of the command.
struct Demo {
    root: PathBuf,
    programs: Programs,
    plan: Plan,
    workload: Workload,
    /// Where everything that the run leaves is kept.
    folder: PathBuf,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let ways: Vec<&Way> = WAYS.iter().filter(|way| args.wants(way)).collect();
    ensure!(!ways.is_empty(), "no way has such a name: {}", names());
    interrupt::catch()?;
    let programs = Programs::build(workspace)?;
    let plan = Plan::new(args.quick);
    let folder = new_folder(workspace)?;
    let workload = replay::prepare(workspace, &programs.replay, &plan, &folder)?;
    let demo = Demo {
        root: workspace.root.clone(),
        programs,
        plan,
        workload,
        folder,
    };
    let header = demo.header();
    println!("\n{header}\n");
    let figures = demo.compare(&ways)?;
    let report = format!("{header}\n\n{}", tell(figures));
    let file = demo.folder.join("table.txt");
    fs::write(&file, &report).with_context(|| format!("writing {}", file.display()))?;
    println!("\n{report}");
    let folder = workspace.shown(&demo.folder);
    println!("Every request, configuration and log is kept in {folder}");
    Ok(())
}

fn tell(figures: Vec<Figures>) -> String {
    let (rows, all): (Vec<_>, Vec<_>) = figures
        .into_iter()
        .map(|way| (way.by_priority, way.all))
        .unzip();
    let table = Table(rows.into_iter().flatten().collect());
    let verdict = verdict::lines(&all).join("\n");
    format!("{table}\n{EXPLANATION}\n{verdict}\n")
}

impl Args {
    fn wants(&self, way: &Way) -> bool {
        self.way.is_empty() || self.way.iter().any(|part| way.name.contains(&**part))
    }
}

fn names() -> String {
    let names: Vec<&str> = WAYS.iter().map(|way| way.name).collect();
    names.join(", ")
}

impl Programs {
    fn build(workspace: &Workspace) -> Result<Self> {
        let envoy = tools::install(workspace)?.envoy;
        let filter = build_filter::run(workspace)?;
        let packages = ["weir-control", "weir-worker", "weir-replay"];
        println!("demo: building {}", packages.join(", "));
        let mut command = workspace.cargo();
        command.args(["build", "--release", "--bins"]);
        for package in packages {
            command.args(["--package", package]);
        }
        command.shown()?;
        let [control, worker, replay] =
            packages.map(|name| workspace.target.join("release").join(name));
        Ok(Self {
            envoy,
            filter,
            control,
            worker,
            replay,
        })
    }
}

fn new_folder(workspace: &Workspace) -> Result<PathBuf> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let folder = workspace.cache().join("demo").join(now.to_string());
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    Ok(folder)
}

impl Demo {
    /// Runs the ways one after another, each with new processes.
    fn compare(&self, ways: &[&'static Way]) -> Result<Vec<Figures>> {
        let mut progress = Progress::new(ways.len(), self.plan.replay + plan::AROUND);
        let mut figures = Vec::new();
        for way in ways {
            progress.next_way(way.name);
            figures.push(self.try_way(way, &mut progress).context(way.name)?);
        }
        Ok(figures)
    }

    fn try_way(&self, way: &Way, progress: &mut Progress) -> Result<Figures> {
        let started = Instant::now();
        let folder = self.folder.join(way.folder());
        let mut processes = Processes::new(folder.clone())?;
        progress.say("starting", started.elapsed());
        let callers = self.start(way, &mut processes, &folder)?;
        let plan = &self.plan;
        let sending = |sent: Duration| match plan.replay.checked_sub(sent) {
            Some(_) => format!("sending, {} of {} s", sent.as_secs(), plan.replay.as_secs()),
            None => "waiting for the last answers".to_owned(),
        };
        let records = self.workload.send(
            &mut processes,
            &self.programs.replay,
            &callers,
            plan.deadline,
            &folder,
            |sent| progress.say(&sending(sent), started.elapsed()),
        )?;
        progress.end_way(&format!("done in {} s", started.elapsed().as_secs()));
        Ok(Figures::new(way.name, &replay::PRIORITIES, &records))
    }

    /// Starts hosts, sidecars and, where Weir chooses, weir-control.
    fn start(
        &self,
        way: &Way,
        processes: &mut Processes,
        folder: &Path,
    ) -> Result<Vec<SocketAddr>> {
        let programs = &self.programs;
        let hosts = hosts::start(processes, &programs.worker, &self.plan, folder)?;
        let nodes: Vec<String> = (1..=self.plan.callers)
            .map(|n| format!("caller-{n}"))
            .collect();
        match way.kind {
            Kind::Envoy(balancer) => {
                let start = |node: &String| {
                    let bootstrap = envoy::alone(node, balancer, &hosts).to_string();
                    envoy::start(processes, &programs.envoy, node, &bootstrap, folder)
                };
                nodes.iter().map(start).collect()
            }
            Kind::Weir {
                selection,
                overload,
            } => {
                let config = control::config(selection, overload, &hosts, &programs.filter);
                let control = control::start(processes, &programs.control, &config, folder)?;
                let mut start = |node: &String| {
                    let bootstrap = envoy::with_weir(&self.root, node, control.xds)?;
                    let caller =
                        envoy::start(processes, &programs.envoy, node, &bootstrap, folder)?;
                    wait_for_table(processes, node, caller)?;
                    Ok(caller)
                };
                nodes.iter().map(&mut start).collect()
            }
        }
    }

    fn header(&self) -> String {
        let Plan {
            hosts,
            cores,
            callers,
            cache_bytes,
            fetch_bytes_per_second,
            ..
        } = &self.plan;
        format!(
            "{workload}\n\
             hosts:    {hosts} with {cores} EMULATED cores: a job sleeps for its time and burns no CPU; {cache_bytes} of \
             cache, empty at the start, filled at {fetch_bytes_per_second}/s\n\
             callers:  {callers} Envoys; {seconds} s for each way; who has no good answer {deadline} s later gives up\n\
             policies: breaker at {breaker} queued jobs, dagor at a mean queuing delay of {threshold}, in steps of {step:.0} %\n\
             machine:  {machine}",
            workload = self.workload.description,
            seconds = self.plan.replay.as_secs_f32(),
            deadline = self.plan.deadline.as_secs_f32(),
            breaker = plan::BREAKER_QUEUED_JOBS,
            threshold = plan::DAGOR_THRESHOLD,
            step = 100.0 * plan::DAGOR_STEP,
            machine = machine::describe(),
        )
    }
}

/// Sends requests of no consequence until the filter chooses from a table.
fn wait_for_table(processes: &mut Processes, node: &str, caller: SocketAddr) -> Result<()> {
    processes.wait_until(&format!("the first table of {node}"), FIRST_TABLE, || {
        let answer = http::get(caller, "/").ok()?;
        let reason = answer.header("x-weir-reason")?;
        (reason != "no_table").then_some(())
    })
}
