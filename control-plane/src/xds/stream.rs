// SPDX-License-Identifier: Apache-2.0
//! The task behind one stream: the only owner of its [`Session`].

use std::sync::Arc;
use std::time::Duration;

use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};
use tracing::{debug, info, warn};

use super::codec::Response;
use super::metrics::{OfType, XdsMetrics};
use super::session::Session;
use super::subscription::{Verdict, WILDCARD};
use super::views::{Views, denies};
use crate::config::authorization::Sight;
use crate::gate::{Caller, Gate, Owned};
use crate::newest::{Claim, Newest};
use crate::snapshot::{ClientEvent, Feed, StreamId};

/// A stream that says nothing is not worth a task.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

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
    pub(super) shutdown: CancellationToken,
}

/// Why a stream ends.
enum End {
    ClientClosed,
    Transport(Status),
    Superseded,
    Shutdown,
    Refused(Status),
}

impl End {
    fn reason(&self) -> String {
        match self {
            Self::ClientClosed => "client closed".to_owned(),
            Self::Superseded => "superseded".to_owned(),
            Self::Shutdown => "shutdown".to_owned(),
            Self::Transport(status) | Self::Refused(status) => status.message().to_owned(),
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
            Self::Refused(status) => Some(status),
        }
    }
}

/// Serves one stream to its end.
pub(super) async fn serve(
    mut shared: Shared,
    stream: StreamId,
    peer: (Caller, String),
    mut requests: Streaming<DeltaDiscoveryRequest>,
    responses: Outbound,
) {
    let end = match first(&mut requests, &shared.shutdown).await {
        Ok((first, session)) => match Connection::open(&mut shared, stream, peer, session) {
            Ok(connection) => connection.run(first, requests, &responses).await,
            Err(status) => End::Refused(status),
        },
        Err(end) => end,
    };
    if let Some(status) = end.status() {
        let _ = timeout(FAREWELL_TIMEOUT, responses.send(Err(status))).await;
    }
}

async fn first(
    requests: &mut Streaming<DeltaDiscoveryRequest>,
    shutdown: &CancellationToken,
) -> Result<(DeltaDiscoveryRequest, Session), End> {
    let first = tokio::select! {
        first = timeout(FIRST_REQUEST_TIMEOUT, requests.message()) => first,
        () = shutdown.cancelled() => return Err(End::Shutdown),
    };
    let late = |_| End::Refused(Status::deadline_exceeded("no request came"));
    let first = first
        .map_err(late)?
        .map_err(End::Transport)?
        .ok_or(End::ClientClosed)?;
    let session = Session::open(&first).map_err(End::Refused)?;
    Ok((first, session))
}

/// A stream whose proxy is known.
struct Connection<'a> {
    shared: &'a mut Shared,
    stream: StreamId,
    session: Session,
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
        stream: StreamId,
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
        info!(%proxy, stream = stream.0, ?peer, ?identity, weir = session.weir, "stream opened");
        let connection = Self {
            shared,
            stream,
            session,
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
        self.tell(ClientEvent::Disconnected {
            stream: self.stream,
            proxy,
            reason,
        });
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
                && let Err(status) = self.take_in(&request)
            {
                return End::Refused(status);
            }
            let snapshot = self.shared.feed.snapshots.borrow_and_update().clone();
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
                    Err(status) => return End::Refused(status),
                },
            }
        }
    }

    fn take_in(&mut self, request: &DeltaDiscoveryRequest) -> Result<(), Status> {
        if let Some(sight) = &self.sight {
            let names = request.resource_names_subscribe.iter();
            for name in names.filter(|name| *name != WILDCARD) {
                if let Some(what) = denies(sight, &request.type_url, name) {
                    self.shared.gate.unseen(&self.caller, what, name);
                }
            }
        }
        if let Some(verdict) = self.session.on_request(request)? {
            self.note(&request.type_url, verdict);
        }
        Ok(())
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
                warn!(%proxy, stream = stream.0, %type_url, ?versions, reason, "resources refused");
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

    /// Never waits: a reader that is behind must not delay a table.
    fn tell(&self, event: ClientEvent) {
        if self.shared.feed.events.try_send(event).is_err() {
            self.shared.metrics.count_lost_event();
        }
    }
}
