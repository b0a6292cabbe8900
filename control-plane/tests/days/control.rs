// SPDX-License-Identifier: Apache-2.0
//! A weir-control: its own state and the protocol of its streams, without sockets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use prost::Message;
use weir_control::config::{self, Config};
use weir_control::sources::scrape::{self, Window};
use weir_control::xds::session::Session;
use weir_fleet::pace;
use weir_fleet::poll::PollError;
use weir_fleet::role::{Leader, Role};
use weir_fleet::snapshot::Snapshot;
use weir_fleet::{Event, Settings, State, Update};
use weir_tables::{Meta, v1};

/// The only cluster.
pub(crate) const CLUSTER: &str = "rules";
/// gRPC's ABORTED: there is a newer stream of this proxy.
pub(crate) const ABORTED: u32 = 10;
const UNAVAILABLE: u32 = 14;
/// Bytes that names of a stream may take.
const ROOM: usize = 1 << 20;

/// A configuration file.
pub(crate) fn config(text: &str) -> Arc<Config> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("weir-control.yaml");
    std::fs::write(&path, text).expect("a file");
    let loaded = config::load(&path).map_err(|(error, _)| error);
    loaded.expect("a configuration").config
}

/// Of a stream: the sidecar's number and the stream's own.
pub(crate) type StreamId = (usize, u32);

enum Stream {
    /// Before the first request there is no session.
    Tables(Option<Session>),
    Reports {
        taken: u64,
    },
}

impl Stream {
    fn reports(&self) -> bool {
        matches!(self, Self::Reports { .. })
    }
}

/// What a stream brings a sidecar.
pub(crate) enum Down {
    Message(Vec<u8>),
    Close(u32),
}

pub(crate) struct Control {
    pub(crate) state: State,
    config: Arc<Config>,
    origin: Instant,
    snapshot: Arc<Snapshot>,
    streams: BTreeMap<StreamId, Stream>,
    /// By address.
    windows: BTreeMap<String, Window>,
    /// It stands still until then.
    pub(crate) paused: Duration,
    pub(crate) life: u64,
    number: usize,
    /// By proxy: the requests that its reports have added since this process began.
    pub(crate) counted: BTreeMap<String, u64>,
}

impl Control {
    pub(crate) fn new(
        number: usize,
        life: u64,
        of_several: bool,
        config: Arc<Config>,
        now: Duration,
    ) -> Self {
        let origin = Instant::now();
        let settings: Arc<Settings> = Arc::new(config.fleet());
        let epoch = Meta::draw_epoch(0, 1_000 * (number as u64 + 1) + life);
        let state = State::new(settings, epoch, origin + now).resuming();
        Self {
            state: match of_several {
                true => state.of_several(Duration::from_secs(30)),
                false => state,
            },
            config,
            origin,
            snapshot: Arc::default(),
            streams: BTreeMap::new(),
            windows: BTreeMap::new(),
            paused: Duration::ZERO,
            life,
            number,
            counted: BTreeMap::new(),
        }
    }

    fn at(&self, now: Duration) -> Instant {
        self.origin + now
    }

    /// Other hosts are configured from now on.
    pub(crate) fn configure(&mut self, config: Arc<Config>, now: Duration) {
        self.config = config;
        let settings = Arc::new(self.config.fleet());
        self.fold(Update::Configured(settings), now);
    }

    /// Takes what a host's metrics page says, or why there is none.
    pub(crate) fn poll(&mut self, host: &str, page: Result<String, PollError>, now: Duration) {
        let cluster = &self.config.clusters[CLUSTER];
        if !cluster.hosts.iter().any(|known| known.address == host) {
            return;
        }
        let names = cluster.scrape.as_ref().expect("hosts are scraped");
        let at = self.origin + now;
        let window = self.windows.entry(host.to_owned()).or_default();
        let result = page.map(|page| scrape::scraped(scrape::read(&page, names), window, at));
        let update = Update::Scraped {
            cluster: CLUSTER.into(),
            host: host.into(),
            asked: at,
            result,
        };
        self.fold(update, now);
    }

    pub(crate) fn fold(&mut self, update: Update, now: Duration) -> Vec<Event> {
        let at = self.at(now);
        self.state.fold(update, at)
    }

    /// Takes the role that the lock gives it; the leader's number and index.
    pub(crate) fn take_role(&mut self, (leader, index): (usize, u64), random: u64, now: Duration) {
        let role = match leader == self.number {
            true => Role::Leading { index },
            false => Role::Following(Arc::new(Leader {
                name: leader.to_string(),
                address: format!("10.0.1.{leader}:1"),
                index,
                session: index.to_string().into(),
            })),
        };
        let at = self.at(now);
        self.state.take_role(role, random, at);
    }

    /// Lets time pass, and builds what is due.
    pub(crate) fn step(&mut self, now: Duration, unix_ms: u64) {
        let at = self.at(now);
        self.state.advance(at);
        if let (Some(snapshot), _) = self.state.publish(at, unix_ms) {
            self.snapshot = snapshot;
        }
    }

