// SPDX-License-Identifier: Apache-2.0
//! Document 003's conclusion: "scalability can be achieved by strategically integrating multiple DSMSs (as in Figure 1),
//! that can be viewed as specialized source actors", which "can potentially be tuned to also support load shedding".
//! SIMULATED.
//!
//! ```text
//!           ┌─> Source ─ AccidentDetection ─────────────┐  (a core)
//! reports ──┼─> Source ─ CarSpeeds ─ SegmentStatistics ─┤  (a core)
//!           └─> Source ─────────────────────────────────┴─> TollCalculation ─ ...  (a core)
//! ```
//! Beside it, one system that has all actors on one core. A system sheds a report before its source while more events
//! than a limit wait at its actors: then accidents and statistics are of fewer reports, and a car may be told its toll by
//! a later report, or not at all.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use weir_executor::Workflow;
use weir_report::Table;

use super::Args;
use super::actor::{
    self, ACCIDENT_DETECTION, ACTORS, Actor, CAR_SPEEDS, Event, SEGMENT_STATISTICS, SOURCE,
};
use super::reference::Found;
use super::run::{self, Results, Work};
use super::simulated::nanos;
use super::traffic::Report;
use crate::course::Course;
use crate::orders::plan::Plan;

/// Whose each actor is, of so many systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Division {
    One,
    Three,
}

impl Division {
    const ALL: [Self; 2] = [Self::One, Self::Three];

    fn systems(self) -> usize {
        match self {
            Self::One => 1,
            Self::Three => 3,
        }
    }

    /// The number of the system; of the source every one has its own.
    fn of(self, actor: usize) -> usize {
        match (self, actor) {
            (Self::One, _) => 0,
            (Self::Three, ACCIDENT_DETECTION) => 1,
            (Self::Three, CAR_SPEEDS | SEGMENT_STATISTICS) => 2,
            (Self::Three, _) => 0,
        }
    }
}

/// A firing that takes its time.
struct Running {
    actor: usize,
    ends: u64,
    sent: Vec<(usize, Event)>,
}

/// One system: an executor on a core of its own.
struct System {
    workflow: Workflow<Event>,
    actors: Vec<Actor>,
    running: Option<Running>,
    shed: usize,
}

/// What came of a run.
pub(super) struct Outcome {
    pub(super) results: Results,
    /// Reports that each system did not take in.
    pub(super) shed: Vec<usize>,
}

/// Runs an order of one firing at a time in every system. `limit`: events that may wait at a system's actors before it
/// sheds.
pub(super) fn run(
    plan: &weir_executor::workflow::Plan,
    work: Work<'_>,
    division: Division,
    limit: usize,
) -> Outcome {
    let system = |_| System {
        workflow: Workflow::new(plan.clone()),
        actors: actor::all(),
        running: None,
        shed: 0,
    };
    let mut systems: Vec<System> = (0..division.systems()).map(system).collect();
    let mut results = Results::default();
    let mut arrivals = work.reports.iter().peekable();
    let arrives = |report: &Report| nanos(report.at + work.input.before());
    let mut now = 0;
    loop {
        while let Some(report) = arrivals.next_if(|report| arrives(report) <= now) {
            for system in &mut systems {
                system.take_in(report, limit);
            }
        }
        for (number, system) in systems.iter_mut().enumerate() {
            system.start(now, &work, |actor| division.of(actor) == number);
        }
        let ends = systems.iter().filter_map(|system| system.running.as_ref());
        let ends = ends.map(|running| running.ends);
        let Some(next) = ends.chain(arrivals.peek().map(|r| arrives(r))).min() else {
            let shed = systems.iter().map(|system| system.shed).collect();
            return Outcome { results, shed };
        };
        now = next;
        for number in 0..systems.len() {
            for (to, event) in systems[number].end(now, |to| division.of(to) == number) {
                match to {
                    ACTORS => results.take(Duration::from_nanos(now), event, work.reports),
                    _ => systems[division.of(to)].workflow.push(to, event),
                }
            }
        }
    }
}

impl System {
    fn take_in(&mut self, report: &Report, limit: usize) {
        match self.workflow.waiting() > limit {
            true => self.shed += 1,
            false => self.workflow.push(SOURCE, Event::Report(*report)),
        }
    }

