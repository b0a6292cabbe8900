// SPDX-License-Identifier: Apache-2.0
//! `weir-sim run`: a workload file on one fleet.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use weir_executor::Source;
use weir_llm_host::Settings;
use weir_llm_host::prompt::BYTES_PER_TOKEN;
use weir_policy::{Overload, Selection};
use weir_replay::record::{COLUMNS, Cache, Record};
use weir_replay::summary::{Figures, Summary};
use weir_replay::table::{self, BadInput};
use weir_replay::workload::{self, Request};
use weir_sim::plan::longest_first;
use weir_sim::workload::{Job, SEPARATOR, class};
use weir_sim::{Ended, Scenario, Workload, simulate};
use weir_whole_file::WholeFile;

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

/// A summary is never taken for that of a real run.
#[derive(Serialize)]
struct Simulated {
    what: &'static str,
    #[serde(flatten)]
    summary: Summary,
}

/// Plays a workload file and prints the summary that weir-replay prints of a real one.
pub(super) fn run(args: &Args) -> Result<()> {
    let (requests, workload) = read(&args.workload, args.fleet.language_model)?;
    let mut scenario = args.fleet.scenario()?;
    plan(&mut scenario, &workload);
    flag_overload(&scenario, &workload);
    let mut out = args.out.as_ref().map(|path| -> Result<_> {
        let mut out = WholeFile::create(path).with_context(|| path.display().to_string())?;
        writeln!(out, "{COLUMNS}")?;
        Ok(out)
    });
    let mut out = out.take().transpose()?;
    let mut figures = Figures::default();
    let (mut found, mut named) = (0, 0);
    let mut failed = None;
    let lasts = workload.jobs.last().map_or(Duration::ZERO, |job| job.at);
    let mut progress = Progress::new(String::new(), lasts);
    simulate(&scenario, &workload.keys, workload.jobs, |ended| {
        progress.see(ended.at);
        found += ended.found;
        named += blocks(&requests[ended.index]);
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
    let summary = Simulated {
        what: "SIMULATED",
        summary: figures.summary(),
    };
    println!("{}", serde_json::to_string_pretty(&summary)?);
    Ok(())
}

/// Every priority has a class.
fn has_class(line: usize, request: &Request) -> Result<(), BadInput> {
    let priority = &request.priority;
    match class(priority) {
        Some(_) => Ok(()),
        None => {
            let reason = format!("{priority:?} is neither high nor low");
            Err(BadInput::new(line, "priority", reason))
        }
    }
}

/// Of a list of keys.
fn blocks(request: &Request) -> usize {
    let names = request.key.split(SEPARATOR);
    names.filter(|name| !name.is_empty()).count()
}

/// The requests of a file, as they stand there and as they are simulated.
pub(super) fn read(file: &Path, language_model: bool) -> Result<(Vec<Request>, Workload)> {
    let name = file.display();
    let requests = table::open(file)
        .map_err(anyhow::Error::from)
        .and_then(|input| Ok(workload::read_each(input, has_class)?))
        .with_context(|| name.to_string())?;
    let workload = Workload::of(&requests, language_model).map_err(|(index, priority)| {
        anyhow!(
            "{name}: request {}: priority: {priority:?} is neither high nor low",
            index + 1
        )
    })?;
    Ok((requests, workload))
}

/// Makes the plan that the policy needs, if it does.
pub(super) fn plan(scenario: &mut Scenario, workload: &Workload) {
    if scenario.policy.selection == Selection::CachingPlan {
        let jobs = workload.jobs.iter();
        let plan = longest_first(&workload.keys, jobs, scenario.hosts);
        scenario.plan = Some(plan);
    }
}

/// Without shedding nothing settles, and every figure depends on how long the workload goes on.
pub(super) fn flag_overload(scenario: &Scenario, workload: &Workload) {
    if let Some(model) = &scenario.language_model {
        return flag_prompts(scenario, model, workload);
    }
    let cores = (scenario.hosts * scenario.host.cores) as f64;
    let busy = workload.busy_cores();
    if busy > cores && scenario.policy.overload == Overload::None {
        eprintln!(
            "warning: more work than the fleet can do: {busy:.1} of {cores} cores would be busy, \
             and nothing is shed; queues grow for as long as the workload lasts"
        );
    }
}

/// The same of a language model's hosts, where caches decide how much work there is.
fn flag_prompts(scenario: &Scenario, model: &Settings, workload: &Workload) {
    let tokens = |job: &Job| job.bytes.div_ceil(BYTES_PER_TOKEN as u64);
    let jobs = workload.jobs.iter();
    let reading: f64 = jobs
        .map(|job| model.timing.prefill(tokens(job)).as_secs_f64())
        .sum();
    let lasts = workload.jobs.last().map_or(0.0, |job| job.at.as_secs_f64());
    let busy = reading / lasts.max(f64::MIN_POSITIVE);
    if busy > scenario.hosts as f64 && scenario.policy.overload == Overload::None {
        eprintln!(
            "warning: more work than the fleet can do without caches: {busy:.1} of {} hosts would read \
             prompts all the time, and nothing is shed",
            scenario.hosts
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
