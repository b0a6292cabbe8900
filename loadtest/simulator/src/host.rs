// SPDX-License-Identifier: Apache-2.0
//! One host: what runs its jobs, and whose job is whose.

use std::time::Duration;

use rustc_hash::FxHashMap;
use weir_executor::{Modelled, Request};
use weir_fleet::holdings::Changes;
use weir_policy::overload::breakwater;
use weir_policy::{KeyHash, Load, Occupancy};

use crate::Scenario;
use crate::machine::{Machine, News, Refused, Task, TaskId};
use crate::scenario::Accept;

/// A request that the host has.
#[derive(Debug, Clone, Copy)]
struct Taken {
    request: u32,
    at: Duration,
    /// A core was idle for it, as far as its proxy knows.
    had_core: bool,
}

#[derive(Debug)]
pub(crate) struct Host {
    machine: Machine,
    accept: Accept,
    tasks: FxHashMap<TaskId, Taken>,
    /// As its proxy sees it, which knows nothing of its queue.
    occupancy: Occupancy,
    credits: breakwater::Pool,
    breakwater: breakwater::Params,
    cores: u32,
    /// Version of the cache contents that were told last.
    told: Option<(u64, u64)>,
    /// The earliest wake-up that is noted on the agenda.
    pub(crate) wake: Option<Duration>,
    /// It takes connections.
    pub(crate) up: bool,
    /// Jobs take this many times as long.
    pub(crate) slowed: f64,
    /// When it will be taken away, if that is known.
    pub(crate) goes: Option<Duration>,
}

impl Host {
    pub(crate) fn new(scenario: &Scenario, epoch: u64) -> Self {
        Self {
            machine: Machine::new(scenario, epoch),
            accept: scenario.accept,
            tasks: FxHashMap::default(),
            occupancy: Occupancy::default(),
            credits: breakwater::Pool::default(),
            breakwater: scenario.breakwater,
            cores: scenario.host.cores as u32,
            told: None,
            wake: None,
            up: true,
            slowed: 1.0,
            goes: None,
        }
    }

    /// Until it takes a connection.
    pub(crate) fn accepts_after(&mut self, now: Duration) -> Duration {
        let accept = self.accept;
        match accept.per_job.is_zero() {
            true => Duration::ZERO,
            false => accept.delay(self.machine.queued(now)),
        }
    }

    pub(crate) fn submit(
        &mut self,
        now: Duration,
        request: u32,
        mut task: Task,
    ) -> Result<TaskId, Refused> {
        if self.slowed != 1.0
            && let Task::Joblets(job) = &mut task
        {
            for step in &mut job.steps {
                step.work.core_time = step.work.core_time.mul_f64(self.slowed);
            }
        }
        let id = self.machine.submit(now, task)?;
        let had_core = self.tasks.len() < self.cores as usize;
        let taken = Taken {
            request,
            at: now,
            had_core,
        };
        self.tasks.insert(id, taken);
        Ok(id)
    }

    /// What it has to do, as its proxy sees it, where one more request would wait longer than this.
    pub(crate) fn gives_back(&self, bound: Duration, now: Duration) -> Option<Load> {
        let wait = self.wait()?;
        (wait > bound).then(|| self.seen(now))
    }

    /// The same, where requests wait too long altogether.
    pub(crate) fn refuses(&self, now: Duration) -> Option<Load> {
        let wait = self.wait()?;
        self.breakwater.refuses(wait).then(|| self.seen(now))
    }

    /// New credits for a caller that wants to have so many requests here.
    pub(crate) fn grant(&mut self, caller: usize, demand: u32, now: Duration) -> u32 {
        let there = (self.tasks.len() as u64, self.cores);
        self.credits
            .renew(&self.breakwater, &self.occupancy, there, now);
        self.credits.grant(caller as u64, demand, now)
    }

    /// How long one more request would wait, as its proxy sees it.
    fn wait(&self) -> Option<Duration> {
        self.occupancy.wait(self.tasks.len() as u64, self.cores)
    }

    /// What it has to do, as its proxy sees it.
    fn seen(&self, now: Duration) -> Load {
        let in_progress = self.tasks.len() as u32;
        Load {
            observed: now,
            in_progress,
            queued: in_progress.saturating_sub(self.cores),
            busy_cores: Some(in_progress.min(self.cores)),
            ..Load::default()
        }
    }

