// SPDX-License-Identifier: Apache-2.0
//! `weir-shared-node run`: a host that shares its node with a batch job, four ways. `cargo xtask shared-node` builds
//! what it needs and calls it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use weir_replay::rng::SplitMix64;
use weir_shared_node::calibration::Calibration;
use weir_shared_node::plan::{CALM, Plan};
use weir_shared_node::programs::Programs;
use weir_shared_node::rounds::{self, Round, Setting};
use weir_shared_node::verdict::verdicts;
use weir_shared_node::way::Way;
use weir_shared_node::work::Work;
use weir_shared_node::{batch, report, table};
use weir_stage::interrupt;

/// A host that shares its node with a batch job.
#[derive(Parser)]
#[command(name = "weir-shared-node", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run all ways in turns
    Run(Box<Args>),
    /// Be the batch job: use CPU time until killed
    Burn {
        /// How many threads
        threads: usize,
    },
}

#[derive(clap::Args)]
struct Args {
    #[command(flatten)]
    programs: Programs,
    /// For logs, `rounds.jsonl`, `table.md` and `report.html`
    #[arg(long, value_name = "FOLDER")]
    folder: PathBuf,
    /// One short round
    #[arg(long)]
    quick: bool,
    /// Only these ways
    #[arg(long = "way", value_name = "WAY")]
    ways: Vec<Way>,
    /// Of the moments of requests and of the order of ways
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let ran = match Cli::parse().command {
        Command::Burn { threads } => batch::burn(threads),
        Command::Run(args) => run(*args),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut args: Args) -> Result<()> {
    interrupt::catch()?;
    args.programs.burn = std::env::current_exe()?;
    let plan = if args.quick { Plan::QUICK } else { Plan::FULL };
    println!("shared-node: calibrating");
    let found = Calibration::measure(&args.programs, &args.folder.join("calibration"))?;
    println!(
        "shared-node: on core 0 alone the host does {:.1} jobs a second, of {:.1} ms each ({} rules); load: {:.1}/s \
         for {} s, {:.1}/s for {} s, and again {:.1}/s for {} s",
        found.one_core,
        1e3 / found.one_core,
        found.rules,
        plan.load * found.one_core,
        plan.over.as_secs(),
        CALM * found.one_core,
        plan.calm.as_secs(),
        plan.load * found.one_core,
        plan.over.as_secs(),
    );
    let work = Work::make(&args.folder.join("work"), found.rules)?;
    let setting = Setting {
        programs: &args.programs,
        plan: &plan,
        found,
        work: &work,
    };
    let all = measure(&args, &setting)?;
    println!("\n{}", table::markdown(&table::table(&all)));
    let verdicts = verdicts(&all);
    for verdict in &verdicts {
        println!("{}", verdict.line);
    }
    let failed = verdicts.iter().filter(|verdict| !verdict.holds).count();
    if failed > 0 {
        bail!("{failed} of {} claims do not hold", verdicts.len());
    }
    Ok(())
}

/// Round by round, in each of which every way has a turn with the same requests.
fn measure(args: &Args, setting: &Setting<'_>) -> Result<Vec<Round>> {
    let mut random = SplitMix64::new(args.seed);
    let mut all = Vec::new();
    for repeat in 0..setting.plan.rounds {
        let seed = random.next_u64();
        let mut ways = Way::ALL.to_vec();
        ways.retain(|way| args.ways.is_empty() || args.ways.contains(way));
        // Fisher and Yates.
        for last in (1..ways.len()).rev() {
            ways.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
        }
        for way in ways {
            let folder = args.folder.join(format!("{repeat}-{}", way.name()));
            let round = rounds::run(setting, way, (repeat, seed), &folder)
                .with_context(|| format!("the way {}", way.name()))?;
            tell(&round);
            all.push(round);
            // After each, so that what was measured is kept if the next one fails.
            keep(args, setting, &folder, &all)?;
        }
    }
    Ok(all)
}

fn tell(round: &Round) {
    let count = round.requests.all();
    println!(
        "shared-node: {:<13} shed {:>4} of {}, failed {}; p95 wait {:.0} ms; batch {:.1} s of CPU in {:.0} s; {} \
         moves; capacity from {}",
        round.way.name(),
        count.shed,
        count.sent,
        count.failed,
        round.requests.wait_p95(),
        round.batch_cpu_s,
        round.seconds,
        round.moves,
        round.capacity_from,
    );
}

fn keep(args: &Args, setting: &Setting<'_>, of_way: &Path, all: &[Round]) -> Result<()> {
    let folder = &args.folder;
    let mut lines = File::create(folder.join("rounds.jsonl"))?;
    for round in all {
        writeln!(lines, "{}", serde_json::to_string(round)?)?;
    }
    if let Some(round) = all.last() {
        let mut samples = File::create(of_way.join("samples.jsonl"))?;
        for sample in &round.samples {
            writeln!(samples, "{}", serde_json::to_string(sample)?)?;
        }
    }
    let table = table::markdown(&table::table(all));
    fs::write(folder.join("table.md"), table).context("writing table.md")?;
    let quick = if args.quick { " --quick" } else { "" };
    let command = format!("cargo xtask shared-node{quick} --seed {}", args.seed);
    report::page(all, setting.plan, setting.found, &command).write(folder.join("report.html"))?;
    Ok(())
}
