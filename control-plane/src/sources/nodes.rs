// SPDX-License-Identifier: Apache-2.0
//! weir.v1.Nodes: what the governors of nodes say of their hosts, and what they are told.
//!
//! ```text
//!  NodeReport ── capacity ──> state ── Row, when its table is built ──> HostRow, at once, on change, each second
//! ```

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};
use weir_fleet::Update;
use weir_fleet::node::Row;
use weir_tables::v1::nodes_server::{Nodes, NodesServer};
use weir_tables::v1::{HostRow, NodeReport};

use crate::gate::{Caller, Gate};
use crate::newest::{MAX_NAME_BYTES, Newest, checked};
use crate::news::News;

/// Two names and a number.
const MAX_REPORT_BYTES: usize = 2 * MAX_NAME_BYTES + 64;
/// 1,024 cores at their highest speed: more than machines have.
const MOST_MILLICORES: u32 = 1_024_000;
/// A governor says ten a second at most (`LOOK` in its `sense/mesh.rs`). Twice that, over as long as it waits for an
/// answer: what a network has held up comes at once.
const MOST_REPORTS: u32 = 100;
const PACE: Duration = Duration::from_secs(5);
/// A stream that says nothing is not worth a task.
const FIRST_REPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// A row comes at least this often, so that the governor can tell silence from calm.
const LONGEST_SILENCE: Duration = Duration::from_secs(1);

type Answers = mpsc::Sender<Result<HostRow, Status>>;

/// The service.
#[derive(Clone, Debug)]
pub struct Service {
    updates: mpsc::Sender<News>,
    /// By cluster and host: no more than there are hosts.
    newest: Newest<(Arc<str>, Arc<str>)>,
    streams: Gauge,
    gate: Gate,
    shutdown: CancellationToken,
}

impl Service {
    /// A server that tells `updates` until `shutdown` what `gate` allows, and counts its `streams`.
    pub fn server(
        updates: mpsc::Sender<News>,
        streams: Gauge,
        gate: Gate,
        shutdown: CancellationToken,
    ) -> NodesServer<Self> {
        NodesServer::new(Self {
            updates,
            newest: Newest::default(),
            streams,
            gate,
            shutdown,
        })
        .max_decoding_message_size(MAX_REPORT_BYTES)
    }

    async fn talk(
        self,
        caller: Caller,
        mut reports: Streaming<NodeReport>,
        answers: &Answers,
    ) -> Result<(), Status> {
        let first = tokio::select! {
            first = timeout(FIRST_REPORT_TIMEOUT, reports.message()) => first,
            () = self.shutdown.cancelled() => return Err(shutting_down()),
        };
        let late = |_| Status::deadline_exceeded("no report came");
        let Some(first) = first.map_err(late)?? else {
            return Ok(());
        };
        let host = Named::of(&first)?;
        self.gate.may_set(&caller, &host.cluster, &host.address)?;
        let millicores = capacity(&first)?;
        let rows = self.watch(&host).await?;
        let over = CancellationToken::new();
        let peer = (host.cluster.clone(), host.address.clone());
        // Each is a host that there is, so there is a place.
        let _claim = self.newest.claim(peer, over.clone(), usize::MAX);
        let _open = Open::new(&self.streams);
        self.say(&host, millicores).await?;
        tokio::select! {
            // In this order: a state that has gone is no host that has gone.
            biased;
            () = self.shutdown.cancelled() => Err(shutting_down()),
            () = over.cancelled() => Err(Status::aborted("a newer stream of this host's node has come")),
            ended = self.listen(&caller, &host, reports) => ended,
            ended = tell(rows, answers) => ended,
        }
    }

    async fn watch(&self, host: &Named) -> Result<watch::Receiver<Row>, Status> {
        let (rows, watch) = oneshot::channel();
        let update = News::Watched {
            cluster: host.cluster.to_string(),
            host: host.address.to_string(),
            rows,
        };
        self.send(update).await?;
        let watch = watch.await.map_err(|_| shutting_down())?;
        watch.ok_or_else(|| {
            let (cluster, address) = (&host.cluster, &host.address);
            Status::not_found(format!("no host {address:?} in a cluster {cluster:?}"))
        })
    }

