// SPDX-License-Identifier: Apache-2.0
//! Rounds of short turns: each load to each engine, in an order that is drawn anew for every turn.

use std::time::Duration;

use anyhow::{Context, Result};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use serde::Serialize;
use weir_report::quantile;
use weir_stage::interrupt;
use weir_stage::usage::Process;

use crate::search::client::Client;
use crate::search::node::Node;
use crate::search::plan::Plan;
use crate::search::queries::{self, Load};
use crate::search::terms::Terms;
use crate::search::way::Way;
use crate::variant::Variant;

/// What the turns of one round measured of an engine and a load: a line of `rounds.jsonl`.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// Counted from 0; all engines are started anew.
    pub start: u32,
    /// Counted from 0 within the start.
    pub round: u32,
    /// Which queries.
    pub load: Load,
    /// Which engine.
    pub way: Way,
    /// How many.
    pub queries: usize,
    /// Half of the answers took at most this long.
    pub p50_us: f64,
    /// 19 of 20.
    pub p95_us: f64,
    /// 99 of 100.
    pub p99_us: f64,
    /// On average.
    pub mean_us: f64,
    /// CPU time of the engine, all its threads, for one query on average.
    pub cpu_us: f64,
}

/// Seeds of what is asked. All engines are asked the same.
pub struct Asked<'a> {
    /// What queries are made of.
    pub terms: &'a Terms,
    /// Of everything that is drawn.
    pub seed: u64,
    /// Sizes.
    pub plan: Plan,
}

/// One engine and the connection to it.
struct Engine {
    way: Way,
    client: Client,
    process: Process,
    /// In the turns of this round.
    took: Vec<Duration>,
    cpu: Duration,
}

/// Measures one start. Returns the rounds, and how many queries each engine has answered.
///
/// # Errors
/// A query is not answered, or a signal has come.
pub async fn run(
    nodes: &[Node],
    asked: &Asked<'_>,
    start: u32,
    mut tell: impl FnMut(u32),
) -> Result<(Vec<Round>, Vec<(Way, u64)>)> {
    let mut engines = Vec::new();
    for node in nodes {
        let client = Client::connect(node.address).await?;
        engines.push(Engine {
            way: node.way,
            client,
            process: node.process,
            took: Vec::new(),
            cpu: Duration::ZERO,
        });
    }
    let mut order = StdRng::seed_from_u64(asked.seed ^ u64::from(start));
    engines.shuffle(&mut order);
    let warm_up = asked.bodies(Load::Mixed, asked.plan.warm_up, start, u32::MAX);
    for engine in &mut engines {
        engine.ask(&warm_up).await?;
    }
    let mut rounds = Vec::new();
    let turn = asked.plan.lead + asked.plan.measured;
    for round in 0..asked.plan.rounds {
        for load in Load::ALL {
            let bodies = asked.bodies(load, asked.plan.turns * turn, start, round);
            for bodies in bodies.chunks(turn) {
                let (lead, measured) = bodies.split_at(asked.plan.lead);
                engines.shuffle(&mut order);
                for engine in &mut engines {
                    engine.turn(lead, measured).await?;
                }
            }
            rounds.extend(engines.iter_mut().map(|engine| Round {
                start,
                round,
                load,
                ..engine.round()
            }));
        }
        tell(round);
    }
    let answered = engines
        .iter()
        .map(|engine| (engine.way, engine.client.answered))
        .collect();
    Ok((rounds, answered))
}

impl Asked<'_> {
    fn bodies(&self, load: Load, count: usize, start: u32, round: u32) -> Vec<String> {
        let which = u64::from(start) << 32 | u64::from(round);
        // Spread over the seeds, so that no two rounds' are near each other.
        let seed = self.seed ^ (which + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        queries::bodies(self.terms, load, count, seed)
    }
}

impl Engine {
    /// A turn. The lead is not measured: the cores' caches belonged to another engine.
    async fn turn(&mut self, lead: &[String], measured: &[String]) -> Result<()> {
        self.ask(lead).await?;
        let before = self.process.cpu()?;
        let took = self.ask(measured).await?;
        self.cpu += self.process.cpu()?.saturating_sub(before);
        self.took.extend(took);
        Ok(())
    }

    /// The figures of the turns since the last round.
    fn round(&mut self) -> Round {
        let (took, cpu) = (
            std::mem::take(&mut self.took),
            std::mem::take(&mut self.cpu),
        );
        Round {
            way: self.way,
            ..Round::of(&took, cpu)
        }
    }

    async fn ask(&mut self, bodies: &[String]) -> Result<Vec<Duration>> {
        let mut took = Vec::with_capacity(bodies.len());
        for body in bodies {
            interrupt::check()?;
            let asked = self.client.ask(body).await;
            took.push(asked.with_context(|| format!("asking {}", self.way.name()))?);
        }
        Ok(took)
    }
}

impl Default for Round {
    fn default() -> Self {
        Self {
            start: 0,
            round: 0,
            load: Load::Light,
            way: Way::Pure,
            queries: 0,
            p50_us: 0.0,
            p95_us: 0.0,
            p99_us: 0.0,
            mean_us: 0.0,
            cpu_us: 0.0,
        }
    }
}

impl Round {
    /// The figures, whosever they are.
    fn of(took: &[Duration], cpu: Duration) -> Self {
        let micros = |time: &Duration| time.as_secs_f64() * 1e6;
        let us: Vec<f64> = took.iter().map(micros).collect();
        let percentile = |share: f64| quantile(&us, share).unwrap_or(f64::NAN);
        let each = us.len() as f64;
        Self {
            queries: us.len(),
            p50_us: percentile(0.5),
            p95_us: percentile(0.95),
            p99_us: percentile(0.99),
            mean_us: us.iter().sum::<f64>() / each,
            cpu_us: micros(&cpu) / each,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_told_by_values_that_occurred_and_their_mean() {
        let took: Vec<Duration> = (1..=200).rev().map(Duration::from_micros).collect();
        let round = Round::of(&took, Duration::from_millis(1));
        let told = [
            round.p50_us,
            round.p95_us,
            round.p99_us,
            round.mean_us,
            round.cpu_us,
        ];
        let wanted = [100.0, 190.0, 198.0, 100.5, 5.0];
        for (told, wanted) in told.into_iter().zip(wanted) {
            assert!((told - wanted).abs() < 1e-6, "{told} is not {wanted}");
        }
    }
}
