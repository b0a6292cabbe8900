// SPDX-License-Identifier: Apache-2.0
//! The head of tables and page: what was run, and what of it is real.

use weir_stage::machine;

use super::plan::{NEWS, Plan, Work};
use super::workload::Workload;

pub(super) fn header(plan: &Plan, workload: &Workload) -> String {
    let cores = plan.cores;
    let hosts = match plan.work {
        Work::Emulated(_) => format!(
            "{} with {cores} EMULATED cores: a job sleeps for its time and burns no CPU",
            plan.hosts
        ),
        Work::Real(_) => format!(
            "{} with a thread for work: REAL fetches, caches, queues and rules, on cores that all share; \
             the pace is that at which Baseline, baseline has six tenths of them in use",
            plan.hosts
        ),
    };
    format!(
        "{workload}\n\
         hosts:    {hosts}; {cache:.1} GB of cache, empty at the start\n\
         callers:  {callers} Envoys of one worker thread; weir-control reads Consul, Prometheus and caches every {news} s, \
         Weir's default hosts and caches every {second} s\n\
         times:    of the document: {speed} s in the tables took 1 s here\n\
         policies: breaker and DAGOR (by stalled jobs) at {queued} queued jobs\n\
         machine:  {machine}",
        workload = workload.description,
        cache = plan.cache_bytes as f64 / 1e9,
        callers = plan.callers,
        news = plan.compressed(NEWS).as_secs_f64(),
        second = plan.compressed(NEWS / 5).as_secs_f64(),
        speed = plan.speed,
        queued = plan.queued_jobs,
        machine = machine::describe(),
    )
}
