// SPDX-License-Identifier: Apache-2.0
//! Real work on real threads: a joblet runs on one blocking thread, and on as many more for the
//! time of its work as it was given cores.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use weir_executor::{
    Event, Executor, Full, JobId, JobletId, Load, Product, Request, Settings, Start, Unwanted,
};
use weir_rules::{Feed, Stop};

use super::joblet_log::JobletLog;
use super::task::{Task, TaskError, Tools};
use crate::engine::{Engine, UNWANTED};
use crate::metrics::Families;

/// What the threads of a joblet tell.
#[derive(Debug)]
struct News {
    joblet: JobletId,
    what: What,
}

#[derive(Debug)]
enum What {
    /// It was made to, and will go on.
    Stands,
    Ended(Result<Product<Arc<Feed>>, TaskError>),
}

/// What is known of a joblet while it runs.
#[derive(Debug)]
struct Begun {
    stop: Stop,
    since: Instant,
    /// Time on cores before it was suspended.
    before: Duration,
    work: Task,
    kind: weir_executor::Kind,
    cores: usize,
}

/// Runs an executor on the cores of this machine.
#[derive(Debug)]
pub struct Cores {
    executor: Executor<Task>,
    tools: Arc<Tools>,
    metrics: Families,
    log: Option<JobletLog>,
    running: HashMap<JobletId, Begun>,
    /// Joblets that nobody wanted when they were put here, and when to stop them if nobody does then.
    unwanted: VecDeque<(Instant, JobletId)>,
    unwanted_for: Duration,
    report: mpsc::UnboundedSender<News>,
    news: mpsc::UnboundedReceiver<News>,
    /// Taken from `news` and not yet told to the executor.
    arrived: Vec<News>,
}

impl Cores {
    /// An idle host. Runs within a tokio runtime whose blocking threads are no fewer than the
    /// joblets that may run at once.
    #[must_use]
    pub fn new(
        settings: &Settings,
        epoch: u64,
        tools: Tools,
        metrics: Families,
        log: Option<JobletLog>,
    ) -> Self {
        let (report, news) = mpsc::unbounded_channel();
        Self {
            executor: Executor::new(settings, epoch),
            tools: Arc::new(tools),
            metrics,
            log,
            running: HashMap::new(),
            unwanted: VecDeque::new(),
            unwanted_for: UNWANTED,
            report,
            news,
            arrived: Vec::new(),
        }
    }

    fn dispatch(&mut self, now: Duration) {
        loop {
            while let Some(start) = self.executor.start(now) {
                match start.resumed {
                    true => self.resume(&start),
                    false => self.begin(start),
                }
            }
            let Some(joblet) = self.executor.suspend() else {
                break;
            };
            self.hold(joblet);
        }
    }

    fn begin(&mut self, start: Start<Task>) {
        let stop = Stop::default();
        let begun = Begun {
            stop: stop.clone(),
            since: Instant::now(),
            before: Duration::ZERO,
            work: start.work.clone(),
            kind: start.kind,
            cores: start.cores,
        };
        self.running.insert(start.joblet, begun);
        let (tools, report) = (Arc::clone(&self.tools), self.report.clone());
        tokio::task::spawn_blocking(move || {
            let news = run(start, &tools, &stop);
            // The owner has gone only when the host is going, and nobody waits any more.
            let _ = report.send(news);
        });
    }

    fn resume(&mut self, start: &Start<Task>) {
        if let Some(begun) = self.running.get_mut(&start.joblet) {
            begun.since = Instant::now();
            begun.cores = start.cores;
            begun.stop.go_on(start.cores);
        }
    }

    fn hold(&self, joblet: JobletId) {
        if let Some(begun) = self.running.get(&joblet) {
            let report = self.report.clone();
            begun.stop.hold(move || {
                let what = What::Stands;
                let _ = report.send(News { joblet, what });
            });
        }
    }

    fn stands(&mut self, now: Duration, joblet: JobletId) {
        if let Some(begun) = self.running.get_mut(&joblet) {
            begun.before += begun.since.elapsed();
            begun.since = Instant::now();
            self.metrics.suspended(begun.kind);
            if !self.executor.suspended(now, joblet) {
                begun.stop.raise();
            }
        }
    }

