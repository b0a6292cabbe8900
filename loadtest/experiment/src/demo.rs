// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask demo`: one workload, sent six ways through real Envoys, and a table.
//!
//! ```text
//!  replay ──> 2 Envoys (callers) ──> hosts      new processes for every way
//!                 ▲                    │
//!                 └── weir-control <───┘         only where Weir chooses
//!
//!  requests.csv, samples.csv, run.json ─> report.html
//!
//!  emulated hosts: a recorded trace whose jobs sleep
//!  real hosts:     rules on generated feeds, on the cores of this machine
//! ```

pub(crate) mod agreement;
pub(crate) mod bootstrap;
mod comparison;
pub(crate) mod control;
mod header;
pub(crate) mod hosts;
pub(crate) mod kept;
mod plan;
pub(crate) mod programs;
mod progress;
mod replay;
mod report;
mod results;
pub(crate) mod sampler;
pub(crate) mod stage;
pub(crate) mod table;
mod verdict;
pub(crate) mod ways;
mod workload;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use weir_stage::busy::Busy;
use weir_stage::interrupt;
use weir_stage::processes::Processes;

use crate::demo::kept::Run;
use crate::demo::plan::{Plan, Work};
use crate::demo::programs::Programs;
use crate::demo::progress::Progress;
use crate::demo::results::Figures;
use crate::demo::sampler::{Sampler, samples};
use crate::demo::stage::Stage;
use crate::demo::table::Table;
use crate::demo::ways::{WAYS, Way};
use crate::demo::workload::{PRIORITIES, Workload};
use crate::workspace::Workspace;

const EXPLANATION: &str = "\
duration: of all requests, from the offset in the workload to the last answer or the giving up,
          back-off and retries included; wait: of those served, in which nothing ran for them
hit:      served requests that found their data; shed: attempts refused, each tried again;
failed:   requests without a good answer; uneven: deviation over mean of the hosts' mean waits
";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Hosts that do the work: rules on generated feeds, instead of a recorded trace whose jobs
    /// sleep. Smaller, as this machine's cores are all there is
    #[arg(long)]
    real: bool,
    /// A quarter of the workload: under two minutes, and rougher figures. Emulated hosts, and what is before them, are
    /// built for development then, in half the time
    #[arg(long)]
    quick: bool,
    /// Only the ways whose name contains this; repeatable
    #[arg(long, value_name = "NAME")]
    way: Vec<String>,
    /// Run nothing: write the report of a run again, from what its folder keeps
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["real", "quick", "way"])]
    report: Option<PathBuf>,
}

/// One run of the command.
struct Demo {
    programs: Programs,
    plan: Plan,
    workload: Workload,
    /// Where everything that the run leaves is kept.
    folder: PathBuf,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    if let Some(folder) = &args.report {
        println!("The report is {}", report::write(folder)?.display());
        return Ok(());
    }
    let ways: Vec<&Way> = WAYS.iter().filter(|way| args.wants(way)).collect();
    ensure!(!ways.is_empty(), "no way has such a name: {}", names());
    interrupt::catch()?;
    let programs = match args.quick && !args.real {
        true => Programs::quick(workspace, "demo")?,
        false => Programs::build(workspace, "demo")?,
    };
    let plan = match args.real {
        true => Plan::real(args.quick),
        false => Plan::emulated(args.quick),
    };
    let begun = kept::now()?;
    let folder = new_folder(workspace, begun)?;
    let workload = Workload::prepare(workspace, &programs, &plan, &folder)?;
    let demo = Demo {
        programs,
        plan,
        workload,
        folder,
    };
    let header = header::text(&demo.plan, &demo.workload.description);
    println!("\n{header}\n");
    let (figures, ways) = demo.compare(&ways)?;
    let told = format!("{header}\n\n{}", demo.tell(figures));
    let file = demo.folder.join("table.txt");
    fs::write(&file, &told).with_context(|| format!("writing {}", file.display()))?;
    println!("\n{told}");
    let run = Run {
        begun,
        command: args.command(),
        emulated: !args.real,
        header,
        versions: demo.programs.versions(workspace)?,
        seconds: demo.plan.replay.as_secs_f64(),
        deadline: demo.plan.deadline.as_secs_f64(),
        cores: demo.plan.cores,
        ways,
    };
    run.write(&demo.folder)?;
    let report = report::write(&demo.folder)?;
    println!("The report is {}", workspace.shown(&report));
    let folder = workspace.shown(&demo.folder);
    println!("Every request, configuration and log is kept in {folder}");
    Ok(())
}