    /// `is_own`: the actor is in this system, too.
    fn start(&mut self, now: u64, work: &Work<'_>, is_own: impl Fn(usize) -> bool) {
        if self.running.is_some() {
            return;
        }
        let Some(firing) = self.workflow.start(Duration::from_nanos(now)) else {
            return;
        };
        let (actor, taken) = (firing.actor, firing.events.len());
        let mut sent = run::fire(&mut self.actors[actor], firing.events);
        if actor == SOURCE {
            // The others have it from a source of their own.
            sent.retain(|(to, _)| is_own(*to));
        }
        let costs = work.costs.firing(actor, taken, sent.len()) + work.input.within(actor, taken);
        let ends = now + nanos(costs);
        self.running = Some(Running { actor, ends, sent });
    }

    /// Ends the firing that is over. Returns results and what is for other systems, with the number of the actor that
    /// shall get it.
    fn end(&mut self, now: u64, is_own: impl Fn(usize) -> bool) -> Vec<(usize, Event)> {
        let Some(over) = self.running.take_if(|running| running.ends <= now) else {
            return Vec::new();
        };
        let stays = |(to, _): &(usize, Event)| *to == ACTORS || is_own(*to);
        let (stay, mut leave): (Vec<_>, Vec<_>) = over.sent.into_iter().partition(stays);
        let at = Duration::from_nanos(now);
        let results = self.workflow.finish(at, over.actor, stay);
        leave.extend(results.into_iter().map(|result| (ACTORS, result)));
        leave
    }
}

/// A row for each order, division and limit, beside those that shed nothing.
pub(super) fn table(
    args: &Args,
    plans: &[&'static Plan],
    work: Work<'_>,
    expected: &Found,
) -> Result<String> {
    let header = [
        "order",
        "systems",
        "sheds above / events",
        "shed by each / %",
        "told at their report / %",
        "of these, another toll / %",
        "told later or once more",
        "mean response / ms",
        "mean in the last tenth / ms",
        "thrashes at / (reports/s)",
    ];
    let mut limits = vec![usize::MAX];
    limits.extend(&args.shed_above);
    let mut rows = Vec::new();
    for plan in plans.iter().filter(|plan| plan.is_one_after_another()) {
        for division in Division::ALL {
            for limit in &limits {
                let order = run::plan(plan.order(), args.source_batch);
                let outcome = run(&order, work, division, *limit);
                let mut row = vec![
                    plan.name.to_owned(),
                    division.systems().to_string(),
                    match *limit {
                        usize::MAX => "never".to_owned(),
                        limit => limit.to_string(),
                    },
                ];
                row.extend(cells(args, work.reports.len(), outcome, expected)?);
                rows.push(row);
            }
        }
    }
    Ok(format!(
        "SIMULATED, 0 to {} reports a second within {} s; each system has a core that does {} of all actors.\n\n{}",
        args.top_rate,
        args.seconds,
        args.capacity,
        Table::new(header, rows).markdown()
    ))
}

fn cells(args: &Args, reports: usize, outcome: Outcome, expected: &Found) -> Result<Vec<String>> {
    let (found, outcomes) = outcome.results.sorted();
    let sheds = outcome.shed.iter().any(|shed| *shed > 0);
    ensure!(
        sheds || found == *expected,
        "other results than the reference"
    );
    let course = Course::new(&outcomes, args.top_rate, args.lasts(), Duration::ZERO);
    let right: HashMap<usize, u64> = expected.tolls.iter().map(|t| (t.report, t.toll)).collect();
    let told = found
        .tolls
        .iter()
        .filter_map(|toll| Some((toll.toll, right.get(&toll.report)?)));
    let (mut same, mut other) = (0, 0);
    for (toll, right) in told {
        *if toll == *right {
            &mut same
        } else {
            &mut other
        } += 1;
    }
    let percent = |part: usize, of: usize| format!("{:.1}", 100.0 * part as f64 / of.max(1) as f64);
    let shed: Vec<String> = outcome
        .shed
        .iter()
        .map(|shed| percent(*shed, reports))
        .collect();
    let last = course.windows.len().saturating_sub(6);
    let last: Vec<f64> = course.windows[last..]
        .iter()
        .map(|(_, mean)| *mean)
        .collect();
    Ok(vec![
        shed.join(", "),
        percent(same + other, right.len()),
        percent(other, same + other),
        (found.tolls.len() - same - other).to_string(),
        format!("{:.1}", course.mean * 1e3),
        format!("{:.0}", last.iter().sum::<f64>() / last.len() as f64 * 1e3),
        course
            .thrash_rate
            .map_or("–".to_owned(), |rate| format!("{rate:.0}")),
    ])
}
