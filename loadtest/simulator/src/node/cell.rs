// SPDX-License-Identifier: Apache-2.0
//! A run by name, and its outcomes for several seeds.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use weir_governor::frequency::iso_latency::IsoLatency;
use weir_governor::frequency::multi_state::{ByLoad, MultiState};
use weir_governor::frequency::ondemand::Ondemand;
use weir_governor::frequency::performance::Performance;
use weir_governor::frequency::powersave::Powersave;
use weir_governor::frequency::slow_to_fast::SlowToFast;
use weir_governor::frequency::three_state::ThreeState;
use weir_governor::frequency::two_state::TwoState;
use weir_governor::frequency::{Frequency, Khz, Policy};

use super::{Agent, Allowed, Governor, Load, Outcome, Params, Run, run};

/// Who sets frequencies.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Setter {
    Performance,
    Powersave,
    Ondemand,
    /// Frequency in the hot function.
    TwoState(Khz),
    /// Threshold.
    ThreeState(Duration),
    /// The default ladder, by load.
    MultiState,
    IsoLatency,
    SlowToFast,
    /// All cores at one frequency.
    Fixed(Khz),
}

/// Whose events and ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Costs {
    /// None.
    None,
    /// Those of document 002's agent.
    Document,
    /// Ours.
    Ours,
}

/// A run without its seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Who sets frequencies.
    pub setter: Setter,
    /// So often, where the policy does not choose that itself.
    pub period: Duration,
    /// What that costs.
    pub costs: Costs,
    /// Who asks.
    pub load: Load,
    /// Idle states that may be used.
    pub allowed: Allowed,
    /// Minutes; of a load of one client, thousands of queries instead.
    pub lasts: u32,
}

impl Cell {
    /// A governor of the kernel, for 20 minutes.
    #[must_use]
    pub fn kernel(setter: Setter, load: Load) -> Self {
        Self {
            setter,
            period: Duration::from_secs(1),
            costs: Costs::None,
            load,
            allowed: Allowed::All,
            lasts: 20,
        }
    }

    /// Document 002's governor, for 20 minutes.
    #[must_use]
    pub fn document(setter: Setter, period_ms: u64, load: Load) -> Self {
        Self {
            period: Duration::from_millis(period_ms),
            costs: Costs::Document,
            ..Self::kernel(setter, load)
        }
    }

    /// The run.
    #[must_use]
    pub fn run(&self, params: &Params, seed: u64) -> Run {
        let alone = self.load.clients == 1;
        Run {
            params: params.clone(),
            load: self.load,
            governor: self.setter.governor(self.period),
            agent: match self.costs {
                Costs::None => Agent::NONE,
                Costs::Document => Agent::document(params),
                Costs::Ours => Agent::ours(params),
            },
            allowed: self.allowed,
            seed,
            lasts: match alone {
                true => Duration::MAX,
                false => Duration::from_secs(60 * u64::from(self.lasts)),
            },
            answers: match alone {
                true => 1_000 * self.lasts as usize,
                false => usize::MAX,
            },
        }
    }
}

impl Setter {
    fn governor(self, period: Duration) -> Governor {
        let policy = match self {
            Self::Fixed(khz) => return Governor::Fixed(khz),
            Self::Performance => Policy::Performance(Performance),
            Self::Powersave => Policy::Powersave(Powersave),
            Self::Ondemand => Policy::Ondemand(Ondemand::default()),
            Self::TwoState(hot) => Policy::TwoState(TwoState {
                hot: Frequency::Absolute(hot),
                ..TwoState::default()
            }),
            Self::ThreeState(threshold) => Policy::ThreeState(ThreeState {
                threshold,
                ..ThreeState::default()
            }),
            Self::MultiState => Policy::MultiState(MultiState {
                by_load: Some(ByLoad::default()),
                ..MultiState::default()
            }),
            Self::IsoLatency => Policy::IsoLatency(IsoLatency::default()),
            Self::SlowToFast => Policy::SlowToFast(SlowToFast::default()),
        };
        Governor::Policy(policy, period)
    }
}

impl fmt::Display for Setter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Performance => write!(f, "performance"),
            Self::Powersave => write!(f, "powersave"),
            Self::Ondemand => write!(f, "ondemand"),
            Self::TwoState(hot) => write!(f, "two_state {hot}"),
            Self::ThreeState(threshold) => write!(f, "three_state {} ms", threshold.as_millis()),
            Self::MultiState => write!(f, "multi_state"),
            Self::IsoLatency => write!(f, "iso_latency"),
            Self::SlowToFast => write!(f, "slow_to_fast"),
            Self::Fixed(khz) => write!(f, "fixed {khz}"),
        }
    }
}

/// Runs each cell once, for the same seeds.
#[derive(Debug)]
pub struct Lab {
    params: Params,
    seeds: u64,
    done: BTreeMap<String, Vec<Outcome>>,
}

impl Lab {
    /// Of seeds from 1.
    #[must_use]
    pub fn new(params: Params, seeds: u64) -> Self {
        Self {
            params,
            seeds,
            done: BTreeMap::new(),
        }
    }

    /// How many seeds there are.
    #[must_use]
    pub fn seeds(&self) -> u64 {
        self.seeds
    }

    /// By seed; as many at a time as the machine has cores.
    pub fn outcomes(&mut self, cell: &Cell) -> &[Outcome] {
        let (params, seeds) = (&self.params, self.seeds);
        self.done.entry(format!("{cell:?}")).or_insert_with(|| {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let mut outcomes = Vec::new();
            for some in (1..=seeds).collect::<Vec<_>>().chunks(cores) {
                std::thread::scope(|scope| {
                    let start = |seed: &u64| {
                        let seed = *seed;
                        scope.spawn(move || run(cell.run(params, seed)))
                    };
                    let runs: Vec<_> = some.iter().map(start).collect();
                    outcomes.extend(runs.into_iter().map(|run| match run.join() {
                        Ok(outcome) => outcome,
                        Err(panic) => std::panic::resume_unwind(panic),
                    }));
                });
            }
            outcomes
        })
    }

    /// A figure of a cell, by seed.
    pub fn each(&mut self, cell: &Cell, of: impl Fn(&Outcome) -> f64) -> Vec<f64> {
        self.outcomes(cell).iter().map(of).collect()
    }

    /// The mean of a figure over the seeds.
    pub fn mean(&mut self, cell: &Cell, of: impl Fn(&Outcome) -> f64) -> f64 {
        let each = self.each(cell, of);
        each.iter().sum::<f64>() / each.len() as f64
    }
}
