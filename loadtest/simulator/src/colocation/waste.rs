// SPDX-License-Identifier: Apache-2.0
//! Cores that do nothing though jobs are left (part 4.2: "the theoretical maximum waste").

use weir_governor::cores::{CorePlan, JobPlan, Reason};
use weir_governor::jobs::State;

/// Until all jobs have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Waste {
    /// Seconds in which the small block is memcached's because no job is left for it.
    pub bound_s: f64,
    /// Of these, seconds in which memcached would keep its objective on one core: what the document says is wasted.
    pub spare_s: f64,
    /// Core seconds of blocks without a job while one waits: between a job's end and the scheduler's next look.
    pub idle_s: f64,
}

impl Waste {
    /// Cores of the machine are numbered from 0. `needs_two`: memcached would break its objective on one core.
    pub(super) fn add(
        &mut self,
        dt: f64,
        plan: &CorePlan,
        states: &[State],
        cores: u32,
        needs_two: bool,
    ) {
        if plan.reason == Reason::NoJobs {
            self.bound_s += dt;
            self.spare_s += if needs_two { 0.0 } else { dt };
        }
        if states.contains(&State::Waiting) {
            let free = |core: &u32| {
                let has = |(job, state): (&JobPlan, &State)| {
                    *state == State::Running && job.cores.has(*core)
                };
                !plan.service.has(*core) && !plan.jobs.iter().zip(states).any(has)
            };
            let free = (0..cores).filter(free).count();
            self.idle_s += dt * free as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_governor::cores::{Act, Cores};

    use super::*;

    fn waste(reason: Reason, states: [State; 2], needs_two: bool) -> Waste {
        let job = |cores: Cores, threads| JobPlan {
            act: Act::Run,
            cores,
            threads,
            ..JobPlan::default()
        };
        let plan = CorePlan {
            service: [0].into(),
            jobs: vec![job([2, 3].into(), 1), job([1].into(), 1)],
            reason,
            ..CorePlan::default()
        };
        let mut waste = Waste::default();
        waste.add(2.0, &plan, &states, 4, needs_two);
        waste
    }

    #[test]
    fn a_core_that_is_memcacheds_for_want_of_jobs_is_wasted_where_one_is_enough() {
        let running = [State::Running; 2];
        let calm = waste(Reason::NoJobs, running, false);
        assert_eq!((calm.bound_s, calm.spare_s), (2.0, 2.0));
        let busy = waste(Reason::NoJobs, running, true);
        assert_eq!((busy.bound_s, busy.spare_s), (2.0, 0.0));
        assert_eq!(waste(Reason::Calm, running, false).bound_s, 0.0);
    }

    #[test]
    fn a_block_without_a_job_is_idle_while_one_waits() {
        let next = waste(Reason::Calm, [State::Finished, State::Waiting], false);
        assert_eq!(next.idle_s, 6.0);
        let last = waste(Reason::Calm, [State::Running, State::Finished], false);
        assert_eq!(last.idle_s, 0.0);
    }
}
