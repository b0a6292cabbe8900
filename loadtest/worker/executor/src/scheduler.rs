// SPDX-License-Identifier: Apache-2.0
//! Which waiting joblet gets the next idle core. The kinds of joblets are the actors of document
//! 003: an order decides whose turn it is, and within an actor the most important and then the
//! oldest job goes first. A [`crate::Workflow`] has actors of its own.
//!
//! A new order is one file, one variant of [`Order`] and one arm of [`Order::build`].

mod graph;
mod priority;
mod quantum;
mod rate_based;
mod round_robin;
mod thread_per_job;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

pub use graph::Graph;
pub use quantum::{Formula, QuantumSettings};

use crate::Kind;
use crate::id::{JobId, JobletId, Rank};

/// The orders there are.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Order {
    /// The most important job first, then the oldest (document 001, section 3.4).
    #[default]
    Priority,
    /// As [`Order::Priority`], and what runs makes room for what is more important, see [`crate::suspension`].
    Suspending,
    /// Each actor in turn, for so much core time (document 003, RR).
    RoundRobin {
        /// Core time of a turn.
        quantum: Duration,
    },
    /// Actors by priority while their allowance lasts, sources at intervals (document 003, QBS).
    Quantum(QuantumSettings),
    /// The actor through which results leave at the highest rate (document 003, RB).
    RateBased,
    /// Every job at once, each on a thread of its own; the operating system shares the cores
    /// (document 003, PNCWF).
    ThreadPerJob,
}

impl Order {
    fn build(&self, graph: &Graph) -> Box<dyn Turns> {
        match self {
            Self::Priority | Self::Suspending => Box::new(priority::Priority),
            Self::RoundRobin { quantum } => Box::new(round_robin::RoundRobin::new(*quantum)),
            Self::Quantum(settings) => {
                Box::new(quantum::Quantum::new(settings.clone(), graph.len()))
            }
            Self::RateBased => Box::new(rate_based::RateBased::new(graph.clone())),
            Self::ThreadPerJob => Box::new(thread_per_job::ThreadPerJob),
        }
    }

    /// How many joblets may run at once on so many cores.
    pub(crate) fn slots(&self, cores: usize, max_queued: usize) -> usize {
        match self {
            Self::ThreadPerJob => cores.saturating_add(max_queued),
            _ => cores,
        }
    }

    /// How many cores one joblet may hold: a thread that the system schedules is one.
    pub(crate) fn most_cores(&self, cores: usize) -> usize {
        match self {
            Self::ThreadPerJob => 1,
            _ => cores,
        }
    }
}

/// Joblets of one actor that wait, by rank.
pub(crate) type Queue = BTreeMap<Rank, JobletId>;

/// The source of a graph: its first actor.
const SOURCE: usize = 0;

/// Decides whose turn it is.
trait Turns: Debug + Send {
    /// The actor whose first joblet runs next; one that has joblets, if any has.
    fn next(&mut self, actors: &[Queue]) -> Option<usize>;

    /// A joblet of that actor has run for so much core time and sent so many events along each of its edges.
    fn ran(&mut self, _actor: usize, _core_time: Duration, _sent: &[usize]) {}
}

/// The actors that have joblets waiting.
fn ready(actors: &[Queue]) -> impl Iterator<Item = usize> {
    (0..actors.len()).filter(|actor| !actors[*actor].is_empty())
}

/// The rank of an actor's first joblet; only for actors that have one.
fn first(actors: &[Queue], actor: usize) -> Option<Rank> {
    actors[actor].first_key_value().map(|(rank, _)| *rank)
}

/// The joblets that wait, and the order in which they get cores.
#[derive(Debug)]
pub(crate) struct Scheduler {
    actors: Vec<Queue>,
    turns: Box<dyn Turns>,
}

impl Scheduler {
    pub(crate) fn new(order: &Order, graph: &Graph) -> Self {
        Self {
            actors: vec![Queue::new(); graph.len()],
            turns: order.build(graph),
        }
    }

    pub(crate) fn push(&mut self, actor: usize, rank: Rank, joblet: JobletId) {
        self.actors[actor].insert(rank, joblet);
    }

    pub(crate) fn remove(&mut self, actor: usize, rank: Rank) {
        self.actors[actor].remove(&rank);
    }

    pub(crate) fn next(&mut self) -> Option<JobletId> {
        let actor = self.turns.next(&self.actors)?;
        self.actors[actor].pop_first().map(|(_, id)| id)
    }

    /// Replaces what waits at an actor and returns what waited there.
    pub(crate) fn replace(&mut self, actor: usize, queue: Queue) -> Queue {
        std::mem::replace(&mut self.actors[actor], queue)
    }

    /// Joblets of more important classes than this one.
    pub(crate) fn more_important(&self, class: u8) -> impl Iterator<Item = JobletId> + '_ {
        let first = Rank {
            class,
            job: JobId(0),
        };
        let actors = self.actors.iter();
        actors.flat_map(move |actor| actor.range(..first).map(|(_, id)| *id))
    }

    pub(crate) fn ran(&mut self, actor: usize, core_time: Duration, sent: &[usize]) {
        self.turns.ran(actor, core_time, sent);
    }

    pub(crate) fn stalled(&self) -> [u32; Kind::COUNT] {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        std::array::from_fn(|i| count(self.actors[i].len()))
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.actors.iter().all(Queue::is_empty)
    }

    #[cfg(test)]
    pub(crate) fn actors(&self) -> &[Queue] {
        &self.actors
    }
}
