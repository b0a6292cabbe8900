// SPDX-License-Identifier: Apache-2.0
//! One workload, sent many ways through real Envoys.
//!
//! ```text
//!  replay ──>   Envoys (callers) ──> hosts      new processes for every way
//!                 ▲                    │
//!                 └── weir-control <───┘         only where Weir chooses
//!
//!  emulated hosts: a recorded trace whose jobs sleep
//!  real hosts:     rules on generated feeds, on the cores of this machine
//! ```

pub mod agreement;
mod comparison;
mod envoys;
mod header;
mod kept;
pub(crate) mod plan;
mod programs;
mod report;
mod results;
mod stage;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod tests;
mod verdict;
mod ways;
pub(crate) mod workload;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use weir_report::Report;
use weir_stage::processes::Processes;

use self::envoys::Meter;
use self::kept::Run;
pub use self::kept::Told;
use self::plan::{Plan, Work};
pub use self::programs::Programs;
use self::report::story::Story;
use self::results::Figures;
use self::table::Table;
use self::ways::WAYS;
pub use self::ways::Way;
use self::workload::Workload;
use crate::Experiment;
use crate::origin::Origin;
use crate::progress::Progress;
use crate::replay::Replay;

const EXPLANATION: &str = "\
duration: of all requests, from the offset in the workload to the last answer or the giving up,
          back-off and retries included; wait: of those served, in which nothing ran for them
hit:      served requests that found their data; shed: attempts refused, each tried again;
failed:   requests without a good answer; uneven: deviation over mean of the hosts' mean waits
";
/// Attempts of a request, at most.
const ATTEMPTS: u32 = 10;

/// Flags of the demonstration.
#[derive(clap::Args)]
pub struct Args {
    /// Hosts that do the work: rules on generated feeds, instead of a recorded trace whose jobs
    /// sleep. Smaller, as this machine's cores are all there is
    #[arg(long)]
    real: bool,
    /// Data that take seconds to fetch, as in document 001, and less other work
    #[arg(long, conflicts_with = "real")]
    dear: bool,
    /// A quarter of the workload and seven ways: about two minutes, and rougher figures. Emulated hosts, and what is before them, are
    /// built for development then, in half the time
    #[arg(long)]
    quick: bool,
    /// Only the ways whose name contains this, also those that --quick leaves out; repeatable
    #[arg(long, value_name = "NAME")]
    way: Vec<String>,
    /// Run nothing: write the report of a run again, from what its folder keeps
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["real", "dear", "quick", "way"])]
    report: Option<PathBuf>,
    #[command(flatten)]
    programs: Programs,
}

/// The experiment: a way a turn.
pub struct Demo {
    programs: Programs,
    plan: Plan,
    workload: Workload,
    folder: PathBuf,
    ways: Vec<&'static Way>,
    run: Run,
    progress: Progress,
}

impl Experiment for Demo {
    const NAME: &'static str = "demo";
    const TABLE: &'static str = "table.txt";
    type Args = Args;
    type Turn = &'static Way;
    type Round = Told;

    fn listing(args: &Args) -> Result<Option<String>> {
        args.ways()?;
        let Some(folder) = &args.report else {
            return Ok(None);
        };
        let report = report::write(folder)?;
        Ok(Some(format!("The report is {}\n", report.display())))
    }

    fn set_up(args: Args, folder: &Path) -> Result<Self> {
        let plan = match (args.real, args.dear) {
            (true, _) => Plan::real(args.quick),
            (_, true) => Plan::dear(args.quick),
            _ => Plan::emulated(args.quick),
        };
        let (command, ways) = (args.command(), args.ways()?);
        let demo = Self::new(args.programs, plan, ways, command, folder)?;
        demo.run.write(folder)?;
        println!("\n{}\n", demo.run.origin.header);
        Ok(demo)
    }

