// SPDX-License-Identifier: Apache-2.0
//! What came of a run.

use weir_report::quantile_of_sorted;

use super::attributed::Attributed;
use super::chip::Chip;
use super::core::Core;

/// Joules by the MODEL.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    /// Of the package, whatever happens.
    pub package_j: f64,
    /// Of the package, while a core is not in C6.
    pub uncore_j: f64,
    /// Of cores that work.
    pub active_j: f64,
    /// Of cores that are idle.
    pub idle_j: f64,
}

impl Energy {
    /// All of it.
    #[must_use]
    pub fn joules(&self) -> f64 {
        self.package_j + self.uncore_j + self.active_j + self.idle_j
    }
}

/// A run in figures, SIMULATED.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// From the query to the end of its last shard, in seconds, ascending.
    pub latencies: Vec<f64>,
    /// How long it was, in seconds.
    pub seconds: f64,
    /// MODEL.
    pub energy: Energy,
    /// Seconds that cores worked, by step of frequency.
    pub active_s: Vec<f64>,
    /// Seconds that cores were idle in C0, C1, C1E and C6.
    pub idle_s: [f64; 4],
    /// Seconds that cores were idle, by the step of frequency that they were told.
    pub idle_at_s: Vec<f64>,
    /// What the governor made of the energy, where there is one and queries have classes.
    pub attributed: Option<Attributed>,
    /// Changes of a core's frequency.
    pub transitions: u64,
    /// Times that the governor planned.
    pub ticks: u64,
    /// Work done, in core seconds at the highest frequency.
    pub done_s: f64,
    /// Work of all queries.
    pub asked_s: f64,
    /// And of it, what is not done at the end.
    pub left_s: f64,
}

impl Outcome {
    pub(super) fn account(&mut self, chip: &Chip, cores: &[Core]) {
        self.active_s = vec![0.0; chip.steps.len()];
        self.idle_at_s = vec![0.0; chip.steps.len()];
        for core in cores {
            let of = &core.accounts;
            for (sum, one) in self.active_s.iter_mut().zip(&of.active_ns) {
                *sum += *one as f64 * 1e-9;
            }
            for (sum, one) in self.idle_at_s.iter_mut().zip(&of.idle_at_ns) {
                *sum += *one as f64 * 1e-9;
            }
            for (sum, one) in self.idle_s.iter_mut().zip(&of.idle_ns) {
                *sum += *one as f64 * 1e-9;
            }
            self.transitions += of.transitions;
            self.done_s += of.done_ns * 1e-9;
        }
        self.latencies.sort_unstable_by(f64::total_cmp);
    }

    /// The least latency that so large a share of the queries do not exceed; 0 without queries.
    #[must_use]
    pub fn quantile(&self, share: f64) -> f64 {
        quantile_of_sorted(&self.latencies, share).unwrap_or(0.0)
    }

    /// Mean latency.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.latencies.iter().sum::<f64>() / self.latencies.len().max(1) as f64
    }

    /// Share of the queries that took longer.
    #[must_use]
    pub fn missed(&self, deadline_s: f64) -> f64 {
        let within = self.latencies.partition_point(|one| *one <= deadline_s);
        (self.latencies.len() - within) as f64 / self.latencies.len().max(1) as f64
    }

    /// Mean power by the MODEL.
    #[must_use]
    pub fn watts(&self) -> f64 {
        self.energy.joules() / self.seconds
    }
}
