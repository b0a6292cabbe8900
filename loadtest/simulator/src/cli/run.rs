// SPDX-License-Identifier: Apache-2.0
//! `weir-sim run`: a workload file on one fleet.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use weir_executor::Source;
use weir_replay::record::{COLUMNS, Cache, Record};
use weir_replay::summary::{Figures, Summary};
use weir_replay::workload::Request;
use weir_sim::workload::SEPARATOR;
use weir_sim::{Ended, simulate};
use weir_whole_file::WholeFile;

use super::progress::Progress;
use super::scenario;
use super::workload_file::WorkloadFile;

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

/// A summary is never taken for that of a real run.
#[derive(Serialize)]
struct Simulated {
    what: &'static str,
    #[serde(flatten)]
    summary: Summary,
}

/// Plays a workload file and prints the summary that weir-replay prints of a real one.
pub(super) fn run(args: &Args) -> Result<()> {
    let mut scenario = args.fleet.scenario()?;
    let file = WorkloadFile::check(&args.workload, &scenario)?;
    file.plan(&mut scenario)?;
    file.flag_overload(&scenario, 1.0);
    let mut out = args.out.as_ref().map(|path| -> Result<_> {
        let mut out = WholeFile::create(path).with_context(|| path.display().to_string())?;
        writeln!(out, "{COLUMNS}")?;
        Ok(out)
    });
    let mut out = out.take().transpose()?;
    let mut figures = Figures::default();
    let (mut found, mut named) = (0, 0);
    let (mut crossed, mut sent) = (0_u64, 0_u64);
    let mut failed = None;
    let mut progress = Progress::new(String::new(), file.lasts);
    let mut play = file.play()?;
    // Those that have not ended, by their place among all.
    let pending = RefCell::new(HashMap::new());
    let jobs = play.by_ref().enumerate().map(|(index, (request, job))| {
        pending.borrow_mut().insert(index, request);
        job
    });
    simulate(&scenario, file.workload.keys(), jobs, |ended| {
        let Some(request) = pending.borrow_mut().remove(&ended.index) else {
            return;
        };
        progress.see(ended.at);
        found += ended.found;
        if let Some(host) = ended.host {
            sent += 1;
            crossed += u64::from(scenario.zones.are_apart(ended.caller, host));
        }
        named += blocks(&request);
        let record = record(request, ended);
        if let Some(out) = &mut out
            && let Err(error) = record.write_csv(out)
        {
            failed.get_or_insert(error);
        }
        figures.add(&record);
    })?;
    play.end()?;
    if let Some(error) = failed {
        return Err(error).context("--out");
    }
    if let Some(out) = out {
        out.finish().context("--out")?;
    }
    progress.end();
    if args.fleet.language_model {
        let share = found as f64 / (named as f64).max(1.0);
        eprintln!(
            "SIMULATED: {found} of {named} blocks that requests named were found ({share:.4})"
        );
    }
    if scenario.zones.count > 1 {
        let share = crossed as f64 / (sent as f64).max(1.0);
        eprintln!(
            "SIMULATED: {crossed} of {sent} requests that had a host were in another zone ({share:.4})"
        );
    }
    let summary = Simulated {
        what: "SIMULATED",
        summary: figures.summary(),
    };
    println!("{}", serde_json::to_string_pretty(&summary)?);
    Ok(())
}

/// Of a list of keys.
fn blocks(request: &Request) -> usize {
    let names = request.key.split(SEPARATOR);
    names.filter(|name| !name.is_empty()).count()
}

/// As weir-replay writes it down of a real request.
fn record(request: Request, ended: Ended) -> Record {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let caller = SocketAddr::from((Ipv4Addr::LOCALHOST, ended.caller as u16));
    let spent = ended.spent.as_ref();
    Record {
        duration_us: micros(ended.duration),
        attempt_us: micros(ended.attempt),
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
        ..Record::new(ended.index, request, caller)
    }
}