    async fn listen(
        &self,
        caller: &Caller,
        host: &Named,
        mut reports: Streaming<NodeReport>,
    ) -> Result<(), Status> {
        let mut pace = Pace::default();
        while let Some(report) = reports.message().await? {
            pace.check(Instant::now())?;
            if report.cluster != *host.cluster || report.host != *host.address {
                return Err(Status::invalid_argument(
                    "report.cluster, report.host: changed within the stream",
                ));
            }
            // The rules may have changed.
            self.gate.may_set(caller, &host.cluster, &host.address)?;
            self.say(host, capacity(&report)?).await?;
        }
        Ok(())
    }

    async fn say(&self, host: &Named, millicores: u32) -> Result<(), Status> {
        let update = Update::Capacity {
            cluster: host.cluster.clone(),
            host: host.address.clone(),
            millicores,
        };
        self.send(update.into()).await
    }

    async fn send(&self, update: News) -> Result<(), Status> {
        let sent = self.updates.send(update).await;
        sent.map_err(|_| shutting_down())
    }
}

/// Sends the row at once, on change and each second, until there is no such host any more.
async fn tell(mut rows: watch::Receiver<Row>, answers: &Answers) -> Result<(), Status> {
    let mut silence = tokio::time::interval(LONGEST_SILENCE);
    silence.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // The first tick comes at once.
            _ = silence.tick() => {}
            changed = rows.changed() => {
                changed.map_err(|_| Status::not_found("the host is no longer configured"))?;
                silence.reset();
            }
        }
        let row = message(&rows.borrow_and_update(), Instant::now().into_std());
        if answers.send(Ok(row)).await.is_err() {
            return Ok(());
        }
    }
}

fn message(row: &Row, now: std::time::Instant) -> HostRow {
    let age = |at| now.saturating_duration_since(at).as_millis();
    HostRow {
        admission_level: row.level.ranks().into(),
        queuing_delay_us: row
            .delay
            .map(|delay| u64::try_from(delay.as_micros()).unwrap_or(u64::MAX)),
        age_ms: row
            .observed
            .map(|at| u32::try_from(age(at)).unwrap_or(u32::MAX)),
    }
}

/// How many reports a stream has brought since then.
#[derive(Debug, Default)]
struct Pace {
    since: Option<Instant>,
    count: u32,
}

impl Pace {
    /// One more has come.
    fn check(&mut self, now: Instant) -> Result<(), Status> {
        if self.since.is_none_or(|since| now - since >= PACE) {
            (self.since, self.count) = (Some(now), 0);
        }
        self.count += 1;
        match self.count {
            ..=MOST_REPORTS => Ok(()),
            _ => Err(Status::resource_exhausted(format!(
                "over {MOST_REPORTS} reports in {PACE:?}"
            ))),
        }
    }
}

/// Which host a stream is about.
#[derive(Clone, Debug)]
pub struct Named {
    /// Name of its cluster.
    pub cluster: Arc<str>,
    /// Its own.
    pub address: Arc<str>,
}

impl Named {
    /// Whom a report names.
    pub fn of(report: &NodeReport) -> Result<Self, Status> {
        Ok(Self {
            cluster: checked("report.cluster", &report.cluster)?.into(),
            address: checked("report.host", &report.host)?.into(),
        })
    }
}

/// What a report says that the service has on its node.
pub fn capacity(report: &NodeReport) -> Result<u32, Status> {
    match report.capacity_millicores {
        millicores @ 1..=MOST_MILLICORES => Ok(millicores),
        other => Err(Status::invalid_argument(format!(
            "report.capacity_millicores: {other} is not in 1..={MOST_MILLICORES}"
        ))),
    }
}

fn shutting_down() -> Status {
    Status::unavailable("shutting down")
}

/// A stream that is counted until it goes out of scope.
struct Open(Gauge);

impl Open {
    fn new(streams: &Gauge) -> Self {
        streams.inc();
        Self(streams.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[tonic::async_trait]
impl Nodes for Service {
    type StreamStream = ReceiverStream<Result<HostRow, Status>>;

    async fn stream(
        &self,
        request: Request<Streaming<NodeReport>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let caller = self
            .gate
            .caller(request.extensions(), request.metadata().as_ref())?;
        let (answers, stream) = mpsc::channel(1);
        let service = self.clone();
        tokio::spawn(async move {
            // A caller that has gone is not read from any longer.
            let ended = tokio::select! {
                ended = service.talk(caller, request.into_inner(), &answers) => ended,
                () = answers.closed() => return,
            };
            if let Err(status) = ended {
                // Nobody listens where the caller has gone.
                let _ = answers.send(Err(status)).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}
