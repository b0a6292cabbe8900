// SPDX-License-Identifier: Apache-2.0
//! An EMULATED sidecar: the streams of a filter without an Envoy around them. The subscriptions,
//! the checks of responses, the answers to them and the pauses after failures are the filter's own code.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use weir_filter::index::{Entry, Index, Kind};
use weir_filter::stream::{self, Backoff, Subscriptions};
use weir_tables::Pace;
use weir_tables::discovery::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};
use weir_tables::v1;
use weir_tables::v1::HostTable;
use weir_tables::v1::reports_client::ReportsClient;

use crate::fleet::connection::{connect, open};
use crate::fleet::crowd::Shared;
use crate::fleet::record::Reporter;

pub(crate) const CLUSTER: &str = "rules";
const PROCESS: &str = "x-weir-process";
/// Between two reports with news, where weir-control asks for no longer pause: the filter's default.
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// And without news: as the filter.
const QUIET: Duration = Duration::from_secs(1);
/// Of the filter's tick.
const TICK: Duration = Duration::from_millis(20);

/// One in so many looks into every table it gets; the others into the first of each connection. To look into all would
/// keep the machine busier than what is measured.
const LOOKING: usize = 20;

pub(crate) struct Sidecar {
    pub(crate) number: usize,
    pub(crate) server: SocketAddr,
    pub(crate) shared: Arc<Shared>,
    pub(crate) hosts: Arc<Vec<String>>,
    pub(crate) requests: usize,
}

/// Ends a task with the stream that it belongs to.
struct Ending(AbortHandle);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Sidecar {
    /// Runs until it is dropped.
    pub(crate) async fn run(self) {
        let started = Instant::now();
        let (mut index, mut backoff) = (Index::default(), Backoff::default());
        loop {
            let mut works = false;
            let ended = self.converse(&mut index, &mut works, started).await;
            if works {
                backoff.succeeded();
            }
            self.shared.lost(ended.err());
            backoff.failed(started.elapsed(), Duration::ZERO, rand::random());
            while !backoff.is_over(started.elapsed()) {
                tokio::time::sleep(TICK).await;
            }
        }
    }

    fn name(&self) -> String {
        format!("emulated-{}", self.number)
    }

    async fn converse(&self, index: &mut Index, works: &mut bool, started: Instant) -> Result<()> {
        let era = self.shared.era();
        let channel = connect(self.server, era.cut.clone()).await?;
        let process = MetadataValue::try_from(format!("{:x}", self.number))?;
        // The filter sends its subscriptions of both kinds at once.
        let (requests, outbound) = mpsc::channel(8);
        let mut subscriptions = Subscriptions::default();
        self.subscribe(&mut subscriptions, index, &requests).await?;
        let mut request = Request::new(ReceiverStream::new(outbound));
        request.metadata_mut().insert(PROCESS, process.clone());
        let mut responses = open(channel.clone(), request).await?;
        let mut reports = None;
        let mut has_whole = false;
        while let Some(response) = responses.message().await? {
            *works = true;
            let kind = Kind::of(&response.type_url).context("an unknown type")?;
            let looks = self.number.is_multiple_of(LOOKING) || (kind == Kind::Table && !has_whole);
            let now = started.elapsed();
            let answer = match looks {
                true => {
                    let (answer, whole) = self.check(&response, kind, index, now)?;
                    if whole && !has_whole {
                        has_whole = true;
                        self.shared.fresh(self.number, era.number);
                    }
                    answer
                }
                false => take_unread(&response, kind, index, now)?,
            };
            for name in &response.removed_resources {
                index.remove(kind, name);
            }
            let version = index.get(Kind::Table, CLUSTER).map(|entry| entry.meta());
            self.shared.received(self.number, kind, &response, version);
            requests.send(answer).await?;
            self.subscribe(&mut subscriptions, index, &requests).await?;
            if reports.is_none() {
                let report = self.report(channel.clone(), process.clone(), started);
                reports = Some(Ending(tokio::spawn(report).abort_handle()));
            }
        }
        bail!("the server has ended the stream")
    }

