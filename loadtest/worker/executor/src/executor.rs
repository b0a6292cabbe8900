// SPDX-License-Identifier: Apache-2.0
//! Jobs, joblets, cores and cache of one host, in one place.

use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::Kind;
use crate::cache::{Cache, Eviction};
use crate::costs::Costs;
use crate::delay::RecentDelay;
use crate::id::{JobId, JobletId, Rank};
use crate::job::{Event, Job, Request, Source};
use crate::joblet::{Joblet, Running, Start};
use crate::load::{CLASSES, Load};
use crate::scheduler::{Graph, Order, Scheduler};
use crate::suspension::{Suspensions, Unwanted};
use crate::waiters::Waiters;
use crate::work::{Product, ResultId, Work};

/// The size of a host.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Cores. At least 1.
    pub cores: usize,
    /// Bytes the cache may hold.
    pub cache_bytes: u64,
    /// Jobs that may wait for a core at the same time.
    pub max_queued: usize,
    /// Cache changes remembered for [`Cache::changes_since`].
    pub change_log: usize,
    /// The order in which joblets get cores.
    pub order: Order,
    /// What leaves the cache when it is full.
    pub eviction: Eviction,
}

/// As many jobs as allowed are waiting already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} jobs are queued already")]
pub struct Full(pub usize);

/// Cores, queue and cache of one host.
#[derive(Debug)]
pub struct Executor<W: Work> {
    pub(crate) cores: usize,
    /// Cores that no joblet holds; more than there are where the system shares them out.
    pub(crate) idle: usize,
    /// The most that one joblet gets.
    most_cores: usize,
    max_queued: usize,
    pub(crate) suspends: bool,
    pub(crate) scheduler: Scheduler,
    pub(crate) jobs: FxHashMap<JobId, Job<W>>,
    pub(crate) joblets: FxHashMap<JobletId, Joblet<W>>,
    /// The joblet that will make a result.
    pending: FxHashMap<ResultId, JobletId>,
    cache: Cache<W::Output>,
    pub(crate) queued: [u32; CLASSES],
    /// What those jobs are expected to need, see [`Load::work`].
    pub(crate) work: [Duration; CLASSES],
    costs: Costs,
    delay: RecentDelay,
    events: Vec<Event<W::Error>>,
    pub(crate) held: usize,
    /// Joblets that run and that nobody wants any more.
    pub(crate) unwanted: usize,
    pub(crate) suspensions: Suspensions,
    next_job: u64,
    next_joblet: u64,
}

impl<W: Work> Executor<W> {
    /// An idle host with an empty cache. `epoch` names this life of the cache.
    #[must_use]
    pub fn new(settings: &Settings, epoch: u64) -> Self {
        let cores = settings.cores.max(1);
        Self {
            cores,
            idle: settings.order.slots(cores, settings.max_queued),
            most_cores: settings.order.most_cores(cores),
            max_queued: settings.max_queued,
            suspends: settings.order == Order::Suspending,
            scheduler: Scheduler::new(&settings.order, &Graph::chain(Kind::COUNT)),
            jobs: FxHashMap::default(),
            joblets: FxHashMap::default(),
            pending: FxHashMap::default(),
            cache: Cache::new(
                settings.cache_bytes,
                settings.eviction,
                settings.change_log,
                epoch,
            ),
            queued: [0; CLASSES],
            work: [Duration::ZERO; CLASSES],
            costs: Costs::default(),
            delay: RecentDelay::default(),
            events: Vec::new(),
            held: 0,
            unwanted: 0,
            suspensions: Suspensions::default(),
            next_job: 0,
            next_joblet: 0,
        }
    }

    /// Accepts a job, unless too many wait. One whose results are all cached ends at once.
    pub fn submit(&mut self, now: Duration, request: Request<W>) -> Result<JobId, Full> {
        if self.idle == 0 && self.queued() as usize >= self.max_queued {
            return Err(Full(self.max_queued));
        }
        let id = JobId(self.next_job);
        self.next_job += 1;
        let class = request.class.min(CLASSES as u8 - 1);
        let needs_data = request.steps.iter().any(|s| s.kind == Kind::FeedSource);
        let mut job = Job::new(class, request.steps, now);
        job.expect(self.costs.expect(job.key.as_ref()));
        self.jobs.insert(id, job);
        let source = self.advance(now, id);
        if let Some(job) = self.jobs.get_mut(&id).filter(|_| needs_data) {
            job.source = source;
        }
        self.end_if_complete(id);
        Ok(id)
    }