    fn turns(&self) -> Vec<&'static Way> {
        self.ways.clone()
    }

    fn play(&mut self, way: &&'static Way) -> Result<Vec<Told>> {
        self.progress.next_way(way.name);
        Ok(vec![self.try_way(way).context(way.name)?])
    }

    fn table(&self, ways: &[Told]) -> String {
        let rows = ways.iter().flat_map(|told| &told.figures.by_priority);
        let table = Table(rows.cloned().collect());
        let closing = closing(self.run.emulated, ways).join("\n");
        let envoys = envoys::Table(ways.iter().map(Told::envoys).collect());
        let header = &self.run.origin.header;
        let explained = envoys::EXPLANATION;
        format!("{header}\n\n{table}\n{EXPLANATION}\n{envoys}\n{explained}\n{closing}\n")
    }

    fn report(&self, ways: &[Told]) -> Option<Report> {
        let run = &self.run;
        Some(report::page(&Story { run, ways }))
    }
}

impl Args {
    fn ways(&self) -> Result<Vec<&'static Way>> {
        let wanted = |way: &&Way| match self.way[..] {
            [] => way.quick || !self.quick,
            _ => self.way.iter().any(|part| way.name.contains(&**part)),
        };
        let ways: Vec<&Way> = WAYS.iter().filter(wanted).collect();
        let names: Vec<&str> = WAYS.iter().map(|way| way.name).collect();
        ensure!(
            !ways.is_empty(),
            "no way has such a name: {}",
            names.join(", ")
        );
        Ok(ways)
    }

    /// The command that these are of.
    fn command(&self) -> String {
        let mut command = "cargo xtask demo".to_owned();
        let flags = [
            (self.real, " --real"),
            (self.dear, " --dear"),
            (self.quick, " --quick"),
        ];
        for (given, flag) in flags {
            command += if given { flag } else { "" };
        }
        for name in &self.way {
            command += &format!(" --way '{name}'");
        }
        command
    }
}

impl Demo {
    /// Makes the workload.
    fn new(
        programs: Programs,
        plan: Plan,
        ways: Vec<&'static Way>,
        command: String,
        folder: &Path,
    ) -> Result<Self> {
        let workload = Workload::prepare(&programs, &plan, folder)?;
        let header = header::text(&plan, &workload.description);
        let run = Run {
            origin: Origin::now(command, header, programs.fleet.versions()?),
            emulated: matches!(plan.work, Work::Emulated(_)),
            seconds: plan.replay.as_secs_f64(),
            deadline: plan.deadline.as_secs_f64(),
            cores: plan.cores,
        };
        let progress = Progress::new(ways.len(), plan.replay + plan::AROUND);
        Ok(Self {
            programs,
            plan,
            workload,
            folder: folder.to_owned(),
            ways,
            run,
            progress,
        })
    }

    fn try_way(&mut self, way: &Way) -> Result<Told> {
        let started = Instant::now();
        let folder = self.folder.join(way.folder());
        let mut processes = Processes::bound_in(folder.clone())?;
        self.progress.say("starting", started.elapsed());
        let (envoys, sights) = stage::start(
            (&self.plan, &self.workload),
            &self.programs.fleet,
            way,
            &mut processes,
            &folder,
        )?;
        let hosts = sights.hosts.clone();
        let callers = envoys.callers.iter().map(|caller| caller.listener);
        let targets: Vec<_> = callers.collect();
        let plan = &self.plan;
        let replay = Replay {
            program: &self.programs.replay,
            workload: &self.workload.file,
            bodies: self.workload.feeds.as_deref(),
            targets: &targets,
            deadline: plan.deadline,
            attempts: ATTEMPTS,
            backoff: None,
        };
        let meter = Meter::start(envoys, hosts.clone())?;
        let progress = &mut self.progress;
        let tell = |what: &str| progress.say(what, started.elapsed());
        let watched = replay.send_watched(&mut processes, &folder, sights, plan.replay, tell)?;
        let envoys = meter.read()?;
        progress.end_way(&format!("done in {} s", started.elapsed().as_secs()));
        Ok(Told {
            name: way.name.to_owned(),
            folder: way.folder(),
            overload: way.overload().map(str::to_owned),
            hosts,
            busy: watched.busy,
            lag: watched.replayed.lag,
            envoys,
            figures: Figures::new(way.name, &watched.replayed.records),
            records: watched.replayed.records,
            samples: watched.samples,
        })
    }
}

/// The last lines of the table: claims of emulated hosts, figures of real ones.
fn closing(emulated: bool, ways: &[Told]) -> Vec<String> {
    let all: Vec<_> = ways.iter().map(|told| &told.figures.all).collect();
    match emulated {
        true => verdict::lines(&all),
        false => comparison::lines(ways),
    }
}