    /// The caller has gone, or waited too long.
    pub(crate) fn cancel(&mut self, now: Duration, job: TaskId) {
        if self.tasks.remove(&job).is_some() {
            self.machine.cancel(now, job);
        }
    }

    /// Takes the host away with all it had; whose requests are lost, in the order of their coming.
    pub(crate) fn lose(&mut self) -> Vec<u32> {
        self.up = false;
        let mut lost: Vec<_> = self.tasks.drain().collect();
        lost.sort_unstable_by_key(|(id, _)| *id);
        lost.into_iter().map(|(_, taken)| taken.request).collect()
    }

    /// Tells what happened to requests up to now.
    pub(crate) fn advance(&mut self, now: Duration, mut tell: impl FnMut(u32, News)) {
        let (tasks, occupancy) = (&mut self.tasks, &mut self.occupancy);
        self.machine.advance(now, |id, news| {
            let taken = match news {
                News::Started => tasks.get(&id).copied(),
                News::Ended(..) => tasks.remove(&id),
            };
            if let Some(taken) = taken {
                if taken.had_core && matches!(news, News::Ended(..)) {
                    occupancy.ran(now.saturating_sub(taken.at));
                }
                tell(taken.request, news);
            }
        });
    }

    /// From now to the end of a job, should it come now and nothing more important after it: until a
    /// core is free for its class, then a fetch if the data are absent, then its other joblets, on the
    /// cores that are idle now. Bounds are of hosts with cores alone, see [`Scenario::check`].
    pub(crate) fn expected(&mut self, now: Duration, job: &Request<Modelled>) -> Duration {
        let idle = self.idle(now);
        let slowed = self.slowed;
        let Some(emulator) = self.machine.joblets() else {
            return Duration::ZERO;
        };
        let wait = match idle {
            0 => emulator.free_in(now, job.class),
            _ => Duration::ZERO,
        };
        let mut lasts = wait;
        for step in job.steps.iter().rev() {
            if let Some(result) = &step.result {
                if emulator.executor().cache().get(result).is_some() {
                    break;
                }
                if let Some(left) = emulator.left(now, result) {
                    // What is being made is waited for while the core may become free.
                    return lasts.max(left + (lasts - wait));
                }
            }
            let used = u32::try_from(step.cores.clamp(1, idle.max(1))).unwrap_or(u32::MAX);
            lasts += step.work.core_time.mul_f64(slowed) / used;
        }
        lasts
    }

    /// Cores that nothing runs on.
    pub(crate) fn idle(&mut self, now: Duration) -> usize {
        let Some(emulator) = self.machine.joblets() else {
            return 0;
        };
        emulator.queued(now);
        let executor = emulator.executor();
        executor.cores().saturating_sub(executor.held_cores())
    }

    /// Whether it need not fetch anything for the job.
    pub(crate) fn has(&mut self, job: &Request<Modelled>) -> bool {
        let Some(emulator) = self.machine.joblets() else {
            return false;
        };
        let cache = emulator.executor().cache();
        let mut named = job.steps.iter().filter_map(|step| step.result.as_ref());
        named.any(|result| cache.get(result).is_some())
    }

    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.machine.next_due()
    }

    pub(crate) fn load(&mut self, now: Duration) -> Load {
        self.machine.load(now)
    }

    /// Core time in which its cores were busy since its life began; none where it is away, or has no cores.
    pub(crate) fn busy_time(&mut self, now: Duration) -> Option<Duration> {
        if self.up {
            self.machine.busy_time(now)
        } else {
            None
        }
    }

    /// How many tasks wait, by business class.
    pub(crate) fn queued_by_class(&mut self, now: Duration) -> Vec<u32> {
        self.machine.queued_by_class(now)
    }

    /// Joblets that wait for a core.
    pub(crate) fn stalled(&mut self, now: Duration) -> u32 {
        self.machine.stalled(now)
    }

    /// Whether it answers a check of its health in time.
    pub(crate) fn is_healthy(&mut self, now: Duration) -> bool {
        self.accepts_after(now) <= self.accept.healthy
    }

    /// What came to and went from the cache since the last call.
    pub(crate) fn cache_changes(&mut self) -> Changes {
        let (version, epoch) = self.told.unzip();
        let changes = self.machine.cache_changes(version.unwrap_or(0), epoch);
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
