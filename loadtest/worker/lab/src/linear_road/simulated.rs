// SPDX-License-Identifier: Apache-2.0
//! SIMULATED: the workflow's decisions and results are real, its firings take modelled time on a clock of their own.
//! Where more are under way than there are cores they share them evenly, without a cost of switching.

use std::time::Duration;

use weir_executor::Workflow;
use weir_executor::workflow::Plan;

use super::actor::{self, Event, SOURCE};
use super::run::{Results, Work, fire};

struct Running {
    actor: usize,
    /// Nanoseconds on a core.
    left: u64,
    sent: Vec<(usize, Event)>,
}

pub(super) fn run(plan: Plan, work: Work<'_>) -> Results {
    let cores = plan.cores as u64;
    let mut workflow = Workflow::new(plan);
    let mut actors = actor::all();
    let mut arrivals = work.reports.iter().peekable();
    let arrives = |at: Duration| nanos(at + work.input.before());
    let mut running: Vec<Running> = Vec::new();
    let mut results = Results::default();
    let mut now = 0;
    loop {
        while let Some(report) = arrivals.next_if(|report| arrives(report.at) <= now) {
            workflow.push(SOURCE, Event::Report(*report));
        }
        while let Some(firing) = workflow.start(Duration::from_nanos(now)) {
            let (actor, taken) = (firing.actor, firing.events.len());
            let sent = fire(&mut actors[actor], firing.events);
            let costs = work.costs.firing(actor, taken, sent.len());
            running.push(Running {
                actor,
                left: nanos(costs + work.input.within(actor, taken)),
                sent,
            });
        }
        let next = arrivals.peek().map(|report| arrives(report.at));
        // Of as many nanoseconds as firings share the cores, each gets as many as there are cores.
        let sharing = (running.len() as u64).max(cores);
        let first = running.iter().map(|r| r.left).min();
        let ends = first.map(|left| now + (left * sharing).div_ceil(cores));
        match (ends, next) {
            (None, None) => return results,
            (Some(ends), next) if next.is_none_or(|next| ends <= next) => {
                now = ends;
                pass(&mut running, first.unwrap_or(0));
            }
            (_, next) => {
                let next = next.unwrap_or(now);
                pass(&mut running, (next - now) * cores / sharing);
                now = next;
            }
        }
        for ended in running.extract_if(.., |firing| firing.left == 0) {
            let at = Duration::from_nanos(now);
            for result in workflow.finish(at, ended.actor, ended.sent) {
                results.take(at, result, work.reports);
            }
        }
    }
}

fn pass(running: &mut [Running], core_time: u64) {
    for firing in running {
        firing.left = firing.left.saturating_sub(core_time);
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
