// SPDX-License-Identifier: Apache-2.0
//! How much is measured.

use std::time::Duration;

use crate::bench::epp::MOST_HOSTS;
use crate::bench::inference::workload::{MOONCAKE, Source};

pub(super) struct Plan {
    pub(super) source: Source,
    /// As many as the endpoint picker takes without a cluster.
    pub(super) hosts: usize,
    /// Of each host: what weir-llm-host has by default.
    pub(super) capacity_blocks: u32,
    /// That a host reads: what weir-llm-host has by default.
    pub(super) prefill_tokens_per_second: u32,
    /// Of the text of a host's block.
    pub(super) block_bytes: u32,
    /// For so long Weir takes the blocks of a prompt for cached where it sent them, where hosts do not say: about as long
    /// as they are, of so many requests.
    pub(super) assumed_cached: &'static str,
    /// Of the trace.
    pub(super) minutes: u64,
    /// Times of the trace and of the hosts are divided by this, and so are polls: a way that decides
    /// by what it polls would otherwise decide by what is long past. A greater one would make polls
    /// the most of the work.
    pub(super) speed_up: u32,
    pub(super) rounds: usize,
    /// How long sidecars and whom they ask are left alone, to see what they cost then.
    pub(super) idle: Duration,
    /// weir-control asks the hosts so often for load and cache contents: its default of a second,
    /// sped up.
    pub(super) weir_poll: &'static str,
    /// EPP asks them so often for their load: its default of 50 ms, sped up.
    pub(super) epp_poll: &'static str,
    /// What a host tells of its load counts from so long after its first answer: Envoy's default of 10 s, sped up.
    pub(super) blackout: &'static str,
    /// Weights are made so often: Envoy's default of a second, sped up.
    pub(super) weights: &'static str,
    /// Of bounded ring hash: a host has at most so many percent of the mean of requests in progress.
    pub(super) balance_percent: u32,
    /// With more queued requests than this a host gets nothing from Weir.
    pub(super) breaker_queued: u32,
    /// Where answers have a deadline: whoever asked leaves so long after the request was due, in seconds of the trace.
    pub(super) patience_s: u32,
}

impl Plan {
    pub(super) fn new(quick: bool) -> Self {
        let full = Self {
            source: MOONCAKE,
            hosts: MOST_HOSTS,
            capacity_blocks: 2500,
            prefill_tokens_per_second: 8000,
            block_bytes: 2048,
            assumed_cached: "40s",
            minutes: 8,
            speed_up: 5,
            rounds: 2,
            idle: Duration::from_secs(2),
            weir_poll: "200ms",
            epp_poll: "10ms",
            blackout: "2s",
            weights: "0.2s",
            balance_percent: 125,
            breaker_queued: 4,
            patience_s: 30,
        };
        match quick {
            false => full,
            true => Self {
                minutes: 3,
                rounds: 1,
                idle: Duration::from_secs(1),
                ..full
            },
        }
    }

    /// The same in the trace's own time, with each program's default for what is sped up otherwise.
    pub(super) fn unhurried(self) -> Self {
        Self {
            speed_up: 1,
            weir_poll: "1s",
            epp_poll: "50ms",
            blackout: "10s",
            weights: "1s",
            ..self
        }
    }

    /// The same with at most so many minutes.
    pub(super) fn lasting(mut self, minutes: u64) -> Self {
        self.minutes = self.minutes.min(minutes);
        self
    }
}
