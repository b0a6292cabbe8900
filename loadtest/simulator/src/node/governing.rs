// SPDX-License-Identifier: Apache-2.0
//! The governor's planner, told what its sensors would see.

use std::collections::VecDeque;
use std::time::Duration;

use weir_governor::energy::Power;
use weir_governor::frequency::Policy;
use weir_governor::node::{Node, NodeCore};
use weir_governor::plan::Plan;
use weir_governor::planner::Planner;
use weir_governor::sensed::{Core as Seen, Finished, Nanos, Sensed, Tail};

use super::attributed::{Attributed, Attributions};
use super::chip::Chip;
use super::core::Core;

/// The 99th percentile is that of so much time: as a sidecar would report it.
const WINDOW_NS: u64 = 30_000_000_000;
/// And is taken anew so often.
const EVERY_NS: u64 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct Governing {
    planner: Planner,
    sensed: Sensed,
    plan: Plan,
    /// The next tick.
    pub(super) due: u64,
    /// The last one.
    last: u64,
    /// Time of the answer and latency.
    answers: VecDeque<(u64, u64)>,
    tail_due: u64,
    /// Where queries have classes.
    attributions: Option<Attributions>,
}

impl Governing {
    pub(super) fn new(
        chip: &Chip,
        power: Option<Power>,
        cores: usize,
        policy: Policy,
        period: Duration,
    ) -> Self {
        let core = |number| NodeCore {
            number,
            range: chip.range(),
        };
        let node = Node {
            cores: (0..cores as u32).map(core).collect(),
        };
        Self {
            attributions: power.map(|power| Attributions::new(&node, power)),
            planner: Planner::new(node, policy, period),
            sensed: Sensed::default(),
            plan: Plan::default(),
            due: 0,
            last: 0,
            answers: VecDeque::new(),
            tail_due: EVERY_NS,
        }
    }

    pub(super) fn answered(&mut self, now: u64, asked: u64) {
        self.answers.push_back((now, now - asked));
    }

    /// A call of a class's hot function has ended.
    pub(super) fn finished(&mut self, class: usize, core: usize, since: u64, now: u64) {
        self.sensed.finished.push(Finished {
            function: class,
            core,
            took: Duration::from_nanos(now - since),
            at: Nanos(now),
        });
    }

    pub(super) fn attributed(&self) -> Option<Attributed> {
        self.attributions.as_ref().map(Attributions::ledgers)
    }

    /// One tick: the accounts of the cores are up to `now`, and shards wait since then; `joules` is all energy so far.
    pub(super) fn tick(
        &mut self,
        chip: &Chip,
        cores: &mut [Core],
        waiting: impl Iterator<Item = u64>,
        joules: f64,
        now: u64,
    ) {
        let passed = (now - self.last).max(1);
        self.last = now;
        self.sensed.now = Nanos(now);
        self.sensed.busy_read = Nanos(now);
        self.sensed.waiting.clear();
        self.sensed.waiting.extend(waiting.map(Nanos));
        self.sensed.cores.clear();
        self.sensed.cores.extend(cores.iter_mut().map(|core| {
            let mut seen = Seen {
                online: true,
                busy: core.busy_ns as f64 / passed as f64,
                ..Seen::default()
            };
            core.busy_ns = 0;
            if let Some(since) = core.hot {
                seen.hot.enter(core.class, Nanos(since));
            }
            seen
        }));
        if now >= self.tail_due {
            self.tail_due = now + EVERY_NS;
            self.sensed.tail = self.tail(now);
        }
        if let Some(attributions) = &mut self.attributions {
            attributions.tick(chip, cores, &self.sensed, joules);
        }
        self.planner.plan(&self.sensed, &mut self.plan);
        self.sensed.finished.clear();
        for (core, setting) in cores.iter_mut().zip(&self.plan.cores) {
            core.set(chip.step(setting.frequency));
        }
        let sleep = u64::try_from(self.plan.sleep.as_nanos()).unwrap_or(u64::MAX);
        self.due = now.saturating_add(sleep.max(1));
    }

    fn tail(&mut self, now: u64) -> Option<Tail> {
        while self
            .answers
            .front()
            .is_some_and(|(at, _)| at + WINDOW_NS < now)
        {
            self.answers.pop_front();
        }
        let at = Nanos(self.answers.back()?.0);
        let mut latencies: Vec<u64> = self.answers.iter().map(|(_, latency)| *latency).collect();
        let rank = (latencies.len() * 99).div_ceil(100) - 1;
        let (_, latency, _) = latencies.select_nth_unstable(rank);
        Some(Tail {
            latency: Duration::from_nanos(*latency),
            requests: self.answers.len() as u64,
            at,
        })
    }
}
