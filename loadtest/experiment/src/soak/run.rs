// SPDX-License-Identifier: Apache-2.0
//! A run from beginning to end.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;
use weir_stage::{control, http};

use crate::programs::Programs;
use crate::soak::churn::Churn;
use crate::soak::load::Load;
use crate::soak::outcome::Outcome;
use crate::soak::plan::Plan;
use crate::soak::samples::{self, Sample};
use crate::soak::stage::{CLUSTER, Stage};
use crate::soak::verdict;

const LOOK: Duration = Duration::from_millis(100);
/// For the first table to come, and for everything to end.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs it, and writes samples to the folder.
///
/// # Errors
/// Something could not be started, died without having been killed, or a signal has come.
pub fn run(plan: &Plan, programs: &Programs, folder: &Path) -> Result<Outcome> {
    let mut stage = Stage::start(programs, folder.to_owned())?;
    stage.add_host(true)?;
    stage.add_host(true)?;
    hosts_are_up(&mut stage)?;
    stage.add_caller(true, false)?;
    stage.add_caller(true, true)?;
    informed(&mut stage)?;
    let busy = weir_stage::busy::Busy::start();
    let mut load = Load::start(&stage.places);
    let (mut churn, mut samples) = (Churn::default(), Vec::new());
    let mut kept = File::create(folder.join("samples.jsonl")).context("samples.jsonl")?;
    let started = Instant::now();
    let mut next = Duration::ZERO;
    while started.elapsed() < plan.length {
        let since = started.elapsed();
        if since >= next {
            let sample = (since.as_secs_f64(), samples::take(&mut stage)?);
            // At once: a run that ends early was not for nothing.
            writeln!(kept, "{}", json!({"at": sample.0, "of": sample.1}))?;
            samples.push(sample);
            next = since + plan.every;
            told(since, plan, &churn, &load);
        }
        churn.step(&mut stage, since)?;
        stage.processes.check()?;
        sleep(LOOK);
    }
    let busy = busy.share();
    load.end();
    let last = settle(&mut stage)?;
    samples.push((started.elapsed().as_secs_f64(), last.clone()));
    let sent = load.sent();
    let mut verdicts = verdict::of_the_end(&stage, &last, sent);
    if plan.judged {
        verdicts.extend(verdict::of_slopes(&stage, &samples));
    }
    Ok(Outcome {
        sent,
        done: churn.done,
        verdicts,
        samples,
        plan: *plan,
        busy,
    })
}

fn told(since: Duration, plan: &Plan, churn: &Churn, load: &Load) {
    if since.as_secs() % 60 < plan.every.as_secs() {
        eprintln!(
            "soak: {} of {} s, {:?}, {:?}",
            since.as_secs(),
            plan.length.as_secs(),
            load.sent(),
            churn.done
        );
    }
}

/// Waits until weir-control tells callers of all hosts. It looks at its file once a second, and a caller that came
/// before would choose by a table without any, and refuse what it is sent.
fn hosts_are_up(stage: &mut Stage) -> Result<()> {
    let (admin, hosts) = (stage.control.admin, stage.hosts.len());
    stage
        .processes
        .wait_until("a table of all hosts", LIMIT, || {
            let up = control::hosts_up(admin, CLUSTER).ok()?.len();
            (up == hosts).then_some(())
        })
}

/// Waits until every caller chooses by a table.
fn informed(stage: &mut Stage) -> Result<()> {
    let admins: Vec<_> = stage.callers.iter().map(|caller| caller.pages).collect();
    stage.processes.wait_until("the first tables", LIMIT, || {
        let has_tables = |admin: &std::net::SocketAddr| {
            let page = http::get(*admin, "/stats?filter=^wasmcustom.weir_stale_tables$");
            page.is_ok_and(|page| page.body.trim().ends_with(": 0"))
        };
        admins.iter().all(has_tables).then_some(())
    })
}

/// Waits until nothing is under way and everybody who left is forgotten, at most [`LIMIT`]; returns what is seen then.
fn settle(stage: &mut Stage) -> Result<Sample> {
    let started = Instant::now();
    loop {
        let sample = samples::take(stage)?;
        if verdict::is_settled(stage, &sample) || started.elapsed() > LIMIT {
            return Ok(sample);
        }
        stage.processes.check()?;
        sleep(Duration::from_secs(1));
    }
}
