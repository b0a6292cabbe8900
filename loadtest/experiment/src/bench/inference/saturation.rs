// SPDX-License-Identifier: Apache-2.0
//! How much of the trace the hosts can do at most.

use crate::bench::inference::plan::Plan;
use crate::bench::inference::workload::Facts;

/// Hosts are saturated by a rate at which the tokens that even the best placement has to have read come as fast as all
/// hosts together read them, by their modelled time. The best placement finds what one host with an endless cache
/// would. It depends on no way and no run: a way that finds less has more to read, and queues at a smaller rate.
pub(super) struct Saturation {
    /// Of the hosts' time, at the speed of the workload's file.
    own: f64,
}

impl Saturation {
    pub(super) fn of(plan: &Plan, facts: &Facts) -> Self {
        let to_read = facts.prompt_tokens as f64 * (1.0 - facts.findable_share);
        let read_per_s = plan.hosts as f64
            * f64::from(plan.prefill_tokens_per_second)
            * f64::from(plan.speed_up);
        Self {
            own: to_read / facts.duration_s / read_per_s,
        }
    }

    /// The load of the trace at its own speed.
    pub(super) fn own(&self) -> f64 {
        self.own
    }

    /// By what offsets are divided for this load.
    pub(super) fn speed(&self, load: f64) -> f64 {
        load / self.own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_saturated_by_what_the_best_placement_has_to_read() {
        let plan = Plan {
            hosts: 4,
            prefill_tokens_per_second: 1000,
            speed_up: 5,
            ..Plan::new(false)
        };
        let facts = Facts {
            requests: 100,
            rate_per_s: 2.0,
            duration_s: 50.0,
            keys: 10,
            returning_share: 0.5,
            prompt_tokens: 1_000_000,
            output_tokens: 1,
            findable_share: 0.2,
        };
        // 16,000 tokens a second of the 20,000 that can be read.
        let saturation = Saturation::of(&plan, &facts);
        assert!((saturation.own() - 0.8).abs() < 1e-9);
        assert!((saturation.speed(1.2) - 1.5).abs() < 1e-9);
        let more_found = Facts {
            findable_share: 0.6,
            ..facts
        };
        let saturation = Saturation::of(&plan, &more_found);
        assert!((saturation.own() - 0.4).abs() < 1e-9);
    }
}