    /// Takes a response as the filter does. Returns the answer to it, and whether a whole table was in it.
    fn check(
        &self,
        response: &DeltaDiscoveryResponse,
        kind: Kind,
        index: &mut Index,
        now: Duration,
    ) -> Result<(DeltaDiscoveryRequest, bool)> {
        let update = stream::check(response, kind, index, usize::MAX, false, now);
        let answer = stream::answer(response, &update);
        let mut whole = false;
        self.shared.refused(update.refusals.len());
        for new in update.accepted {
            whole |= kind == Kind::Table && self.is_whole(new.body)?;
            index.insert(kind, new.name, new.meta, new.says, now);
        }
        Ok((answer, whole))
    }

    /// Whether the load of every host is known in it: after a start of weir-control it takes a round of polls.
    fn is_whole(&self, body: &[u8]) -> Result<bool> {
        let table: HostTable = prost::Message::decode(body)?;
        let known = table.hosts.iter().filter(|host| host.load.is_some());
        Ok(known.count() >= self.hosts.len())
    }

    async fn subscribe(
        &self,
        subscriptions: &mut Subscriptions,
        index: &Index,
        requests: &mpsc::Sender<DeltaDiscoveryRequest>,
    ) -> Result<()> {
        let tables = BTreeSet::from([CLUSTER.to_owned()]);
        let shards = index.shards_of(&tables);
        for (kind, names) in [(Kind::Table, tables), (Kind::Shard, shards)] {
            if let Some(request) = subscriptions.request(kind, names, &self.name(), index) {
                requests.send(request).await?;
            }
        }
        Ok(())
    }

    fn report(
        &self,
        channel: Channel,
        process: MetadataValue<Ascii>,
        started: Instant,
    ) -> impl Future<Output = ()> + Send + use<> {
        let mut reporter = Reporter::new(self.name(), &self.hosts, self.requests);
        let shared = Arc::clone(&self.shared);
        async move {
            let (reports, outbound) = mpsc::channel::<v1::Report>(1);
            let mut request = Request::new(ReceiverStream::new(outbound));
            request.metadata_mut().insert(PROCESS, process);
            let mut client = ReportsClient::new(channel);
            let Ok(answers) = client.stream(request).await else {
                return;
            };
            let mut answers = answers.into_inner();
            let (mut sent, mut sent_at, mut pace) = (0, None, Pace::default());
            // One at a time: each waits for the answer to the one before.
            while let Ok(Some(answer)) = answers.message().await {
                if answer.taken < sent {
                    continue;
                }
                let asked = Duration::from_millis(answer.pause_ms.into());
                let pause = asked.min(QUIET);
                let now = loop {
                    tokio::time::sleep(REPORT_EVERY).await;
                    let now = started.elapsed();
                    if reporter.advance(now) && pace.allows(pause, now) {
                        pace.told(pause, now);
                        break now;
                    }
                    if sent_at.is_none_or(|at| now.saturating_sub(at) >= QUIET) {
                        break now;
                    }
                };
                if reports.send(reporter.report(now)).await.is_err() {
                    return;
                }
                (sent, sent_at) = (sent + 1, Some(now));
                shared.reported();
            }
        }
    }
}

/// Accepts everything in a response without a look into it.
fn take_unread(
    response: &DeltaDiscoveryResponse,
    kind: Kind,
    index: &mut Index,
    now: Duration,
) -> Result<DeltaDiscoveryRequest> {
    for resource in &response.resources {
        let known = index.get(kind, &resource.name);
        let table = known.map(Entry::says).unwrap_or_default();
        let meta = resource.version.parse()?;
        index.insert(kind, &resource.name, meta, table, now);
    }
    Ok(stream::answer(response, &Default::default()))
}
