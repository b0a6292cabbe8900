// SPDX-License-Identifier: Apache-2.0
//! One host: the executor on modelled durations, and whose job is whose.

use std::time::Duration;

use rustc_hash::FxHashMap;
use weir_control::sources::cache::Changes;
use weir_executor::{Emulator, Event, Full, JobId, Modelled, Request, Spent};
use weir_policy::{KeyHash, Load, Work};

use crate::Scenario;
use crate::scenario::Accept;

#[derive(Debug)]
pub(crate) struct Host {
    emulator: Emulator,
    accept: Accept,
    tasks: FxHashMap<JobId, u32>,
    /// Version of the cache contents that were told last.
    told: Option<(u64, u64)>,
    /// The earliest wake-up that is noted on the agenda.
    pub(crate) wake: Option<Duration>,
    /// It takes connections.
    pub(crate) up: bool,
    /// Jobs take this many times as long.
    pub(crate) slowed: f64,
}

/// What happened to a request.
pub(crate) enum News {
    /// A joblet that it needs has a core for the first time.
    Started,
    Ended(Spent),
}

impl Host {
    pub(crate) fn new(scenario: &Scenario, epoch: u64) -> Self {
        Self {
            emulator: Emulator::new(&scenario.host, epoch),
            accept: scenario.accept,
            tasks: FxHashMap::default(),
            told: None,
            wake: None,
            up: true,
            slowed: 1.0,
        }
    }

    /// Until it takes a connection.
    pub(crate) fn accepts_after(&mut self, now: Duration) -> Duration {
        let accept = self.accept;
        match accept.per_job.is_zero() {
            true => Duration::ZERO,
            false => accept.delay(self.emulator.queued(now)),
        }
    }

    pub(crate) fn submit(
        &mut self,
        now: Duration,
        request: u32,
        mut job: Request<Modelled>,
    ) -> Result<JobId, Full> {
        if self.slowed != 1.0 {
            for step in &mut job.steps {
                step.work.core_time = step.work.core_time.mul_f64(self.slowed);
            }
        }
        let id = self.emulator.submit(now, job)?;
        self.tasks.insert(id, request);
        Ok(id)
    }

    /// The caller has gone, or waited too long.
    pub(crate) fn cancel(&mut self, now: Duration, job: JobId) {
        if self.tasks.remove(&job).is_some() {
            self.emulator.cancel(now, job);
        }
    }

    /// Takes the host away with all it had; whose requests are lost, in the order of their coming.
    pub(crate) fn lose(&mut self) -> Vec<u32> {
        self.up = false;
        let mut lost: Vec<_> = self.tasks.drain().collect();
        lost.sort_unstable();
        lost.into_iter().map(|(_, request)| request).collect()
    }

    /// Tells what happened to requests up to now.
    pub(crate) fn advance(&mut self, now: Duration, mut tell: impl FnMut(u32, News)) {
        for event in self.emulator.drain(now) {
            match event {
                Event::Started(id) => {
                    if let Some(request) = self.tasks.get(&id) {
                        tell(*request, News::Started);
                    }
                }
                Event::Ended(id, Ok(spent)) => {
                    if let Some(request) = self.tasks.remove(&id) {
                        tell(request, News::Ended(spent));
                    }
                }
                Event::Began(..) | Event::Ended(_, Err(_)) => {}
            }
        }
    }

    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.emulator.next_due()
    }

    pub(crate) fn load(&mut self, now: Duration) -> Load {
        let load = self.emulator.load(now);
        Load {
            observed: now,
            in_progress: load.in_progress,
            queued: load.queued.iter().sum(),
            queuing_delay: load.queuing_delay,
            busy_cores: Some(load.busy_cores),
            work: Some(Work::by_class(load.work)),
        }
    }

    /// What came to and went from the cache since the last call.
    pub(crate) fn cache_changes(&mut self) -> Changes {
        let (version, epoch) = self.told.unzip();
        let cache = self.emulator.executor().cache();
        let changes = cache.changes_since(version.unwrap_or(0), epoch);
        self.told = Some((changes.version, changes.epoch));
        let hashes = |keys: Vec<std::sync::Arc<str>>| {
            let hash = |key: std::sync::Arc<str>| KeyHash::of(key.as_bytes());
            keys.into_iter().map(hash).collect()
        };
        Changes {
            reset: changes.reset,
            added: hashes(changes.added),
            removed: hashes(changes.removed),
        }
    }
}
