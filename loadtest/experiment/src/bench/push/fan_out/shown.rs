// SPDX-License-Identifier: Apache-2.0
//! The rounds as a table.

use anyhow::{Context, Result};
use weir_report::Table;

use super::round::{Plan, Round};
use super::way::Way;
use super::{HOSTS, SIDECARS};
use crate::bench::push::crowd::LOOKING;
use crate::bench::section::{Bound, NO_SPREAD, Section, Target};
use weir_report::Spread;

const MIB: f64 = (1 << 20) as f64;

type Figure = (&'static str, fn(&Round) -> f64);

const FIGURES: [Figure; 14] = [
    ("CPU, cores", |round| round.share),
    ("CPU, µs a change delivered", |round| round.cpu),
    ("CPU, µs a message", |round| {
        round.share * 1e6 / (round.messages * SIDECARS as f64)
    }),
    ("memory, MiB", |round| round.resident / MIB),
    ("at most, MiB", |round| round.peak / MIB),
    ("bytes a change delivered", |round| round.bytes),
    ("changes/s a sidecar", |round| round.changes),
    ("messages/s a sidecar", |round| round.messages),
    ("lag from change, p50, ms", |round| round.lag.p50),
    ("lag from change, p99, ms", |round| round.lag.p99),
    ("lag from reading, p50, ms", |round| round.push.p50),
    ("lag from reading, p99, ms", |round| round.push.p99),
    ("all served again, s", |round| round.again),
    ("streams lost", |round| round.lost),
];

pub(super) fn section(plan: &Plan, rounds: &[Vec<Round>; Way::ALL.len()]) -> Result<Section> {
    let mut header = vec![String::new()];
    header.extend(Way::ALL.map(|way| way.name().to_owned()));
    let row = |(name, figure): &Figure| {
        let cell = |rounds: &Vec<Round>| Ok(spread(rounds, figure)?.to_string());
        let cells = rounds.iter().map(cell).collect::<Result<Vec<_>>>()?;
        Ok([vec![(*name).to_owned()], cells].concat())
    };
    let rows = FIGURES.iter().map(row).collect::<Result<Vec<_>>>()?;
    Ok(Section {
        title: format!("Fan-out to {SIDECARS} sidecars (SIMULATED)"),
        how: how(plan),
        table: Table { header, rows },
        targets: targets(rounds)?,
        notes: notes(),
        ..Section::default()
    })
}

fn how(plan: &Plan) -> String {
    format!(
        "{HOSTS} hosts change once a second each and are asked each second ±10 %; changes of 200 ms go \
         out together, as weir-control has it for so many sidecars. {SIDECARS} simulated sidecars, each with a TCP connection and a delta stream of \
         its own, accept what comes. {} rounds of each way in turns, every other backwards, {} s each after settling; then all \
         sidecars leave and come back at once. Hosts and sidecars are one process beside the measured \
         one, on the same cores.",
        plan.rounds,
        plan.measure.as_secs()
    )
}

fn targets(rounds: &[Vec<Round>; Way::ALL.len()]) -> Result<Vec<Target>> {
    let [weir, hosts, whole] = rounds;
    let own = |what: &str, limit, figure: fn(&Round) -> f64| -> Result<Target> {
        Ok(Target {
            what: format!("weir-control: {what}"),
            bound: Bound::AtMost(limit),
            got: spread(weir, &figure)?,
        })
    };
    let cpu = |rounds: &[Round]| rounds.iter().map(|round| round.cpu).collect::<Vec<_>>();
    let beside = |peer: &[Round], name: &str| -> Result<Target> {
        Ok(Target {
            what: format!("CPU a change delivered, {name} ÷ weir-control"),
            bound: Bound::AtLeast(1.0),
            got: Spread::of_ratios(&cpu(peer), &cpu(weir)).context(NO_SPREAD)?,
        })
    };
    Ok(vec![
        own("cores", 1.0, |round| round.share)?,
        own("memory at most, MB", 500.0, |round| round.peak / 1e6)?,
        own("all served again, s", 5.0, |round| round.again)?,
        beside(hosts, Way::LinearHosts.name())?,
        beside(whole, Way::LinearWhole.name())?,
    ])
}

fn notes() -> Vec<String> {
    [
        format!(
            "Lags are of one sidecar in {LOOKING}, which looks into what it gets. That from the change \
             includes the wait until the host is asked, up to 1.1 s; a change that was over before the \
             host was asked again is delivered to nobody."
        ),
        "Polls begin within a quarter of a second and spread from there, so all three need more messages a \
         second when they have run for long, up to 10."
            .to_owned(),
        "A sidecar that has not answered yet gets what changed since in one message: on a busy machine there \
         are fewer of them, and a change costs less and comes later."
            .to_owned(),
        "Bytes are of gRPC messages to sidecars, their five bytes of prefix included.".to_owned(),
        "The linear cache is that of go-control-plane 0.14.0 behind its own server, with the changes of a \
         tick in one UpdateResources and a wildcard where there are many. Its server encodes what changed (or \
         the one resource) once a tick, in the measured process; the cache and the streams then only copy it."
            .to_owned(),
    ]
    .into()
}

fn spread(rounds: &[Round], figure: &impl Fn(&Round) -> f64) -> Result<Spread> {
    let figures: Vec<f64> = rounds.iter().map(figure).collect();
    Spread::of(&figures).context(NO_SPREAD)
}