impl Args {
    fn wants(&self, way: &Way) -> bool {
        self.way.is_empty() || self.way.iter().any(|part| way.name.contains(&**part))
    }

    /// The command that these are of.
    fn command(&self) -> String {
        let mut command = "cargo xtask demo".to_owned();
        for (given, flag) in [(self.real, " --real"), (self.quick, " --quick")] {
            command += if given { flag } else { "" };
        }
        for name in &self.way {
            command += &format!(" --way '{name}'");
        }
        command
    }
}

fn names() -> String {
    let names: Vec<&str> = WAYS.iter().map(|way| way.name).collect();
    names.join(", ")
}

fn new_folder(workspace: &Workspace, begun: u64) -> Result<PathBuf> {
    let folder = workspace.cache().join("demo").join(begun.to_string());
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    Ok(folder)
}

impl Demo {
    /// Runs the ways one after another, each with new processes.
    fn compare(&self, ways: &[&'static Way]) -> Result<(Vec<Figures>, Vec<kept::Way>)> {
        let mut progress = Progress::new(ways.len(), self.plan.replay + plan::AROUND);
        let mut tried = Vec::new();
        for way in ways {
            progress.next_way(way.name);
            tried.push(self.try_way(way, &mut progress).context(way.name)?);
        }
        Ok(tried.into_iter().unzip())
    }

    fn try_way(&self, way: &Way, progress: &mut Progress) -> Result<(Figures, kept::Way)> {
        let started = Instant::now();
        let folder = self.folder.join(way.folder());
        let mut processes = Processes::new(folder.clone())?;
        progress.say("starting", started.elapsed());
        let Stage { callers, sights } = Stage::start(self, way, &mut processes, &folder)?;
        let hosts = sights.hosts.clone();
        let plan = &self.plan;
        let sending = |sent: Duration| match plan.replay.checked_sub(sent) {
            Some(_) => format!("sending, {} of {} s", sent.as_secs(), plan.replay.as_secs()),
            None => "waiting for the last answers".to_owned(),
        };
        let busy = Busy::start();
        let sampler = Sampler::start(sights);
        let replayed = replay::send(
            &self.workload,
            &mut processes,
            &self.programs.replay,
            &callers,
            plan.deadline,
            &folder,
            |sent| progress.say(&sending(sent), started.elapsed()),
        )?;
        let (records, busy) = (replayed.records, busy.share());
        let file = folder.join(samples::FILE);
        fs::write(&file, samples::written(&sampler.end()?))
            .with_context(|| format!("writing {}", file.display()))?;
        progress.end_way(&format!("done in {} s", started.elapsed().as_secs()));
        let figures = Figures::new(way.name, &PRIORITIES, &records, busy, replayed.lag);
        let kept = kept::Way {
            name: way.name.to_owned(),
            folder: way.folder(),
            overload: way.overload().map(str::to_owned),
            hosts,
            busy,
            lag: replayed.lag,
        };
        Ok((figures, kept))
    }

    /// The table, and what is to be said of it.
    fn tell(&self, figures: Vec<Figures>) -> String {
        let closing = match self.plan.work {
            Work::Emulated(_) => {
                let all: Vec<_> = figures.iter().map(|way| &way.all).collect();
                verdict::lines(&all)
            }
            Work::Real(_) => comparison::lines(&figures.iter().collect::<Vec<_>>()),
        };
        let rows = figures.into_iter().flat_map(|way| way.by_priority);
        let table = Table(rows.collect());
        format!("{table}\n{EXPLANATION}\n{}\n", closing.join("\n"))
    }
}
