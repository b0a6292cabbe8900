// SPDX-License-Identifier: Apache-2.0
//! The task behind one stream: the only owner of its [`Session`].

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};
use tracing::{debug, info, warn};
use weir_fleet::authorization::Sight;
use weir_fleet::clients::{ClientEvent, StreamId};
use weir_tables::HOST_TABLE_TYPE;

use super::codec::Response;
use super::metrics::{OfType, XdsMetrics};
use super::room::{Full, Place, Room};
use super::session::{Refusal, Session};
use super::subscription::{MAX_NAME_BYTES, Verdict, WILDCARD};
use super::views::{Views, denies};
use crate::feed::Feed;
use crate::gate::{Caller, Gate, Owned};
use crate::newest::{Claim, Newest};
use crate::seldom::Seldom;

/// A stream that says nothing is not worth a task.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

const NO_REQUEST: &str = "no request came";

const CUT_OFF: &str = "this weir-control is cut off from its leader";

/// How long the last word to a client that does not read is kept.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(5);

/// Responses of one stream that wait to be written. One: the next is built from the newest
/// snapshot when this one is on its way.
pub(super) const RESPONSES_WAITING: usize = 1;

pub(super) type Outbound = mpsc::Sender<Result<Response, Status>>;

/// What every stream of a server shares.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) feed: Feed,
    pub(super) metrics: XdsMetrics,
    /// By proxy and process.
    pub(super) proxies: Newest<(Arc<str>, String)>,
    pub(super) gate: Gate,
    pub(super) views: Views,
    pub(super) room: Room,
    /// When somebody was last said to have reached a limit.
    pub(super) said: Arc<Mutex<Seldom>>,
    /// When somebody was last said to ask for a table that is not there.
    pub(super) unknown: Arc<Mutex<Seldom>>,
    pub(super) shutdown: CancellationToken,
}

impl Shared {
    /// A stream has reached a limit.
    pub(super) fn refuses(&self, full: Full, proxy: &str, peer: Option<SocketAddr>) {
        self.metrics.count_refused(full);
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(unsaid) = said.is_due() {
            warn!(
                proxy,
                ?peer,
                unsaid,
                "a discovery stream is refused: {full}"
            );
        }
    }
}

/// Tables that are named in a line of the log, at most.
const NAMED: usize = 5;

/// Why a stream ends.
enum End {
    ClientClosed,
    Transport(Status),
    Superseded,
    Shutdown,
    Late,
    /// This replica is cut off from its leader.
    Withheld,
    /// What the caller's identity may not do.
    Denied(Status),
    Refused(Refusal),
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Full> for End {
    fn from(full: Full) -> Self {
        Self::Refused(full.into())
    }
}

impl End {
    fn reason(&self) -> String {
        match self {
            Self::ClientClosed => "client closed".to_owned(),
            Self::Superseded => "superseded".to_owned(),
            Self::Shutdown => "shutdown".to_owned(),
            Self::Late => NO_REQUEST.to_owned(),
            Self::Withheld => CUT_OFF.to_owned(),
            Self::Transport(status) | Self::Denied(status) => status.message().to_owned(),
            Self::Refused(refusal) => refusal.to_string(),
        }
    }

    /// What the client is told. Nothing, if it left.
    fn status(self) -> Option<Status> {
        match self {
            Self::ClientClosed | Self::Transport(_) => None,
            Self::Superseded => Some(Status::aborted(
                "a newer stream of this proxy's process has replaced this one",
            )),
            Self::Shutdown => Some(Status::unavailable("weir-control is shutting down")),
            Self::Late => Some(Status::deadline_exceeded(NO_REQUEST)),
            Self::Withheld => Some(Status::unavailable(CUT_OFF)),
            Self::Denied(status) => Some(status),
            Self::Refused(refusal) => Some(refusal.into()),
        }
    }
}

/// Serves one stream to its end.
pub(super) async fn serve(
    mut shared: Shared,
    (stream, mut place): (StreamId, Place),
    peer: (Caller, String),
    mut requests: Streaming<DeltaDiscoveryRequest>,
    responses: Outbound,
) {
    let (mut proxy, address) = (Arc::from(""), peer.0.address);
    let end = match first(&mut requests, &mut place, &shared.shutdown).await {
        Ok((first, session)) => {
            proxy = session.proxy.clone();
            match Connection::open(&mut shared, (stream, place), peer, session) {
                Ok(connection) => connection.run(first, requests, &responses).await,
                Err(status) => End::Denied(status),
            }
        }
        Err(end) => end,
    };
    if let End::Refused(Refusal::Full(full)) = end {
        shared.refuses(full, &proxy, address);
    }
    if let Some(status) = end.status() {
        let _ = timeout(FAREWELL_TIMEOUT, responses.send(Err(status))).await;
    }
}

async fn first(
    requests: &mut Streaming<DeltaDiscoveryRequest>,
    place: &mut Place,
    shutdown: &CancellationToken,
) -> Result<(DeltaDiscoveryRequest, Session), End> {
    let first = tokio::select! {
        first = timeout(FIRST_REQUEST_TIMEOUT, requests.message()) => first,
        () = shutdown.cancelled() => return Err(End::Shutdown),
    };
    let first = first
        .map_err(|_| End::Late)?
        .map_err(End::Transport)?
        .ok_or(End::ClientClosed)?;
    let session = Session::open(&first)?;
    place.belongs_to(&session.proxy)?;
    Ok((first, session))
}

/// A stream whose proxy is known.
struct Connection<'a> {
    shared: &'a mut Shared,
    stream: StreamId,
    session: Session,
    place: Place,
    caller: Caller,
    /// What the caller is told; none where that is everything.
    sight: Option<Sight>,
    /// Of the types that were sent.
    counted: Vec<OfType>,
    /// Cancelled when a newer stream of the same proxy has come, or at shutdown.
    over: CancellationToken,
    /// The filter's: its place among the proxies.
    _claim: Option<Claim<(Arc<str>, String)>>,
    _owned: Option<Owned>,
}

