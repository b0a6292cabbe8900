// SPDX-License-Identifier: Apache-2.0
//! The load generator: cheap, because it shares the machine with what it measures.
//!
//! ```text
//!  Work (requests, what an answer must be) ─┐
//!  Pool (connections) ── closed or open ────┴─> Answers (count, latencies)
//! ```
//! One thread. An answer that is not what it must be ends the run: a figure of wrong answers is none.

mod exchange;
mod open;
mod work;

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::timeout;

use crate::bench::load::exchange::{Connection, Origin};
use crate::bench::load::open::Schedule;
pub(crate) use crate::bench::load::work::{AnsweredBy, Shot, Work};

/// Answers that have not come so long after the load's end are not waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// How requests follow each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// On each connection as soon as the answer is there.
    Closed,
    /// So many a second, whatever the answers do; latencies count from when each was due.
    Open(f64),
}

/// How requests come to a sidecar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// So many connections.
    Http1(usize),
    /// So many streams of one connection.
    Http2(usize),
}

/// What came back.
pub(crate) struct Answers {
    pub(crate) count: u64,
    /// Of these, from another host than was preferred.
    pub(crate) elsewhere: u64,
    /// From the first request to the last answer.
    pub(crate) elapsed: Duration,
    /// In nanoseconds.
    latencies: Histogram<u64>,
}

impl Answers {
    /// The latency below which this share of the requests was, in microseconds.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        self.latencies.value_at_quantile(share) as f64 / 1e3
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.count as f64 / self.elapsed.as_secs_f64()
    }
}

/// Connections to one sidecar, and what is sent over them.
pub(crate) struct Pool {
    runtime: Runtime,
    tasks: LocalSet,
    connections: Vec<Connection>,
    work: Rc<Work>,
}

impl Pool {
    pub(crate) fn connect(target: SocketAddr, protocol: Protocol, work: Rc<Work>) -> Result<Self> {
        let runtime = one_thread()?;
        let tasks = LocalSet::new();
        let open = async {
            match protocol {
                Protocol::Http1(connections) => {
                    let mut open = Vec::new();
                    for _ in 0..connections {
                        open.push(Connection::open(target).await?);
                    }
                    Ok(open)
                }
                Protocol::Http2(streams) => Connection::streams(target, streams).await,
            }
        };
        let connections = tasks
            .block_on(&runtime, open)
            .with_context(|| format!("connecting to {target}"))?;
        Ok(Self {
            runtime,
            tasks,
            connections,
            work,
        })
    }

    /// Sends for so long, and waits for the last answer.
    pub(crate) fn send(&mut self, pace: Pace, time: Duration) -> Result<Answers> {
        let connections = std::mem::take(&mut self.connections);
        ensure!(
            !connections.is_empty(),
            "an earlier load broke the connections"
        );
        let run = async {
            timeout(time + PATIENCE, run(connections, &self.work, pace, time))
                .await
                .context("answers did not come")?
        };
        let (connections, answers) = self.tasks.block_on(&self.runtime, run)?;
        self.connections = connections;
        Ok(answers)
    }
}

async fn run(
    connections: Vec<Connection>,
    work: &Rc<Work>,
    pace: Pace,
    time: Duration,
) -> Result<(Vec<Connection>, Answers)> {
    let (count, elsewhere) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    // Three digits; it grows with what it is told.
    let latencies = Rc::new(RefCell::new(Histogram::<u64>::new(3)?));
    let start = Instant::now();
    let schedule = match pace {
        Pace::Closed => None,
        Pace::Open(rate) => Some(Rc::new(Schedule::new(rate, time))),
    };
    let mut senders = JoinSet::new();
    for mut connection in connections {
        let (work, schedule) = (Rc::clone(work), schedule.clone());
        let (count, elsewhere) = (Rc::clone(&count), Rc::clone(&elsewhere));
        let latencies = Rc::clone(&latencies);
        senders.spawn_local(async move {
            // One at least, however long this thread was off the core.
            let mut sent = false;
            loop {
                let due = match &schedule {
                    None if sent && start.elapsed() >= time => break,
                    None => Instant::now(),
                    Some(schedule) => match schedule.next().await {
                        Some(due) => due,
                        None => break,
                    },
                };
                let origin = connection.exchange(work.next()).await?;
                sent = true;
                let taken = due.elapsed().as_nanos() as u64;
                latencies.borrow_mut().record(taken)?;
                count.set(count.get() + 1);
                elsewhere.set(elsewhere.get() + u64::from(origin == Origin::Elsewhere));
            }
            Ok::<_, anyhow::Error>(connection)
        });
    }
    if let Some(schedule) = &schedule {
        schedule.keep().await?;
    }
    let mut connections = Vec::new();
    while let Some(ended) = senders.join_next().await {
        connections.push(ended??);
    }
    let answers = Answers {
        count: count.get(),
        elsewhere: elsewhere.get(),
        elapsed: start.elapsed(),
        latencies: latencies.borrow().clone(),
    };
    ensure!(answers.count > 0, "not one request was answered");
    Ok((connections, answers))
}

/// What programs of one thread run on.
pub(crate) fn one_thread() -> Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    Ok(builder.enable_all().build()?)
}

#[cfg(test)]
mod tests;
