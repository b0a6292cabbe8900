// SPDX-License-Identifier: Apache-2.0
//! Jobs on the real engine, each submitted at its time whatever became of those before it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use weir_executor::{Kind, Request, Settings, Spent};
use weir_worker::host::{Host, News};
use weir_worker::metrics::Families;
use weir_worker::rules::cores::Cores;
use weir_worker::rules::joblet_log::JobletLog;
use weir_worker::rules::task::{self, Task};

use crate::jobs::{Job, Jobs};

/// One job of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    /// From the beginning of the run.
    pub(crate) at: Duration,
    /// Which of the jobs it is.
    pub(crate) job: usize,
    pub(crate) class: u8,
}

/// How it went.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) at: Duration,
    pub(crate) class: u8,
    /// From its time to its end; `None` if it had not ended when the run was cut off.
    pub(crate) response: Option<Duration>,
    pub(crate) spent: Option<Spent>,
}

/// A runtime like the host's.
pub(crate) fn runtime(settings: &Settings) -> Result<Runtime> {
    let threads = settings.cores + settings.max_queued;
    let mut builder = Builder::new_current_thread();
    Ok(builder.enable_all().max_blocking_threads(threads).build()?)
}

/// Which results jobs may share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// As the host does.
    Allowed,
    /// Items alone, so that every job has the same rules to apply whatever else is under way.
    Items,
    /// None, so that every job has the same work to do whatever else is under way.
    Off,
}

/// The request of a job, writing into nothing. The receiver has to live as long as the job.
pub(crate) fn request(
    job: &Job,
    class: u8,
    session: &str,
    sharing: Sharing,
) -> (Request<Task>, mpsc::UnboundedReceiver<bytes::Bytes>) {
    let (sink, written) = mpsc::unbounded_channel();
    let mut request = task::job(&job.object, &job.plan, class, session, sink);
    for step in &mut request.steps {
        let may = match sharing {
            Sharing::Allowed => true,
            Sharing::Items => step.kind == Kind::FeedSource,
            Sharing::Off => false,
        };
        step.result.take_if(|_| !may);
    }
    (request, written)
}

/// Runs the arrivals; those that have not ended `patience` after the last one are cut off.
pub(crate) async fn run(
    jobs: &Jobs,
    settings: &Settings,
    arrivals: &[Arrival],
    sharing: Sharing,
    patience: Duration,
) -> Result<Vec<Outcome>> {
    let metrics = Families::default();
    let log = JobletLog::create(&jobs.log_file())?;
    let engine = Cores::new(settings, 1, jobs.tools(), metrics.clone(), Some(log));
    let host = Arc::new(Host::start(engine, metrics));
    let origin = Instant::now();
    let last = arrivals.last().map_or(Duration::ZERO, |arrival| arrival.at);
    let cut_off = origin + last + patience;
    let mut running = JoinSet::new();
    for (n, arrival) in arrivals.iter().enumerate() {
        sleep_until(origin + arrival.at).await;
        let job = &jobs.all[arrival.job];
        let (request, mut written) = request(job, arrival.class, &n.to_string(), sharing);
        let (host, arrival) = (Arc::clone(&host), *arrival);
        running.spawn(async move {
            let mut job = host.submit(request)?;
            let ended = timeout_at(cut_off, async {
                loop {
                    tokio::select! {
                        news = job.next() => match news? {
                            News::Ended(Ok(spent), _) => return Ok(spent),
                            News::Ended(Err(error), _) => bail!("a job failed: {error}"),
                            News::Refused(full, _) => bail!("a job was refused: {full}"),
                            News::Stopped(_) => bail!("the host stopped"),
                            News::Started | News::Began(..) => {}
                        },
                        Some(_) = written.recv() => {}
                    }
                }
            });
            let (response, spent) = match ended.await {
                Ok(spent) => (Some(origin.elapsed() - arrival.at), Some(spent?)),
                Err(_) => (None, None),
            };
            Ok::<_, anyhow::Error>(Outcome {
                at: arrival.at,
                class: arrival.class,
                response,
                spent,
            })
        });
    }
    let mut outcomes = Vec::with_capacity(arrivals.len());
    while let Some(outcome) = running.join_next().await {
        outcomes.push(outcome??);
    }
    outcomes.sort_by_key(|outcome| outcome.at);
    host.stop().await?;
    Ok(outcomes)
}