impl<'a> Connection<'a> {
    fn open(
        shared: &'a mut Shared,
        (stream, place): (StreamId, Place),
        (caller, process): (Caller, String),
        session: Session,
    ) -> Result<Self, Status> {
        let proxy = &session.proxy;
        let sight = shared.gate.sight(&caller)?;
        let owned = shared.gate.own(&caller, proxy)?;
        let over = shared.shutdown.child_token();
        let claim = session
            .weir
            .then(|| {
                let peer = (proxy.clone(), process);
                shared.proxies.claim(peer, over.clone(), usize::MAX)
            })
            .flatten();
        let (peer, identity) = (caller.address, caller.identity.clone());
        let version = &session.version;
        info!(%proxy, stream = stream.0, ?peer, ?identity, weir = session.weir, ?version, "stream opened");
        let connection = Self {
            shared,
            stream,
            session,
            place,
            caller,
            sight,
            counted: Vec::new(),
            over,
            _claim: claim,
            _owned: owned,
        };
        connection.tell(ClientEvent::Connected {
            stream,
            proxy: connection.session.proxy.clone(),
            peer,
            identity,
            weir: connection.session.weir,
            version: connection.session.version.clone(),
        });
        Ok(connection)
    }

    async fn run(
        mut self,
        first: DeltaDiscoveryRequest,
        mut requests: Streaming<DeltaDiscoveryRequest>,
        responses: &Outbound,
    ) -> End {
        let open = self.shared.metrics.opened(self.session.weir);
        let over = self.over.clone();
        let end = tokio::select! {
            end = self.converse(first, &mut requests, responses) => end,
            () = over.cancelled() => match self.shared.shutdown.is_cancelled() {
                true => End::Shutdown,
                false => End::Superseded,
            },
            () = responses.closed() => End::ClientClosed,
        };
        drop(open);
        if matches!(end, End::Superseded) {
            self.shared.metrics.count_superseded();
        }
        let (proxy, reason) = (self.session.proxy.clone(), end.reason());
        info!(%proxy, stream = self.stream.0, reason, "stream ended");
        let event = ClientEvent::Disconnected {
            stream: self.stream,
            proxy,
            reason,
        };
        self.tell_at_last(event);
        end
    }

    async fn converse(
        &mut self,
        first: DeltaDiscoveryRequest,
        requests: &mut Streaming<DeltaDiscoveryRequest>,
        responses: &Outbound,
    ) -> End {
        let mut request = Some(first);
        loop {
            if let Some(request) = request.take()
                && let Err(refusal) = self.take_in(&request)
            {
                return End::Refused(refusal);
            }
            let snapshot = self.shared.feed.snapshots.borrow_and_update().clone();
            if snapshot.withheld {
                return End::Withheld;
            }
            let snapshot = self.shared.views.of(&snapshot, self.sight.as_ref());
            while let Some(response) = self.session.on_snapshot(&snapshot) {
                self.count(&response);
                if responses.send(Ok(response)).await.is_err() {
                    return End::ClientClosed;
                }
            }
            tokio::select! {
                message = requests.message() => match message {
                    Ok(Some(message)) => request = Some(message),
                    Ok(None) => return End::ClientClosed,
                    Err(status) => return End::Transport(status),
                },
                changed = self.shared.feed.snapshots.changed() => if changed.is_err() {
                    return End::Shutdown;
                },
                () = self.shared.gate.changed() => match self.shared.gate.sight(&self.caller) {
                    Ok(sight) => self.sight = sight,
                    Err(status) => return End::Denied(status),
                },
            }
        }
    }