    /// What its streams bring now.
    pub(crate) fn push(&mut self) -> Vec<(StreamId, Down)> {
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        ids.into_iter().flat_map(|id| self.push_to(id)).collect()
    }

    /// What one of them brings.
    pub(crate) fn push_to(&mut self, id: StreamId) -> Vec<(StreamId, Down)> {
        let Some(Stream::Tables(Some(session))) = self.streams.get_mut(&id) else {
            return Vec::new();
        };
        let responses = std::iter::from_fn(|| session.on_snapshot(&self.snapshot));
        let down = responses.map(|response| {
            let mut bytes = Vec::new();
            response.encode(&mut bytes);
            (id, Down::Message(bytes))
        });
        down.collect()
    }

    /// What it has pushed last, and the index under which it leads.
    pub(crate) fn leads(&self) -> Option<(u64, Arc<Snapshot>)> {
        let role = &self.state.replica().role;
        role.leads().then(|| (role.index(), self.snapshot.clone()))
    }

    pub(crate) fn mirror(&mut self, (index, snapshot): (u64, Arc<Snapshot>), now: Duration) {
        self.fold(Update::Mirrored { index, snapshot }, now);
    }

    /// A sidecar opens a stream; an older one of its kind is ended.
    pub(crate) fn open(&mut self, id: StreamId, method: &str) -> Vec<(StreamId, Down)> {
        let stream = match method {
            "DeltaAggregatedResources" => Stream::Tables(None),
            _ => Stream::Reports { taken: 0 },
        };
        let same =
            |other: &Stream| std::mem::discriminant(other) == std::mem::discriminant(&stream);
        let older = self
            .streams
            .iter()
            .filter(|(other, kept)| other.0 == id.0 && same(kept));
        let older: Vec<StreamId> = older.map(|(other, _)| *other).collect();
        self.streams.retain(|other, _| !older.contains(other));
        self.streams.insert(id, stream);
        older
            .into_iter()
            .map(|id| (id, Down::Close(ABORTED)))
            .collect()
    }

    pub(crate) fn close(&mut self, id: StreamId) {
        self.streams.remove(&id);
    }

    /// Streams of reports end when the leader is another one: callers come back and begin anew.
    pub(crate) fn end_reports(&mut self) -> Vec<(StreamId, Down)> {
        let reports = self.streams.extract_if(.., |_, stream| stream.reports());
        reports
            .map(|(id, _)| (id, Down::Close(UNAVAILABLE)))
            .collect()
    }

    /// Who counts the reports that come to it: this one, or the one that it follows.
    pub(crate) fn counts_at(&self) -> Option<usize> {
        match &self.state.replica().role {
            Role::Waiting => None,
            Role::Leading { .. } => Some(self.number),
            Role::Following(leader) => leader.name.parse().ok(),
        }
    }

    /// All streams end with the process.
    pub(crate) fn close_all(&mut self) -> Vec<(StreamId, Down)> {
        let streams = std::mem::take(&mut self.streams).into_keys();
        streams.map(|id| (id, Down::Close(UNAVAILABLE))).collect()
    }

    pub(crate) fn has(&self, id: StreamId) -> bool {
        self.streams.contains_key(&id)
    }

    /// Takes what a sidecar sends through a stream of tables; a report comes back, for whoever leads.
    pub(crate) fn hear(
        &mut self,
        id: StreamId,
        message: &[u8],
    ) -> (Option<v1::Report>, Option<Down>) {
        let reporting = self.streams.values().filter(|stream| stream.reports());
        let pause_ms = pace::pause(reporting.count()).as_millis() as u32;
        match self.streams.get_mut(&id) {
            None => (None, None),
            Some(Stream::Tables(session)) => {
                let request = DeltaDiscoveryRequest::decode(message).expect("a request");
                let session = session.get_or_insert_with(|| {
                    Session::open(&request).expect("the first request says whose it is")
                });
                session.on_request(&request, ROOM).expect("it is in order");
                (None, None)
            }
            Some(Stream::Reports { taken }) => {
                *taken += 1;
                let answer = v1::ReportAnswer {
                    taken: *taken,
                    pause_ms,
                };
                let report = v1::Report::decode(message).expect("a report");
                (Some(report), Some(Down::Message(answer.encode_to_vec())))
            }
        }
    }

    pub(crate) fn take_report(&mut self, report: v1::Report, now: Duration) {
        for event in self.fold(Update::Reported(report.into()), now) {
            if let Event::Reported { proxy, folded } = event {
                let offered = folded.news.values().flat_map(|news| news.offered.values());
                *self.counted.entry(proxy).or_default() += offered.sum::<u64>();
            }
        }
    }

    pub(crate) fn clock(&self, now: Duration) -> Duration {
        self.state.clock(self.at(now))
    }
}