    /// Another limit than [`UNWANTED`].
    #[must_use]
    pub fn unwanted_for(self, limit: Duration) -> Self {
        Self {
            unwanted_for: limit,
            ..self
        }
    }

    fn stop_unwanted(&mut self) {
        let now = Instant::now();
        while let Some((_, joblet)) = self.unwanted.pop_front_if(|(due, _)| *due <= now) {
            if self.executor.give_up(joblet) {
                self.stop_work(joblet);
            }
        }
    }

    fn stop_work(&self, joblet: JobletId) {
        if let Some(begun) = self.running.get(&joblet) {
            begun.stop.raise();
        }
    }

    fn finish(
        &mut self,
        now: Duration,
        joblet: JobletId,
        result: Result<Product<Arc<Feed>>, TaskError>,
    ) {
        if let Some(begun) = self.running.remove(&joblet) {
            let lasted = begun.before + begun.since.elapsed();
            let bytes = result.as_ref().ok().map(|product| product.bytes);
            self.metrics.ran(begun.kind, lasted, bytes.is_some());
            if let Some(log) = &mut self.log {
                log.write(now, begun.kind, &begun.work, lasted, begun.cores, bytes);
            }
        }
        self.executor.finish(now, joblet, result);
    }
}

/// `Some` at that time; `None` at once without one.
async fn until(due: Option<Instant>) -> Option<()> {
    tokio::time::sleep_until(due?).await;
    Some(())
}

/// A panic is caught, so that the core is free again and the job is answered.
fn run(start: Start<Task>, tools: &Tools, stop: &Stop) -> News {
    let Start {
        joblet,
        cores,
        work,
        input,
        ..
    } = start;
    let result = catch_unwind(AssertUnwindSafe(|| work.run(input, cores, tools, stop)));
    News {
        joblet,
        what: What::Ended(result.unwrap_or(Err(TaskError::Defect))),
    }
}

impl Engine for Cores {
    type Work = Task;

    fn submit(&mut self, now: Duration, request: Request<Task>) -> Result<JobId, Full> {
        let id = self.executor.submit(now, request)?;
        self.dispatch(now);
        Ok(id)
    }

    fn cancel(&mut self, _now: Duration, job: JobId) {
        match self.executor.cancel(job) {
            Some(Unwanted::Runs(joblet)) => {
                let due = Instant::now() + self.unwanted_for;
                self.unwanted.push_back((due, joblet));
            }
            Some(Unwanted::Stands(joblet)) => self.stop_work(joblet),
            None => {}
        }
    }

    fn abort(&mut self, _now: Duration, job: JobId) {
        if let Some(joblet) = self.executor.abort(job) {
            self.stop_work(joblet);
        }
    }

    fn stop(&mut self) {
        for begun in self.running.values() {
            begun.stop.raise();
        }
    }

    fn is_still(&self) -> bool {
        self.running.is_empty()
    }

    fn advance(&mut self, now: Duration) -> Vec<Event<TaskError>> {
        let mut arrived = std::mem::take(&mut self.arrived);
        while let Ok(more) = self.news.try_recv() {
            arrived.push(more);
        }
        for News { joblet, what } in arrived {
            match what {
                What::Stands => self.stands(now, joblet),
                What::Ended(result) => self.finish(now, joblet, result),
            }
        }
        self.stop_unwanted();
        self.dispatch(now);
        self.executor.events()
    }

    async fn wake(&mut self, _now: Duration) {
        let due = self.unwanted.front().map(|(due, _)| *due);
        tokio::select! {
            Some(news) = self.news.recv() => self.arrived.push(news),
            Some(()) = until(due) => {}
            // The engine keeps a sender of its own, so the other branch is still there.
            else => std::future::pending().await,
        }
    }

    fn load(&mut self, now: Duration) -> Load {
        self.executor.load(now)
    }

    fn executor(&self) -> &Executor<Task> {
        &self.executor
    }
}
