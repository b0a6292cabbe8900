// SPDX-License-Identifier: Apache-2.0
//! A run without its seed, and its outcomes for several seeds.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_governor::frequency::ondemand::Ondemand;
use weir_governor::frequency::performance::Performance;
use weir_governor::frequency::powersave::Powersave;
use weir_governor::frequency::schedutil::Schedutil;
use weir_governor::frequency::three_state::ThreeState;
use weir_governor::frequency::two_state::TwoState;
use weir_governor::frequency::{Frequency, Khz, Policy};

use crate::at_once;

use super::{Agent, Allowed, Governor, Load, Outcome, Params, Run, run};

/// Whose events and ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Costs {
    /// None, as with the kernel's governors.
    None,
    /// Those of document 002's agent.
    Document,
    /// Ours.
    Ours,
}

/// A run without its seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Who sets frequencies.
    pub governor: Governor,
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
    /// For 20 minutes, with all idle states.
    #[must_use]
    pub fn new(governor: Governor, costs: Costs, load: Load) -> Self {
        Self {
            governor,
            costs,
            load,
            allowed: Allowed::All,
            lasts: 20,
        }
    }

    /// For so many minutes.
    #[must_use]
    pub fn lasting(self, lasts: u32) -> Self {
        Self { lasts, ..self }
    }

    /// The run.
    #[must_use]
    pub fn run(&self, params: &Params, seed: u64) -> Run {
        let alone = self.load.clients == 1;
        Run {
            params: params.clone(),
            load: self.load,
            governor: self.governor.clone(),
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

/// Those that document 002 names.
impl Governor {
    /// The kernel's.
    #[must_use]
    pub fn performance() -> Self {
        Self::Policy(Policy::Performance(Performance), Duration::from_secs(1))
    }

    /// The kernel's.
    #[must_use]
    pub fn powersave() -> Self {
        Self::Policy(Policy::Powersave(Powersave), Duration::from_secs(1))
    }

    /// The kernel's.
    #[must_use]
    pub fn ondemand() -> Self {
        Self::Policy(
            Policy::Ondemand(Ondemand::default()),
            Duration::from_millis(10),
        )
    }

    /// The kernel's, as most distributions have it by default.
    #[must_use]
    pub fn schedutil() -> Self {
        let schedutil = Schedutil::default();
        Self::Policy(Policy::Schedutil(schedutil), schedutil.rate_limit)
    }

    /// By the frequency of the hot function.
    #[must_use]
    pub fn two_state(hot: Khz, period_ms: u64) -> Self {
        let two_state = TwoState {
            hot: Frequency::Absolute(hot),
            ..TwoState::default()
        };
        Self::Policy(
            Policy::TwoState(two_state),
            Duration::from_millis(period_ms),
        )
    }

    /// By threshold and period, in milliseconds.
    #[must_use]
    pub fn three_state(threshold_ms: u64, period_ms: u64) -> Self {
        let three_state = ThreeState {
            threshold: Duration::from_millis(threshold_ms),
            ..ThreeState::default()
        };
        Self::Policy(
            Policy::ThreeState(three_state),
            Duration::from_millis(period_ms),
        )
    }
}

/// Runs each cell once, for the same seeds.
#[derive(Debug)]
pub struct Lab {
    params: Params,
    first: u64,
    seeds: u64,
    /// Runs are so many times as short.
    shorter: u32,
    done: BTreeMap<String, Vec<Outcome>>,
}

impl Lab {
    /// Of seeds from 1.
    #[must_use]
    pub fn new(params: Params, seeds: u64) -> Self {
        Self {
            params,
            first: 1,
            seeds,
            shorter: 1,
            done: BTreeMap::new(),
        }
    }

    /// With seeds from another on.
    #[must_use]
    pub fn from(self, first: u64) -> Self {
        Self { first, ..self }
    }

    /// With runs that are so many times as short.
    #[must_use]
    pub fn shorter(self, shorter: u32) -> Self {
        Self { shorter, ..self }
    }

    /// The model's numbers.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// How many seeds there are.
    #[must_use]
    pub fn seeds(&self) -> u64 {
        self.seeds
    }

    /// By seed; as many at a time as the machine has cores.
    pub fn outcomes(&mut self, cell: &Cell) -> &[Outcome] {
        let (params, seeds) = (&self.params, self.first..self.first + self.seeds);
        let cell = &cell.clone().lasting(cell.lasts.div_ceil(self.shorter));
        self.done.entry(format!("{cell:?}")).or_insert_with(|| {
            let seeds: Vec<_> = seeds.collect();
            at_once(&seeds, |seed| run(cell.run(params, *seed)))
        })
    }

    /// A figure of a cell, by seed.
    pub fn each(&mut self, cell: &Cell, of: impl Fn(&Outcome) -> f64) -> Vec<f64> {
        self.outcomes(cell).iter().map(of).collect()
    }
}