    /// Gives the next joblet cores, if both exist. Call until it returns `None`.
    pub fn start(&mut self, now: Duration) -> Option<Start<W>> {
        if self.idle == 0 {
            return None;
        }
        let id = self.scheduler.next()?;
        let joblet = self.joblets.get_mut(&id)?;
        let resumed = joblet.suspended.take();
        self.suspensions.suspended -= usize::from(resumed.is_some());
        let most = resumed.unwrap_or(self.most_cores);
        let cores = joblet.step.cores.min(most).clamp(1, self.idle);
        joblet.running = Some(Running::new(cores, now));
        count_fetch(joblet, &self.jobs, &mut self.work);
        self.idle -= cores;
        self.held += cores;
        for rank in joblet.waiters.iter() {
            let Some(job) = self.jobs.get_mut(&rank.job) else {
                continue;
            };
            job.end_wait(now);
            let class = usize::from(rank.class);
            self.queued[class] -= 1;
            self.work[class] = self.work[class].saturating_sub(job.expected_run());
            if note_start(job, rank.job, &mut self.events) {
                self.delay.record(now, job.wait);
            }
        }
        Some(Start {
            joblet: id,
            kind: joblet.step.kind,
            cores,
            work: joblet.step.work.clone(),
            input: joblet.input.take(),
            resumed: resumed.is_some(),
        })
    }

    /// Frees the cores of a joblet, keeps its result and moves on the jobs that wanted it; those
    /// that are complete or have failed are in [`Executor::events`]. An unknown joblet is ignored.
    pub fn finish(
        &mut self,
        now: Duration,
        id: JobletId,
        result: Result<Product<W::Output>, W::Error>,
    ) {
        let Some(joblet) = self.joblets.remove(&id) else {
            return;
        };
        let kind = joblet.step.kind;
        let mut core_time = Duration::ZERO;
        if let Some(running) = joblet.running {
            self.free(running);
            core_time = running.core_time(now);
            let sent = [joblet.waiters.len()];
            self.scheduler.ran(kind.index(), core_time, &sent);
            self.unwanted -= usize::from(joblet.waiters.is_empty());
        }
        forget_pending(&mut self.pending, &joblet, id);
        match result {
            Ok(product) => {
                let output = product.output.clone();
                // One that was given up may have ended well after all, when another is making it.
                let pending = |result: &ResultId| self.pending.contains_key(result);
                let result = joblet.step.result.filter(|result| !pending(result));
                if let Some(result) = result.filter(|_| joblet.step.keep) {
                    self.cache
                        .insert(now, result, product.output, product.bytes);
                }
                for rank in joblet.waiters.iter() {
                    self.pass_on(now, rank.job, (kind, core_time), &output);
                }
            }
            Err(error) => {
                for rank in joblet.waiters.iter() {
                    self.jobs.remove(&rank.job);
                    let failed = Event::Ended(rank.job, Err(error.clone()));
                    self.events.push(failed);
                }
            }
        }
    }

    /// Forgets a job. What waits is dropped; a joblet on a core runs to its end, as document 001
    /// has it, and one that others want goes on. Unknown or finished jobs are ignored. Returns the
    /// joblet whose work nobody wants any more, if it has begun.
    pub fn cancel(&mut self, id: JobId) -> Option<Unwanted> {
        self.leave(id)
    }

    /// Forgets a job, and returns the joblet that has begun for it alone: the caller may stop it. Nobody
    /// can share it any more, whatever comes of it.
    pub fn abort(&mut self, id: JobId) -> Option<JobletId> {
        match self.leave(id)? {
            Unwanted::Runs(joblet) => self.give_up(joblet).then_some(joblet),
            Unwanted::Stands(joblet) => Some(joblet),
        }
    }

    /// Whether a joblet runs for nobody: the caller may stop it, and nobody can share it any more.
    pub fn give_up(&mut self, id: JobletId) -> bool {
        let Some(joblet) = self.joblets.get(&id) else {
            return false;
        };
        let unwanted = joblet.running.is_some() && joblet.waiters.is_empty();
        if unwanted {
            forget_pending(&mut self.pending, joblet, id);
        }
        unwanted
    }

    /// What has happened since the last call, in order.
    pub fn events(&mut self) -> Vec<Event<W::Error>> {
        std::mem::take(&mut self.events)
    }

