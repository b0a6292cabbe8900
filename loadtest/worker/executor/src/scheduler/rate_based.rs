// SPDX-License-Identifier: Apache-2.0
//! The actor whose path to the answer yields most results for its time (document 003, RB; the
//! Highest Rate policy of Sharaf et al., ACM TODS 33(1), 2008: global selectivity ÷ global cost).
//!
//! Costs and selectivities are means over what has run so far. An actor that never ran counts as
//! free, so it is tried early.

use std::time::Duration;

use super::{Graph, Queue, Turns, first, ready};

#[derive(Debug, Default, Clone)]
struct Seen {
    joblets: f64,
    seconds: f64,
    /// Along each edge.
    sent: Vec<f64>,
}

impl Seen {
    fn cost(&self) -> f64 {
        self.seconds / self.joblets.max(1.0)
    }

    fn selectivity(&self, edge: usize) -> f64 {
        match self.joblets > 0.0 {
            true => self.sent[edge] / self.joblets,
            false => 1.0,
        }
    }
}

#[derive(Debug)]
pub(super) struct RateBased {
    graph: Graph,
    seen: Vec<Seen>,
}

impl RateBased {
    pub(super) fn new(graph: Graph) -> Self {
        let seen = |actor| Seen {
            sent: vec![0.0; graph.edges(actor).len()],
            ..Seen::default()
        };
        Self {
            seen: (0..graph.len()).map(seen).collect(),
            graph,
        }
    }

    /// Results at the ends of the paths that begin with each actor, per second on a core. Where paths part, what comes
    /// of all of them counts, and what they cost.
    fn rates(&self) -> Vec<f64> {
        // Out of the graph an event is one result that costs nothing.
        let mut ahead = vec![(1.0, 0.0); self.graph.len() + 1];
        for (actor, seen) in self.seen.iter().enumerate().rev() {
            let (mut results, mut cost) = (0.0, seen.cost());
            for (edge, to) in self.graph.edges(actor).iter().enumerate() {
                let events = seen.selectivity(edge);
                results += events * ahead[*to].0;
                cost += events * ahead[*to].1;
            }
            ahead[actor] = (results, cost);
        }
        let rate = |(results, cost): (f64, f64)| match cost > 0.0 {
            true => results / cost,
            false => f64::INFINITY,
        };
        ahead.into_iter().map(rate).collect()
    }
}

impl Turns for RateBased {
    fn next(&mut self, actors: &[Queue]) -> Option<usize> {
        let rates = self.rates();
        ready(actors).min_by(|a, b| {
            let by_rate = rates[*b].total_cmp(&rates[*a]);
            by_rate.then_with(|| first(actors, *a).cmp(&first(actors, *b)))
        })
    }

    fn ran(&mut self, actor: usize, core_time: Duration, sent: &[usize]) {
        let seen = &mut self.seen[actor];
        seen.joblets += 1.0;
        seen.seconds += core_time.as_secs_f64();
        for (sum, events) in seen.sent.iter_mut().zip(sent) {
            *sum += *events as f64;
        }
    }
}
