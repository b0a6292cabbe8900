// SPDX-License-Identifier: Apache-2.0
//! `weir-sim run`: a workload file on one fleet.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use weir_executor::Source;
use weir_policy::Overload;
use weir_replay::record::{COLUMNS, Cache, Record};
use weir_replay::summary::Figures;
use weir_replay::table;
use weir_replay::workload::{self, Request};
use weir_sim::{Ended, Scenario, Workload, simulate};

use super::progress::Progress;
use super::scenario;

#[derive(clap::Args)]
pub(super) struct Args {
    /// What is asked for (CSV or NDJSON, as `weir-replay workload` writes it)
    #[arg(long, value_name = "FILE")]
    workload: PathBuf,
    /// Every request and its end, as CSV
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    fleet: scenario::Args,
}

/// Plays a workload file and prints the summary that weir-replay prints of a real one.
pub(super) fn run(args: &Args) -> Result<()> {
    let (requests, workload) = read(&args.workload)?;
    let scenario = args.fleet.scenario()?;
    flag_overload(&scenario, &workload);
    let mut out = args.out.as_ref().map(|path| -> Result<_> {
        let file = File::create(path).with_context(|| path.display().to_string())?;
        let mut out = BufWriter::new(file);
        writeln!(out, "{COLUMNS}")?;
        Ok(out)
    });
    let mut out = out.take().transpose()?;
    let mut figures = Figures::default();
    let mut failed = None;
    let lasts = workload.jobs.last().map_or(Duration::ZERO, |job| job.at);
    let mut progress = Progress::new(String::new(), lasts);
    simulate(&scenario, &workload.keys, workload.jobs, |ended| {
        progress.see(ended.at);
        let record = record(&requests, ended);
        if let Some(out) = &mut out
            && let Err(error) = record.write_csv(out)
        {
            failed.get_or_insert(error);
        }
        figures.add(&record);
    })?;
    if let Some(error) = failed {
        return Err(error).context("--out");
    }
    if let Some(mut out) = out {
        out.flush().context("--out")?;
    }
    progress.end();
    println!("{}", serde_json::to_string_pretty(&figures.summary())?);
    Ok(())
}

/// The requests of a file, as they stand there and as they are simulated.
pub(super) fn read(file: &Path) -> Result<(Vec<Request>, Workload)> {
    let name = file.display();
    let requests = table::open(file)
        .map_err(anyhow::Error::from)
        .and_then(|input| Ok(workload::read(input)?))
        .with_context(|| name.to_string())?;
    let workload = Workload::of(&requests).map_err(|(index, priority)| {
        anyhow!(
            "{name}: request {}: priority: {priority:?} is neither high nor low",
            index + 1
        )
    })?;
    Ok((requests, workload))
}

/// Without shedding nothing settles, and every figure depends on how long the workload goes on.
fn flag_overload(scenario: &Scenario, workload: &Workload) {
    let cores = (scenario.hosts * scenario.host.cores) as f64;
    let busy = workload.busy_cores();
    if busy > cores && scenario.policy.overload == Overload::None {
        eprintln!(
            "warning: more work than the fleet can do: {busy:.1} of {cores} cores would be busy, \
             and nothing is shed; queues grow for as long as the workload lasts"
        );
    }
}

/// As weir-replay writes it down of a real request.
fn record(requests: &[Request], ended: Ended) -> Record {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let caller = SocketAddr::from((Ipv4Addr::LOCALHOST, ended.caller as u16));
    let spent = ended.spent.as_ref();
    Record {
        duration_us: micros(ended.duration),
        outcome: ended.outcome,
        attempts: ended.attempts,
        shed_attempts: ended.shed_attempts,
        host: ended.host.map(|host| format!("host-{}", host + 1)),
        reason: ended.reason.map(|reason| reason.as_str().to_owned()),
        cache: spent.and_then(|spent| match spent.source {
            Source::None => None,
            Source::Hit => Some(Cache::Hit),
            Source::Miss => Some(Cache::Miss),
            Source::Shared => Some(Cache::Shared),
        }),
        wait_us: spent.map(|spent| micros(spent.wait)),
        fetch_us: spent.map(|spent| micros(spent.fetch)),
        run_us: spent.map(|spent| micros(spent.run)),
        ..Record::new(ended.index, requests[ended.index].clone(), caller)
    }
}