    /// As [`Executor::events`], without a list of its own.
    pub fn drain(&mut self) -> impl Iterator<Item = Event<W::Error>> + '_ {
        self.events.drain(..)
    }

    /// Every job that is not finished, in order of submission.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobId> {
        let mut ids: Vec<_> = self.jobs.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// The cache.
    #[must_use]
    pub fn cache(&self) -> &Cache<W::Output> {
        &self.cache
    }

    /// Cores held by running joblets; more than there are where the system shares them out.
    #[must_use]
    pub fn held_cores(&self) -> usize {
        self.held
    }

    /// The cores there are.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// What waits to be done, in no order: its place, the joblet if there is one already, and the work. A joblet that
    /// several jobs want counts once, for the most important of them; what a job needs after its joblet counts for the
    /// job, even where the result may be shared in the end.
    pub(crate) fn to_do(&self) -> impl Iterator<Item = (Rank, Option<JobletId>, &W)> {
        let waiting = self.joblets.iter().filter(|(_, j)| j.running.is_none());
        let now = waiting.filter_map(|(id, joblet)| {
            let rank = joblet.waiters.first()?;
            Some((rank, Some(*id), &joblet.step.work))
        });
        let later = self.jobs.iter().flat_map(|(id, job)| {
            let steps = job.steps.iter().skip(job.next + 1);
            steps.map(|step| (job.rank(*id), None, &step.work))
        });
        now.chain(later)
    }

    /// The cores that a joblet holds; none while it waits.
    pub(crate) fn cores_of(&self, joblet: JobletId) -> usize {
        let running = self.joblets.get(&joblet).and_then(|joblet| joblet.running);
        running.map_or(0, |running| running.cores)
    }

    /// The joblet that will make a result.
    pub(crate) fn making(&self, result: &ResultId) -> Option<JobletId> {
        self.pending.get(result).copied()
    }

    /// Jobs whose next joblet waits for a core.
    #[must_use]
    pub fn queued(&self) -> u32 {
        self.queued.iter().sum()
    }

    /// The load now.
    pub fn load(&mut self, now: Duration) -> Load {
        let queuing_delay = self.delay.mean(now).or_else(|| self.longest_wait(now));
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Load {
            in_progress: count(self.jobs.len() + self.unwanted),
            busy_cores: count(self.held.min(self.cores)),
            queued: self.queued,
            stalled: self.scheduler.stalled(),
            work: self.work,
            queuing_delay,
        }
    }

    fn longest_wait(&self, now: Duration) -> Option<Duration> {
        let waiting = self.jobs.values().filter(|job| job.waiting);
        waiting.map(|job| job.wait_so_far(now)).max()
    }

    /// Hands a result to a job that wanted it and sees to its next step.
    fn pass_on(&mut self, now: Duration, id: JobId, ended: (Kind, Duration), output: &W::Output) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        let (kind, core_time) = ended;
        job.end_joblet(kind, core_time, now);
        job.input = Some(output.clone());
        job.next += 1;
        self.advance(now, id);
        self.end_if_complete(id);
    }

    /// Finds the latest step whose result is cached or on its way, and sees to what is needed after
    /// that.
    fn advance(&mut self, now: Duration, id: JobId) -> Source {
        let Some(job) = self.jobs.get_mut(&id) else {
            return Source::None;
        };
        let mut source = Source::Miss;
        for at in (job.next..job.steps.len()).rev() {
            let Some(result) = &job.steps[at].result else {
                continue;
            };
            if let Some(output) = self.cache.take_up(now, result) {
                job.input = Some(output.clone());
                job.next = at + 1;
                source = Source::Hit;
                break;
            }
            if let Some(joblet) = self.pending.get(result).copied() {
                job.next = at;
                self.join(id, joblet);
                return Source::Shared;
            }
        }
        self.queue_next(id);
        source
    }

    /// Queues the joblet of a job's next step, if it has one.
    fn queue_next(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        let Some(step) = job.steps.get(job.next).cloned() else {
            return;
        };
        let joblet = JobletId(self.next_joblet);
        self.next_joblet += 1;
        let rank = job.rank(id);
        job.joblet = Some(joblet);
        job.waiting = true;
        let class = usize::from(job.class);
        self.queued[class] += 1;
        self.work[class] += job.expected_run();
        if let Some(result) = &step.result {
            self.pending.insert(result.clone(), joblet);
        }
        self.scheduler.push(step.kind.index(), rank, joblet);
        let mut new = Joblet {
            step,
            input: job.input.take(),
            waiters: Waiters::of(rank),
            running: None,
            suspended: None,
            fetch: None,
        };
        count_fetch(&mut new, &self.jobs, &mut self.work);
        self.joblets.insert(joblet, new);
    }

    /// Adds a job to those that want a joblet, which moves up if the job is more important.
    fn join(&mut self, id: JobId, joblet_id: JobletId) {
        let joblet = self.joblets.get_mut(&joblet_id);
        let (Some(job), Some(joblet)) = (self.jobs.get_mut(&id), joblet) else {
            return;
        };
        let rank = job.rank(id);
        job.joblet = Some(joblet_id);
        job.input = None;
        // One who may keep the result is enough.
        joblet.step.keep |= job.steps[job.next].keep;
        let before = joblet.waiters.first();
        if joblet.running.is_some() && before.is_none() {
            self.unwanted -= 1;
        }
        joblet.waiters.insert(rank);
        if joblet.running.is_some() {
            note_start(job, id, &mut self.events);
            return;
        }
        job.waiting = true;
        let class = usize::from(job.class);
        self.queued[class] += 1;
        self.work[class] += job.expected_run();
        count_fetch(joblet, &self.jobs, &mut self.work);
        if let Some(before) = before.filter(|before| rank < *before) {
            let actor = joblet.step.kind.index();
            self.scheduler.remove(actor, before);
            self.scheduler.push(actor, rank, joblet_id);
        }
    }

    fn end_if_complete(&mut self, id: JobId) {
        let complete = |job: &Job<W>| job.next >= job.steps.len();
        if !self.jobs.get(&id).is_some_and(complete) {
            return;
        }
        if let Some(job) = self.jobs.remove(&id) {
            if job.ran_something() {
                let cost = job.cost;
                let fetched = job.source == Source::Miss;
                let fetch = fetched.then_some(cost.fetch);
                self.costs.learn(job.key.as_ref(), fetch, cost.run);
            }
            self.events.push(Event::Ended(id, Ok(job.spent())));
        }
    }

    /// Takes a job out; returns the joblet that has begun and that nobody wants any more, if there is one.
    fn leave(&mut self, id: JobId) -> Option<Unwanted> {
        let job = self.jobs.remove(&id)?;
        if job.waiting {
            let class = usize::from(job.class);
            self.queued[class] -= 1;
            self.work[class] = self.work[class].saturating_sub(job.expected_run());
        }
        let joblet_id = job.joblet?;
        let joblet = self.joblets.get_mut(&joblet_id)?;
        let rank = job.rank(id);
        let was_first = joblet.waiters.first() == Some(rank);
        joblet.waiters.remove(rank);
        let next = joblet.waiters.first();
        if joblet.running.is_some() {
            self.unwanted += usize::from(next.is_none());
            return next.is_none().then_some(Unwanted::Runs(joblet_id));
        }
        let stands = joblet.suspended.is_some() && next.is_none();
        if was_first {
            count_fetch(joblet, &self.jobs, &mut self.work);
            let actor = joblet.step.kind.index();
            self.scheduler.remove(actor, rank);
            match next {
                Some(next) => self.scheduler.push(actor, next, joblet_id),
                None => self.drop_joblet(joblet_id),
            }
        }
        stands.then_some(Unwanted::Stands(joblet_id))
    }

    pub(crate) fn drop_joblet(&mut self, id: JobletId) {
        if let Some(joblet) = self.joblets.remove(&id) {
            self.suspensions.suspended -= usize::from(joblet.suspended.is_some());
            forget_pending(&mut self.pending, &joblet, id);
        }
    }

    /// Takes the cores back of a joblet that runs no more.
    pub(crate) fn free(&mut self, running: Running) {
        self.idle += running.cores;
        self.held -= running.cores;
        self.suspensions.asked -= usize::from(running.asked);
    }

    /// The waiting joblet of the most important and then oldest job.
    #[cfg(test)]
    pub(crate) fn best_waiting(&self) -> Option<JobletId> {
        let waiting = self.joblets.iter().filter(|(_, j)| j.running.is_none());
        let best = waiting.min_by_key(|(_, joblet)| joblet.waiters.first());
        best.map(|(id, _)| *id)
    }

    #[cfg(test)]
    pub(crate) fn idles_while_a_joblet_waits(&self) -> bool {
        self.idle > 0 && !self.scheduler.is_empty()
    }

    /// The counters against what they count.
    #[cfg(test)]
    pub(crate) fn check_books(&self) {
        let (mut queued, mut work) = ([0u32; CLASSES], [Duration::ZERO; CLASSES]);
        for (id, job) in self.jobs.iter().filter(|(_, job)| job.waiting) {
            queued[usize::from(job.class)] += 1;
            let joblet = &self.joblets[&job.joblet.unwrap()];
            let first = joblet.waiters.first().is_some_and(|rank| rank.job == *id);
            let fetches = joblet.step.kind == Kind::FeedSource && first;
            let work = &mut work[usize::from(job.class)];
            *work += job.expected_run();
            if fetches {
                *work += job.expected_fetch();
            }
        }
        assert_eq!((queued, work), (self.queued, self.work));
        let running = self.joblets.values().filter_map(|j| j.running);
        assert_eq!(running.clone().map(|r| r.cores).sum::<usize>(), self.held);
        let asked = running.filter(|running| running.asked).count();
        let suspended = self.joblets.values().filter(|j| j.suspended.is_some());
        assert!(suspended.clone().all(|joblet| joblet.running.is_none()));
        let suspended = suspended.count();
        assert_eq!(self.suspensions, Suspensions { asked, suspended });
        assert!(asked + suspended <= self.cores);
        for (result, joblet) in &self.pending {
            assert!(self.cache.get(result).is_none(), "made while cached");
            assert_eq!(self.joblets[joblet].step.result.as_ref(), Some(result));
        }
        for (id, job) in &self.jobs {
            let joblet = &self.joblets[&job.joblet.expect("an unfinished job needs a joblet")];
            assert!(joblet.waiters.iter().any(|rank| rank.job == *id));
            assert_eq!(job.waiting, joblet.running.is_none());
        }
        for (id, joblet) in self.joblets.iter().filter(|(_, j)| j.running.is_none()) {
            let first = joblet.waiters.first().expect("nobody waits for it");
            let actor = &self.scheduler.actors()[joblet.step.kind as usize];
            assert_eq!(
                actor.get(&first),
                Some(id),
                "stands at its first waiter's rank"
            );
        }
        let unwanted = self.joblets.values().filter(|j| j.waiters.is_empty());
        assert_eq!(unwanted.count(), self.unwanted);
        let waiting = self.joblets.values().filter(|j| j.running.is_none());
        let stalled: u32 = self.scheduler.stalled().iter().sum();
        assert_eq!(waiting.count(), stalled as usize);
    }
}

