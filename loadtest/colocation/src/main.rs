// SPDX-License-Identifier: Apache-2.0
//! `weir-colocation`: memcached beside batch jobs, four ways. `cargo xtask colocation` builds what it needs and calls
//! it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use weir_colocation::calibration::Calibration;
use weir_colocation::jobs::{self, Job};
use weir_colocation::plan::Plan;
use weir_colocation::programs::Programs;
use weir_colocation::rounds::{self, Round, Setting, Which};
use weir_colocation::verdict::{Verdict, verdicts};
use weir_colocation::way::Way;
use weir_colocation::{report, table, tree};
use weir_replay::rng::SplitMix64;
use weir_stage::interrupt;

/// Runs memcached beside batch jobs, four ways in turns.
#[derive(Parser)]
#[command(name = "weir-colocation", version)]
struct Cli {
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
    /// Of loads, of what jobs work on, and of the order of ways
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    interrupt::catch()?;
    tree::sweep();
    let plan = if cli.quick { Plan::QUICK } else { Plan::FULL };
    println!("colocation: calibrating");
    let calibration = cli.folder.join("calibration");
    let found = Calibration::measure(&cli.programs, &plan, &calibration, cli.seed)?;
    told(&found);
    let work = cli.folder.join("work");
    let jobs = jobs::make(&cli.programs, found.sizes, &work, cli.seed)?;
    let setting = Setting {
        programs: &cli.programs,
        found: &found,
        jobs: &jobs,
        patience: plan.patience,
    };
    let all = measure(cli, &plan, &setting);
    // Hundreds of megabytes that the seed makes again.
    let _ = fs::remove_dir_all(&work);
    let verdicts = verdicts(&all?);
    println!();
    for verdict in &verdicts {
        println!("{}", verdict.line);
    }
    let failed = |verdict: &&Verdict| verdict.asserted && !verdict.holds;
    match verdicts.iter().filter(failed).count() {
        0 => {}
        failed => bail!("{failed} of the orders that are asserted do not hold"),
    }
    Ok(())
}

fn told(found: &Calibration) {
    let Calibration {
        all_cores,
        alone_p95_us,
        slo_us,
        sizes,
    } = found;
    println!(
        "colocation: memcached on all cores carries {all_cores:.0} requests of 100 keys a second; \
         light is up to {:.0}, heavy up to {:.0}",
        found.light().1,
        found.heavy().1
    );
    println!(
        "colocation: alone at the heavy load its p95 is {alone_p95_us} µs, so the SLO is {slo_us} µs; \
         jobs: stress-ng {} operations, x264 {} frames, zstd {} bytes",
        sizes.operations, sizes.frames, sizes.bytes
    );
}

/// Round by round, in each of which every way has a turn.
fn measure(cli: &Cli, plan: &Plan, setting: &Setting<'_>) -> Result<Vec<Round>> {
    let mut random = SplitMix64::new(cli.seed);
    let mut all = Vec::new();
    for repeat in 0..plan.repeats {
        for stepping in plan.steppings {
            let which = Which {
                repeat,
                stepping: *stepping,
                seed: random.next_u64(),
            };
            let mut ways = Way::ALL.to_vec();
            ways.retain(|way| cli.ways.is_empty() || cli.ways.contains(way));
            shuffle(&mut ways, &mut random);
            for way in ways {
                let folder = rounds::folder(&cli.folder, which, way);
                let round = rounds::run(setting, way, which, &folder)
                    .with_context(|| format!("the way {}", way.name()))?;
                tell(&round);
                keep(&folder, &round)?;
                all.push(round);
                // After each, so that what was measured is kept if the next one fails.
                write(cli, &all, setting)?;
            }
        }
    }
    println!("\n{}", table::markdown(&table::table(&all)));
    Ok(all)
}

fn tell(round: &Round) {
    println!(
        "colocation: steps of {} s, {:<16} violations {:>2} of {:>2} light, {:>2} of {:>2} heavy; \
         batch done after {:.1} s",
        round.interval_s,
        round.way.name(),
        round.light.violated,
        round.light.intervals,
        round.heavy.violated,
        round.heavy.intervals,
        round.batch_s
    );
}

fn keep(folder: &Path, round: &Round) -> Result<()> {
    let mut samples = File::create(folder.join("samples.jsonl"))?;
    for sample in &round.samples {
        writeln!(samples, "{}", serde_json::to_string(sample)?)?;
    }
    Ok(())
}

fn write(cli: &Cli, all: &[Round], setting: &Setting<'_>) -> Result<()> {
    let mut lines = File::create(cli.folder.join("rounds.jsonl"))?;
    for round in all {
        writeln!(lines, "{}", serde_json::to_string(round)?)?;
    }
    let table = table::markdown(&table::table(all));
    fs::write(cli.folder.join("table.md"), table)?;
    let names: Vec<&str> = setting.jobs.iter().map(|job: &Job| job.name).collect();
    let quick = if cli.quick { " --quick" } else { "" };
    let command = format!("cargo xtask colocation{quick} --seed {}", cli.seed);
    report::page(all, setting.found, &names, &command).write(cli.folder.join("report.html"))?;
    Ok(())
}

/// Fisher and Yates.
fn shuffle(ways: &mut [Way], random: &mut SplitMix64) {
    for last in (1..ways.len()).rev() {
        ways.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
}
