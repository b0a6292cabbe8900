// SPDX-License-Identifier: Apache-2.0
//! A continuous workflow (document 003): actors with queues of events, which branch and join, under the same orders as
//! the joblets of a host.
//!
//! ```text
//! push(source, event) ─> queue ─start()─> Firing { actor, events } ─its work─> finish(.., sent) ─> queues further on
//! ```
//!
//! An actor has state, so it is fired once at a time and gets its events in the order in which they were sent. As
//! [`crate::Executor`], this reads no clock and does no work.

use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::id::{JobId, JobletId, Rank};
use crate::scheduler::{Graph, Order, Queue, Scheduler};

/// How a workflow is run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Which actor sends to which.
    pub graph: Graph,
    /// The class of each actor for [`Order::Priority`], 0 the most important.
    pub classes: Vec<u8>,
    /// Actors that may be fired at once. Under [`Order::ThreadPerJob`] all of them: each has a thread of its own.
    pub cores: usize,
    /// Whose turn it is.
    pub order: Order,
    /// Events that one firing of the source takes in at most. At least 1.
    pub source_batch: usize,
}

/// Something for an actor to do.
#[derive(Debug, PartialEq, Eq)]
pub struct Firing<E> {
    /// The number of the actor in the graph.
    pub actor: usize,
    /// What it is to take in, oldest first. Of all actors but the source one.
    pub events: Vec<E>,
}

#[derive(Debug)]
struct Running {
    since: Duration,
    /// What waits at the actor meanwhile.
    queue: Queue,
}

/// Actors and their events.
#[derive(Debug)]
pub struct Workflow<E> {
    plan: Plan,
    scheduler: Scheduler,
    /// By actor.
    running: Vec<Option<Running>>,
    idle: usize,
    waiting: FxHashMap<JobletId, (usize, E)>,
    /// Events so far.
    next: u64,
}

impl<E> Workflow<E> {
    /// A workflow without events.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let actors = plan.graph.len();
        let all_at_once = plan.order == Order::ThreadPerJob;
        Self {
            scheduler: Scheduler::new(&plan.order, &plan.graph),
            running: (0..actors).map(|_| None).collect(),
            idle: if all_at_once {
                actors
            } else {
                plan.cores.max(1)
            },
            waiting: FxHashMap::default(),
            next: 0,
            plan,
        }
    }

    /// Puts an event into an actor's queue; one for an actor that does not exist is dropped.
    pub fn push(&mut self, actor: usize, event: E) {
        let Some(running) = self.running.get_mut(actor) else {
            return;
        };
        let id = JobletId(self.next);
        let rank = Rank {
            class: self.plan.classes.get(actor).copied().unwrap_or(0),
            job: JobId(self.next),
        };
        self.next += 1;
        self.waiting.insert(id, (actor, event));
        match running {
            Some(running) => {
                running.queue.insert(rank, id);
            }
            None => self.scheduler.push(actor, rank, id),
        }
    }

    /// The next firing, if an actor has events and a core is idle. Call until it returns `None`.
    pub fn start(&mut self, now: Duration) -> Option<Firing<E>> {
        if self.idle == 0 {
            return None;
        }
        let first = self.scheduler.next()?;
        let (actor, event) = self.waiting.remove(&first)?;
        let mut queue = self.scheduler.replace(actor, Queue::new());
        let mut events = vec![event];
        while actor == 0
            && events.len() < self.plan.source_batch
            && let Some((_, id)) = queue.pop_first()
        {
            events.extend(self.waiting.remove(&id).map(|(_, event)| event));
        }
        self.idle -= 1;
        self.running[actor] = Some(Running { since: now, queue });
        Some(Firing { actor, events })
    }

    /// Ends a firing, and passes on what the actor has sent: for each event the actor that shall get it. Returns what
    /// left the workflow. An actor that was not fired is ignored.
    pub fn finish(&mut self, now: Duration, actor: usize, sent: Vec<(usize, E)>) -> Vec<E> {
        let Some(running) = self.running.get_mut(actor).and_then(Option::take) else {
            return Vec::new();
        };
        self.idle += 1;
        self.scheduler.replace(actor, running.queue);
        let edges = self.plan.graph.edges(actor);
        let along = |edge: &usize| sent.iter().filter(|(to, _)| to == edge).count();
        let counts: Vec<usize> = edges.iter().map(along).collect();
        let core_time = now.saturating_sub(running.since);
        self.scheduler.ran(actor, core_time, &counts);
        let out = self.plan.graph.len();
        let mut results = Vec::new();
        for (to, event) in sent {
            match to == out {
                true => results.push(event),
                false => self.push(to, event),
            }
        }
        results
    }

    /// Events that wait at the actors.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