/// Counts what a waiting joblet's fetch is expected to cost, once, for the first of those who want it. To be
/// called whenever that may have changed.
fn count_fetch<W: Work>(
    joblet: &mut Joblet<W>,
    jobs: &FxHashMap<JobId, Job<W>>,
    work: &mut [Duration; CLASSES],
) {
    if joblet.step.kind != Kind::FeedSource {
        return;
    }
    let first = joblet.waiters.first().filter(|_| joblet.running.is_none());
    let fetch = first.and_then(|rank| Some((rank.class, jobs.get(&rank.job)?.expected_fetch())));
    if let Some((class, was)) = std::mem::replace(&mut joblet.fetch, fetch) {
        work[usize::from(class)] = work[usize::from(class)].saturating_sub(was);
    }
    if let Some((class, is)) = fetch {
        work[usize::from(class)] += is;
    }
}

/// Tells that a joblet which the job needs has a core; whether it is its last, and has one for the first time.
fn note_start<W: Work>(job: &mut Job<W>, id: JobId, events: &mut Vec<Event<W::Error>>) -> bool {
    if !job.started {
        job.started = true;
        events.push(Event::Started(id));
    }
    let begins = job.is_last(job.next) && !job.began;
    if begins {
        job.began = true;
        events.push(Event::Began(id, job.spent()));
    }
    begins
}

/// A joblet that was given up is pending no longer, and another may have taken its place.
fn forget_pending<W: Work>(
    pending: &mut FxHashMap<ResultId, JobletId>,
    joblet: &Joblet<W>,
    id: JobletId,
) {
    if let Some(result) = &joblet.step.result
        && pending.get(result) == Some(&id)
    {
        pending.remove(result);
    }
}
