// SPDX-License-Identifier: Apache-2.0
//! What the sensors saw in one tick: plain data, allocated once and filled anew.

use std::time::Duration;

use crate::jobs::State;
use crate::node::Khz;

/// Hot functions are told apart by numbers below this.
pub const FUNCTIONS: usize = 16;

/// `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub u64);

impl Nanos {
    /// How long ago `earlier` was; nothing where it is still to come.
    pub fn since(self, earlier: Nanos) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// So much later.
    pub fn after(self, time: Duration) -> Nanos {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Nanos(self.0.saturating_add(nanos))
    }
}

/// One tick.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sensed {
    /// When it was.
    pub now: Nanos,
    /// One for each core of the [`Node`](crate::node::Node), in its order.
    pub cores: Vec<Core>,
    /// When [`Core::busy`] was read last: it is that of the time before.
    pub busy_read: Nanos,
    /// Calls of hot functions that ended since the last tick; those that were lost are missing.
    pub finished: Vec<Finished>,
    /// The service's own latency, where something measures it.
    pub tail: Option<Tail>,
    /// Of each service beside it, in the policy's order.
    pub others: Vec<Option<Tail>>,
    /// Cores that the service used on average since the last tick; none where that is not known.
    pub service_cpu: Option<f64>,
    /// What the mesh says of the service's host, where it is asked.
    pub row: Option<Row>,
    /// Since when requests wait for a thread of the service, the first to come first, as far as that is told.
    pub waiting: Vec<Nanos>,
    /// The batch jobs, in their order.
    pub jobs: Vec<State>,
    /// Cores that the jobs used on average since the last tick, all together; none where that is not known.
    pub jobs_cpu: Option<f64>,
    /// Jobs of other nodes that these wait for: whether each has ended; none while that is not known.
    pub elsewhere: Vec<Option<bool>>,
    /// What the service and the jobs share beside cores.
    pub resources: Resources,
}

/// What the service and the jobs share beside cores, as it was in the last second; none where that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resources {
    /// Bits a second that others than jobs sent by the interface of the configuration.
    pub egress: Option<f64>,
    /// What all packages together drew.
    pub watts: Option<f64>,
    /// Of the service's cores, the frequency of the slowest.
    pub slowest: Option<Khz>,
    /// What memory was read and written, where resctrl measures it.
    pub memory: Option<Bandwidth>,
}

/// Bytes a second between an L3 cache and memory; where there are several, of the one with most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bandwidth {
    /// When it was read: it is that of the second before.
    pub at: Nanos,
    /// The jobs'.
    pub jobs: f64,
    /// Everybody's.
    pub total: f64,
}

/// What weir-control says of the service's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// When it was said.
    pub at: Nanos,
    /// Its admission level keeps some requests away.
    pub refuses: bool,
    /// For how long requests wait there before they run, where that is known.
    pub delay: Option<Duration>,
}

/// What one core does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Core {
    /// False: nothing is planned for it.
    pub online: bool,
    /// Share of the time since the last reading in which it was not idle, 0 to 1.
    pub busy: f64,
    /// Its hot functions.
    pub hot: Hot,
}

impl Core {
    /// How busy it is, as a share whatever was read.
    pub fn load(&self) -> f64 {
        if self.busy.is_nan() {
            0.0
        } else {
            self.busy.clamp(0.0, 1.0)
        }
    }
}

/// Since when each hot function has been running on a core; of several threads, the one that entered first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hot {
    since: [Option<Nanos>; FUNCTIONS],
}

impl Hot {
    /// A thread on this core has been in `function` since then.
    pub fn enter(&mut self, function: usize, since: Nanos) {
        if let Some(slot) = self.since.get_mut(function) {
            *slot = Some(slot.map_or(since, |first| first.min(since)));
        }
    }

    /// The functions that are running, with the time of entry.
    pub fn running(&self) -> impl Iterator<Item = (usize, Nanos)> + '_ {
        let entered = |(function, since): (usize, &Option<Nanos>)| Some((function, (*since)?));
        self.since.iter().enumerate().filter_map(entered)
    }

    /// For how long the one that entered first has been running.
    pub fn longest(&self, now: Nanos) -> Option<Duration> {
        let first = self.since.iter().flatten().min();
        first.map(|since| now.since(*since))
    }

    /// Whether none is running.
    pub fn is_cold(&self) -> bool {
        self.since.iter().all(Option::is_none)
    }
}

/// A call of a hot function that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Which function.
    pub function: usize,
    /// Position of the core in the node.
    pub core: usize,
    /// From entry to return.
    pub took: Duration,
    /// When it returned.
    pub at: Nanos,
}

/// The service's latency as its callers or its sidecar see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// The quantile that the target is for.
    pub latency: Duration,
    /// Requests that it was taken from.
    pub requests: u64,
    /// When the last of them ended.
    pub at: Nanos,
}

impl Sensed {
    /// The latency, unless nothing measures it or the last measurement is older than `stale`.
    pub fn fresh_tail(&self, stale: Duration) -> Option<Tail> {
        self.tail
            .filter(|tail| tail.requests > 0 && self.now.since(tail.at) <= stale)
    }

    /// The latencies of the services beside it, those that are not older: nothing where there were no requests.
    pub fn fresh_others(&self, stale: Duration) -> Vec<Option<Duration>> {
        let lately = |tail: &Option<Tail>| tail.filter(|tail| self.now.since(tail.at) <= stale);
        let latency = |tail: &Option<Tail>| Some(lately(tail)?.latency);
        self.others.iter().map(latency).collect()
    }

    /// Who measures the latency said lately that there were no requests to measure.
    pub fn is_quiet(&self, stale: Duration) -> bool {
        let lately = |tail: &Tail| tail.requests == 0 && self.now.since(tail.at) <= stale;
        self.tail.as_ref().is_some_and(lately)
    }

    /// Mean share of time in which the online cores were not idle.
    pub fn load(&self) -> f64 {
        let online = self.cores.iter().filter(|core| core.online);
        let (busy, cores) = online.fold((0.0, 0.0), |(busy, cores), core| {
            (busy + core.load(), cores + 1.0)
        });
        if cores > 0.0 { busy / cores } else { 0.0 }
    }
}
