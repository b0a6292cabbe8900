// SPDX-License-Identifier: Apache-2.0
//! What is ahead of a request at a host. `estimate` asks it of every host that it looks at, so what does not depend on
//! the request is kept beside what is known of the host, and brought up to date with it.
//!
//! Times are nanoseconds in floating point here: `Duration`'s way from and to floats costs more than all the rest.

use crate::Load;
use crate::account::{self, Score};
use crate::feedback::HostFeedback;
use crate::standing::{Clock, time};

/// Whatever hosts say waits: more is as good as that, a week.
const LONGEST: f64 = 7.0 * 86_400.0 * 1e9;

/// Jobs and cores of a host, as they probably are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlook {
    cores: f64,
    /// Cores that a job holds.
    per_job: f64,
    /// Cores that are held, of those that there are: more than 1 where jobs wait.
    pub(crate) fullness: f64,
    /// By how many times itself what a request does beyond the needful delays others: all that wait, and as many
    /// that come while those do, as a queue that neither grows nor shrinks has it; each by its part of a core.
    pub(crate) delayed: f64,
    /// Jobs that are there.
    jobs: u32,
    /// Where the host has an idle core, is as fast as the others and stays: how full it is, in a score.
    pub(crate) usual: Option<Score>,
}

impl Outlook {
    /// By what the host told last, if it told anything. `usual_cores` is how many cores half of the hosts have been seen
    /// to use.
    #[inline]
    pub(crate) fn of(row: &HostFeedback, usual_cores: u32) -> Self {
        let Some(load) = &row.load else {
            return Self::untold(row);
        };
        let here = row.here_and_peers();
        let running = load.in_progress.saturating_sub(load.queued);
        let busy = load.busy();
        let cores = row
            .cores()
            .unwrap_or_else(|| believed(load, here, usual_cores).into());
        // A job takes a whole core, however slow.
        let per_job = (f64::from(busy) / f64::from(running.max(1))).clamp(1.0, cores.max(1.0));
        let (sent, _) = row.outstanding();
        let jobs = load
            .in_progress
            .saturating_add(sent)
            .saturating_sub(row.gone());
        // What is in flight from here is there, whatever the host says: to claim to be idle gains little.
        let held = f64::from(jobs.max(here)) * per_job;
        Self::new(row, cores, held, per_job, jobs)
    }

    /// By what is in flight from here alone: the host has told nothing, or too long ago.
    pub(crate) fn untold(row: &HostFeedback) -> Self {
        let here = row.here_and_peers();
        Self::new(row, row.cores().unwrap_or(1.0), here.into(), 1.0, here)
    }

    /// Of a host where jobs hold so many cores, each `per_job`.
    fn new(row: &HostFeedback, cores: f64, held: f64, per_job: f64, jobs: u32) -> Self {
        // Jobs that have no core.
        let waiting = (held - cores).max(0.0) / per_job;
        let fullness = held / cores;
        let is_usual = fullness < 1.0 && row.is_usual();
        Self {
            cores,
            per_job,
            fullness,
            delayed: 2.0 * waiting / cores,
            jobs,
            usual: is_usual.then(|| account::fullness(fullness)),
        }
    }

    /// Whether a core is free.
    pub(crate) fn is_idle(&self) -> bool {
        self.fullness < 1.0
    }

    /// Until a request of this class would have a core of the host that this is the outlook of, where none is idle and a
    /// job takes `mean`.
    pub(crate) fn wait(&self, row: &HostFeedback, class: u8, mean: f64, clock: Clock) -> f64 {
        let (_, sent) = row.outstanding();
        let sent = time(sent.ahead_of(class));
        let told = row.load.as_ref();
        let before = match told.filter(|load| clock.believes(load.observed)) {
            Some(load) => self.told_and_sent((row, load), sent, class, mean, clock),
            None => sent,
        };
        // One more for the core that has to be freed first.
        (before.max(self.least(row, class, mean)) + mean).min(LONGEST) / self.cores
    }

    /// What waits at least, whatever the host tells: what is in flight from here of no less important classes, each as
    /// long as requests are on average, but for those that have a core. Of the proxy's other VMs no classes are
    /// known; they are taken to send what this one does.
    fn least(&self, row: &HostFeedback, class: u8, mean: f64) -> f64 {
        let own = f64::from(row.in_flight.max(1));
        let all = own + f64::from(row.peers_in_flight);
        let ahead = time(row.here().ahead_of(class)) * (all / own);
        (ahead - mean * self.cores / self.per_job).max(0.0)
    }

    /// Of what the host told and what was sent since, the core time that waits.
    fn told_and_sent(
        &self,
        (row, load): (&HostFeedback, &Load),
        sent: f64,
        class: u8,
        mean: f64,
        clock: Clock,
    ) -> f64 {
        let told = match &load.work {
            Some(work) => time(work.ahead_of(class)),
            None => mean * f64::from(load.queued),
        };
        // Core time done since then for those that waited.
        let done = match load.queued {
            0 => 0.0,
            _ => clock.age(load.observed) as f64 * self.cores,
        };
        // The part of what was sent since that waits.
        let (since, _) = row.outstanding();
        let over = (f64::from(self.jobs) * self.per_job - self.cores).max(0.0);
        let waiting = (over / (f64::from(since) * self.per_job).max(1.0)).min(1.0);
        (told - done).max(0.0) + sent * waiting
    }
}

/// The cores of a host whose capacity nobody has configured or measured: those that it says it uses, and one more where
/// nothing waits, as it is not known how many more there are. Of what it says no more is believed than half of the
/// hosts have used at some time; and that nothing waits, only while no more is there from `here` than that.
fn believed(load: &Load, here: u32, usual: u32) -> u32 {
    let (busy, usual) = (load.busy(), usual.max(1));
    match load.queued {
        0 if here <= usual => busy.saturating_add(1).min(usual.saturating_add(1)),
        0 => busy.saturating_add(1).min(usual),
        _ => busy.clamp(1, usual),
    }
}
