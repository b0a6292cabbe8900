// SPDX-License-Identifier: Apache-2.0
//! The head of the table: what was run, and what of it is real.

use crate::demo::plan::{Plan, Work};
use crate::demo::ways::SIDECARS;
use weir_stage::machine;

/// `workload` is what the workload says of itself.
pub(super) fn text(plan: &Plan, workload: &str) -> String {
    let limits = &plan.limits;
    format!(
        "{workload}\n\
         hosts:    {hosts}\n\
         callers:  {callers} Envoys of one worker thread (1x1: 1; 8x8: 8 of 8 threads); {seconds} s for each way; who has no good answer {deadline} s later gives up\n\
         hop:      an Envoy of one worker thread before each host; bounces: the same with Weir, which gives requests back\n\
         policies: breaker at {breaker} queued jobs, dagor at a mean queuing delay of {threshold}, in steps of {step:.0} %\n\
         machine:  {machine}",
        callers = SIDECARS.count,
        hosts = hosts(plan),
        seconds = plan.replay.as_secs_f32(),
        deadline = plan.deadline.as_secs_f32(),
        breaker = limits.breaker_queued_jobs,
        threshold = limits.dagor_threshold,
        step = 100.0 * limits.dagor_step,
        machine = machine(plan),
    )
}

fn hosts(plan: &Plan) -> String {
    let Plan {
        hosts,
        cores,
        cache_bytes,
        ..
    } = plan;
    match &plan.work {
        Work::Emulated(trace) => format!(
            "{hosts} with {cores} EMULATED cores: a job sleeps for its time and burns no CPU; {cache_bytes} of \
             cache, empty at the start, filled at {}/s",
            trace.fetch_bytes_per_second
        ),
        Work::Real(_) => format!(
            "{hosts} with {cores} thread{s} for work: REAL fetches, caches, queues and rules; {cache_bytes} of cache, \
             empty at the start",
            s = if *cores == 1 { "" } else { "s" }
        ),
    }
}

fn machine(plan: &Plan) -> String {
    let machine = machine::describe();
    match &plan.work {
        Work::Emulated(_) => machine,
        Work::Real(_) => format!(
            "{machine}; SHARED by the hosts, the Envoys, weir-control and the replayer, \
             so each takes time from the others"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_emulated_hosts_are_called_so_and_only_real_ones_share_the_machine() {
        let emulated = text(&Plan::emulated(true), "workload: w");
        assert!(emulated.starts_with("workload: w\n") && emulated.contains("EMULATED"));
        assert!(!emulated.contains("REAL") && !emulated.contains("SHARED"));
        let dear = text(&Plan::dear(true), "workload: w");
        assert!(emulated.contains("at 5G/s") && dear.contains("at 50M/s"));
        let real = text(&Plan::real(false), "workload: w");
        assert!(real.contains("REAL") && real.contains("SHARED"), "{real}");
        assert!(!real.to_lowercase().contains("emulated"), "{real}");
    }
}
