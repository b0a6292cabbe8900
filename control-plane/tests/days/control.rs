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
use weir_fleet::poll::{Fault, PollError};
use weir_fleet::role::{Leader, Role};
use weir_fleet::snapshot::Snapshot;
use weir_fleet::{Event, Settings, State, Update};
use weir_tables::{Meta, v1};

use crate::host::Host;

/// The only cluster.
pub(crate) const CLUSTER: &str = "rules";
/// gRPC's ABORTED: there is a newer stream of this proxy.
pub(crate) const ABORTED: u32 = 10;
const UNAVAILABLE: u32 = 14;
/// Bytes that names of a stream may take.
const ROOM: usize = 1 << 20;
/// Levels move on a queue of some jobs' time.
const TARGET: &str = "2s";
/// So little that it counts: cache contents are assumed from reports.
const MEMORY: &str = "1MiB";

/// The configuration with so many of the hosts.
pub(crate) fn config(hosts: usize) -> Arc<Config> {
    let host = |number: usize| {
        format!(
            "{{ address: \"10.0.0.{}:9000\", capacity_millicores: 2000 }}",
            number + 1
        )
    };
    let hosts: Vec<String> = (0..hosts).map(host).collect();
    let text = format!(
        "clusters:\n  {CLUSTER}:\n    policy: {{ overload: dagor }}\n    dagor: {{ target: {TARGET} }}\n    \
         cache_shards: 2\n    hosts: [ {} ]\n    shrink_after: 0s\n    scrape: {{}}\nmemory: {{ limit: {MEMORY} }}\n",
        hosts.join(", ")
    );
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
    /// By host.
    windows: Vec<Window>,
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
        hosts: usize,
        now: Duration,
    ) -> Self {
        let (config, origin) = (config(hosts), Instant::now());
        let settings: Arc<Settings> = Arc::new(config.fleet());
        let epoch = Meta::draw_epoch(0, 1_000 * (number as u64 + 1) + life);
        let state = State::new(settings, epoch, origin + now).resuming();
        Self {
            state: match of_several {
                true => state.of_several(),
                false => state,
            },
            config,
            origin,
            snapshot: Arc::default(),
            streams: BTreeMap::new(),
            windows: (0..hosts).map(|_| Window::default()).collect(),
            paused: Duration::ZERO,
            life,
            number,
            counted: BTreeMap::new(),
        }
    }

    fn at(&self, now: Duration) -> Instant {
        self.origin + now
    }

    /// So many hosts are configured from now on.
    pub(crate) fn configure(&mut self, hosts: usize, now: Duration) {
        self.config = config(hosts);
        self.windows.resize_with(hosts, Window::default);
        let settings = Arc::new(self.config.fleet());
        let at = self.at(now);
        self.state.fold(Update::Configured(settings), at);
    }

    pub(crate) fn poll(&mut self, number: usize, host: &Host, now: Duration) {
        if number >= self.windows.len() {
            return;
        }
        let names = self.config.clusters[CLUSTER].scrape.as_ref();
        let names = names.expect("hosts are scraped");
        let (at, window) = (self.at(now), &mut self.windows[number]);
        let result = match host.hidden {
            None => Ok(scrape::scraped(
                scrape::read(&host.page(), names),
                window,
                at,
            )),
            Some(true) => Err(PollError::new(Fault::Refused, "nobody listens")),
            Some(false) => Err(PollError::new(Fault::TimedOut, "no answer")),
        };
        let update = Update::Scraped {
            cluster: CLUSTER.into(),
            host: host.address.as_str().into(),
            asked: at,
            result,
        };
        self.state.fold(update, at);
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
        let mut down = Vec::new();
        for (id, stream) in &mut self.streams {
            let Stream::Tables(Some(session)) = stream else {
                continue;
            };
            while let Some(response) = session.on_snapshot(&self.snapshot) {
                let mut bytes = Vec::new();
                response.encode(&mut bytes);
                down.push((*id, Down::Message(bytes)));
            }
        }
        down
    }

    /// What it has pushed last, and the index under which it leads.
    pub(crate) fn leads(&self) -> Option<(u64, Arc<Snapshot>)> {
        let role = &self.state.replica().role;
        role.leads().then(|| (role.index(), self.snapshot.clone()))
    }

    pub(crate) fn mirror(&mut self, (index, snapshot): (u64, Arc<Snapshot>), now: Duration) {
        let at = self.at(now);
        self.state.fold(Update::Mirrored { index, snapshot }, at);
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
        let reports = self
            .streams
            .extract_if(.., |_, stream| matches!(stream, Stream::Reports { .. }));
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
                    pause_ms: 0,
                };
                let report = v1::Report::decode(message).expect("a report");
                (Some(report), Some(Down::Message(answer.encode_to_vec())))
            }
        }
    }

    pub(crate) fn take_report(&mut self, report: v1::Report, now: Duration) {
        let at = self.at(now);
        for event in self.state.fold(Update::Reported(report.into()), at) {
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