    fn take_in(&mut self, request: &DeltaDiscoveryRequest) -> Result<(), Refusal> {
        let names = || request.resource_names_subscribe.iter();
        // Before one of them is logged.
        if names().any(|name| name.len() > MAX_NAME_BYTES) {
            return Err(Full::Name.into());
        }
        if let Some(sight) = &self.sight {
            let named = names().filter(|name| *name != WILDCARD);
            let denied = named.filter_map(|name| {
                let what = denies(sight, &request.type_url, name)?;
                Some((what, name.as_str()))
            });
            self.shared.gate.unseen(&self.caller, denied);
        }
        if request.type_url == HOST_TABLE_TYPE {
            self.say_unknown(&request.resource_names_subscribe);
        }
        let verdict = self
            .session
            .on_request(request, self.place.stream_bytes())?;
        self.place.hold(self.session.bytes())?;
        if let Some(verdict) = verdict {
            self.note(&request.type_url, verdict);
        }
        Ok(())
    }

    /// Who asks for a table that is not there gets nothing, and waits: perhaps for a name that is written wrongly.
    fn say_unknown(&self, names: &[String]) {
        let snapshot = self.shared.feed.snapshots.borrow().clone();
        let tables = snapshot.of_type(HOST_TABLE_TYPE);
        let is_there = |name: &str| tables.is_some_and(|tables| tables.contains_key(name));
        let mut unknown = names.iter();
        let Some(name) = unknown.find(|name| *name != WILDCARD && !is_there(name)) else {
            return;
        };
        let unknown = &self.shared.unknown;
        let mut said = unknown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(unsaid) = said.is_due() {
            let tables = tables.into_iter().flat_map(|tables| tables.keys());
            let tables: Vec<_> = tables.take(NAMED).collect();
            let proxy = &self.session.proxy;
            warn!(%proxy, name, unsaid, ?tables, "a proxy asks for a table that is not there (yet): it waits");
        }
    }

    fn note(&self, type_url: &str, verdict: Verdict) {
        let Verdict {
            nonce,
            versions,
            removed,
            refusal,
        } = verdict;
        self.counted(type_url)
            .inspect(|counted| counted.count_verdict(refusal.is_some()));
        let (stream, proxy) = (self.stream, self.session.proxy.clone());
        let type_url = Arc::from(type_url);
        self.tell(match refusal {
            None => ClientEvent::Acked {
                stream,
                proxy,
                type_url,
                nonce,
                versions,
                removed,
            },
            Some(reason) => {
                debug!(%proxy, stream = stream.0, %type_url, ?versions, reason, "resources refused");
                ClientEvent::Nacked {
                    stream,
                    proxy,
                    type_url,
                    nonce,
                    reason,
                    versions,
                }
            }
        });
    }

    fn count(&mut self, response: &Response) {
        let Response { type_url, delta } = response;
        let (resources, bytes) = (delta.resources.len(), response.encoded_len());
        if self.counted(type_url).is_none() {
            self.counted.push(self.shared.metrics.of_type(type_url));
        }
        self.counted(type_url)
            .inspect(|counted| counted.count_response(resources, bytes));
        let removed = delta.removed.len();
        debug!(proxy = %self.session.proxy, stream = self.stream.0, r#type = type_url, resources, removed, bytes, "response");
    }

    fn counted(&self, type_url: &str) -> Option<&OfType> {
        self.counted.iter().find(|of| of.type_url == type_url)
    }

    /// No table waits for a stream that has ended, and a reader that is not told of its end would keep it: it is
    /// waited for, and the place is not free before.
    fn tell_at_last(self, event: ClientEvent) {
        let (events, metrics) = (self.shared.feed.events.clone(), &self.shared.metrics);
        let Err(TrySendError::Full(event)) = events.try_send(event) else {
            return;
        };
        let (place, metrics) = (self.place, metrics.clone());
        tokio::spawn(async move {
            if timeout(FAREWELL_TIMEOUT, events.send(event)).await.is_err() {
                metrics.count_lost_event();
            }
            drop(place);
        });
    }

    /// Never waits: a reader that is behind must not delay a table.
    fn tell(&self, event: ClientEvent) {
        if self.shared.feed.events.try_send(event).is_err() {
            self.shared.metrics.count_lost_event();
        }
    }
}
