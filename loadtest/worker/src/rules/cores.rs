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
    Event, Executor, Full, JobId, JobletId, Load, Product, Request, Settings, Start,
};
use weir_rules::{Feed, Stop};

use super::joblet_log::JobletLog;
use super::task::{Task, TaskError, Tools};
use crate::engine::{Engine, UNWANTED};
use crate::metrics::Families;

/// A joblet that has ended, and how.
#[derive(Debug)]
struct Finished {
    joblet: JobletId,
    result: Result<Product<Arc<Feed>>, TaskError>,
}

/// What is known of a joblet while it runs.
#[derive(Debug)]
struct Begun {
    stop: Stop,
    since: Instant,
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
    report: mpsc::UnboundedSender<Finished>,
    finished: mpsc::UnboundedReceiver<Finished>,
    /// Taken from `finished` and not yet told to the executor.
    arrived: Vec<Finished>,
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
        let (report, finished) = mpsc::unbounded_channel();
        Self {
            executor: Executor::new(settings, epoch),
            tools: Arc::new(tools),
            metrics,
            log,
            running: HashMap::new(),
            unwanted: VecDeque::new(),
            unwanted_for: UNWANTED,
            report,
            finished,
            arrived: Vec::new(),
        }
    }

    fn dispatch(&mut self, now: Duration) {
        while let Some(start) = self.executor.start(now) {
            let stop = Stop::default();
            let begun = Begun {
                stop: stop.clone(),
                since: Instant::now(),
                work: start.work.clone(),
                kind: start.kind,
                cores: start.cores,
            };
            self.running.insert(start.joblet, begun);
            let (tools, report) = (Arc::clone(&self.tools), self.report.clone());
            tokio::task::spawn_blocking(move || {
                let finished = run(start, &tools, &stop);
                // The owner has gone only when the host is going, and nobody waits any more.
                let _ = report.send(finished);
            });
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
            if self.executor.give_up(joblet)
                && let Some(begun) = self.running.get(&joblet)
            {
                begun.stop.raise();
            }
        }
    }

    fn finish(&mut self, now: Duration, finished: Finished) {
        if let Some(begun) = self.running.remove(&finished.joblet) {
            let lasted = begun.since.elapsed();
            let bytes = finished.result.as_ref().ok().map(|product| product.bytes);
            self.metrics.ran(begun.kind, lasted, bytes.is_some());
            if let Some(log) = &mut self.log {
                log.write(now, begun.kind, &begun.work, lasted, begun.cores, bytes);
            }
        }
        self.executor.finish(now, finished.joblet, finished.result);
    }
}

/// `Some` at that time; `None` at once without one.
async fn until(due: Option<Instant>) -> Option<()> {
    tokio::time::sleep_until(due?).await;
    Some(())
}

/// A panic is caught, so that the core is free again and the job is answered.
fn run(start: Start<Task>, tools: &Tools, stop: &Stop) -> Finished {
    let Start {
        joblet,
        cores,
        work,
        input,
        ..
    } = start;
    let result = catch_unwind(AssertUnwindSafe(|| work.run(input, cores, tools, stop)));
    Finished {
        joblet,
        result: result.unwrap_or(Err(TaskError::Defect)),
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
        if let Some(joblet) = self.executor.cancel(job) {
            let due = Instant::now() + self.unwanted_for;
            self.unwanted.push_back((due, joblet));
        }
    }

    fn abort(&mut self, _now: Duration, job: JobId) {
        if let Some(joblet) = self.executor.abort(job)
            && let Some(begun) = self.running.get(&joblet)
        {
            begun.stop.raise();
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
        while let Ok(more) = self.finished.try_recv() {
            arrived.push(more);
        }
        for finished in arrived {
            self.finish(now, finished);
        }
        self.stop_unwanted();
        self.dispatch(now);
        self.executor.events()
    }

    async fn wake(&mut self, _now: Duration) {
        let due = self.unwanted.front().map(|(due, _)| *due);
        tokio::select! {
            Some(finished) = self.finished.recv() => self.arrived.push(finished),
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
