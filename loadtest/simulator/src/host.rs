// SPDX-License-Identifier: Apache-2.0
//! One host: the executor on modelled durations, and whose job is whose.

use std::collections::HashMap;
use std::time::Duration;

use weir_control::sources::cache::Changes;
use weir_executor::{Emulator, Event, Full, JobId, Modelled, Request, Spent};
use weir_policy::{KeyHash, Load};

use crate::Scenario;

#[derive(Debug)]
pub(crate) struct Host {
    emulator: Emulator,
    requests: HashMap<JobId, u32>,
    jobs: HashMap<u32, JobId>,
    /// Version of the cache contents that were told last.
    told: Option<(u64, u64)>,
    /// The earliest wake-up that is noted on the agenda.
    pub(crate) wake: Option<Duration>,
}

impl Host {
    pub(crate) fn new(scenario: &Scenario, epoch: u64) -> Self {
        Self {
            emulator: Emulator::new(&scenario.host, epoch),
            requests: HashMap::new(),
            jobs: HashMap::new(),
            told: None,
            wake: None,
        }
    }

    pub(crate) fn submit(
        &mut self,
        now: Duration,
        request: u32,
        job: Request<Modelled>,
    ) -> Result<(), Full> {
        let id = self.emulator.submit(now, job)?;
        self.requests.insert(id, request);
        self.jobs.insert(request, id);
        Ok(())
    }

    /// The caller has gone.
    pub(crate) fn cancel(&mut self, now: Duration, request: u32) {
        if let Some(id) = self.jobs.remove(&request) {
            self.requests.remove(&id);
            self.emulator.cancel(now, id);
        }
    }

    /// Tells which requests have ended up to now.
    pub(crate) fn advance(&mut self, now: Duration, mut ended: impl FnMut(u32, Spent)) {
        for event in self.emulator.advance(now) {
            let Event::Ended(id, Ok(spent)) = event else {
                continue;
            };
            if let Some(request) = self.requests.remove(&id) {
                self.jobs.remove(&request);
                ended(request, spent);
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
