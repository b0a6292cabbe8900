// SPDX-License-Identifier: Apache-2.0
//! Closed clients, as those of Faban: each waits for its answer, and for its time.

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::queries::Queries;
use super::{Load, Params};
use crate::draws::exponential;

/// No query is due before an answer.
const WAITS: u64 = u64::MAX;

/// All clients. What a client asks and when it would like to is the same under every governor.
#[derive(Debug)]
pub(super) struct Clients {
    load: Load,
    params: Params,
    queries: Queries,
    each: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    rng: SmallRng,
    /// Its next query, while it does not wait for an answer.
    due: u64,
    /// The earliest time of the next, while it does.
    then: u64,
}

impl Clients {
    pub(super) fn new(load: Load, params: &Params, seed: u64) -> Self {
        let client = |number: u32| {
            let mut rng = SmallRng::seed_from_u64(seed << 16 | u64::from(number));
            let due = pause(load.cycle_s, &mut rng);
            Client { rng, due, then: 0 }
        };
        Self {
            load,
            params: params.clone(),
            queries: Queries::new(params),
            each: (0..load.clients).map(client).collect(),
        }
    }

    /// Who asks next, and when.
    pub(super) fn next(&self) -> (u64, usize) {
        let dues = self.each.iter().enumerate();
        dues.map(|(client, one)| (one.due, client))
            .min()
            .unwrap_or((WAITS, 0))
    }

    /// A client's query: its class and its shards' work.
    pub(super) fn ask(&mut self, client: usize, now: u64) -> (usize, Vec<f64>) {
        let one = &mut self.each[client];
        let terms = self.load.terms.draw(&self.params, &mut one.rng);
        let work = self.queries.draw(terms, &mut one.rng);
        one.then = now.saturating_add(pause(self.load.cycle_s, &mut one.rng));
        one.due = WAITS;
        (self.load.class(terms), work)
    }

    pub(super) fn answered(&mut self, client: usize, now: u64) {
        let one = &mut self.each[client];
        one.due = one.then.max(now);
    }
}

fn pause(mean_s: f64, rng: &mut SmallRng) -> u64 {
    (exponential(mean_s, rng) * 1e9) as u64
}
