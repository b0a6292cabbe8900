// SPDX-License-Identifier: Apache-2.0
//! One run.

use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use serde_json::json;
use weir_governor::frequency::Policy;
use weir_governor::frequency::three_state::ThreeState;
use weir_replay::units;
use weir_sim::node::{self, Agent, Allowed, Governor, Load, Run, Terms};

use super::Model;

#[derive(Clone, Copy, ValueEnum)]
enum Policies {
    Performance,
    Powersave,
    Ondemand,
    Schedutil,
    ThreeState,
}

#[derive(Clone, Copy, ValueEnum)]
enum Loads {
    Low,
    Mixed,
    High,
}

#[derive(Clone, Copy, ValueEnum)]
enum Agents {
    None,
    Document,
    Ours,
}

#[derive(clap::Args)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    model: Model,
    #[arg(long, value_enum)]
    policy: Policies,
    #[arg(long, value_enum)]
    load: Loads,
    /// So many times the base load: four clients, each one query a second
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    times: u32,
    /// Between ticks
    #[arg(long, default_value = "50ms", value_parser = units::duration)]
    period: Duration,
    /// Of three-state
    #[arg(long, default_value = "450ms", value_parser = units::duration)]
    threshold: Duration,
    /// What events and ticks cost: nothing, as document 002's agent, or as ours
    #[arg(long, value_enum, default_value = "ours")]
    agent: Agents,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value = "20m", value_parser = units::duration)]
    lasts: Duration,
}

impl Args {
    pub(super) fn run(&self) -> Result<()> {
        let params = self.model.params()?;
        let terms = match self.load {
            Loads::Low => Terms::Low,
            Loads::Mixed => Terms::Mixed,
            Loads::High => Terms::High,
        };
        let three_state = ThreeState {
            threshold: self.threshold,
            ..ThreeState::default()
        };
        let outcome = node::run(Run {
            load: Load::base(terms, self.times),
            governor: match self.policy {
                Policies::Performance => Governor::performance(),
                Policies::Powersave => Governor::powersave(),
                Policies::Ondemand => Governor::ondemand(),
                Policies::Schedutil => Governor::schedutil(),
                Policies::ThreeState => {
                    Governor::Policy(Policy::ThreeState(three_state), self.period)
                }
            },
            agent: match self.agent {
                Agents::None => Agent::NONE,
                Agents::Document => Agent::document(&params),
                Agents::Ours => Agent::ours(&params),
            },
            params,
            allowed: Allowed::All,
            seed: self.seed,
            lasts: self.lasts,
            answers: usize::MAX,
        });
        let energy = outcome.energy;
        let figures = json!({
            "SIMULATED": true,
            "queries": outcome.latencies.len(),
            "seconds": outcome.seconds,
            "latency_s": {"mean": outcome.mean(), "p50": outcome.quantile(0.5), "p99": outcome.quantile(0.99)},
            "missed_1s": outcome.missed(1.0),
            "MODEL_watts": outcome.watts(),
            "MODEL_joules": {
                "all": energy.joules(), "package": energy.package_j, "uncore": energy.uncore_j,
                "active": energy.active_j, "idle": energy.idle_j,
            },
            "active_s_by_step": outcome.active_s,
            "idle_s": {"C0": outcome.idle_s[0], "C1": outcome.idle_s[1], "C1E": outcome.idle_s[2], "C6": outcome.idle_s[3]},
            "transitions": outcome.transitions,
            "ticks": outcome.ticks,
        });
        println!("{figures:#}");
        Ok(())
    }
}
