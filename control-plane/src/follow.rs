// SPDX-License-Identifier: Apache-2.0
//! What the leader pushes, so that this replica pushes it as well.
//!
//! ```text
//!  leader ── delta ADS ──> Mirror ── Update::Mirrored ──> state ── Snapshot ──> sidecars
//! ```
//! Resources pass through as they came, with the leader's versions: a sidecar that comes from another replica
//! is told nothing that it has. While the leader is not reached that is told too (`Update::Severed`).

mod mirror;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::config::core::v3::node::UserAgentVersionType;
use envoy_types::pb::envoy::service::discovery::v3 as discovery;
use rand::RngExt;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Request, Status};
use tracing::{Instrument, debug, info};
use weir_fleet::Update;
use weir_fleet::role::{Leader, Role};
use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE};

use crate::config::{Config, Replicas};
use crate::errors::with_sources;
use crate::leader::Depose;
use crate::newest::PROCESS;
use crate::news::News;
use crate::tls::peer;
use crate::xds::types;

pub use mirror::Mirror;

/// Of one response: a resource goes whole, however large the table is that it carries.
const MAX_RESPONSE_BYTES: usize = 256 << 20;
/// Pauses before the next attempt to connect double from here ...
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// ... to here. Short: there is one leader and a handful of followers.
const LAST_PAUSE: Duration = Duration::from_millis(250);
/// A leader whose streams are open for so long is reached: one that does not let this replica in has ended them, and one that
/// does not answer pings too.
const SETTLED: Duration = Duration::from_secs(4);
/// A leader that refuses so many connections in a row, for so long, has gone: its machine is there and its
/// process is not.
const REFUSALS: u32 = 4;
const REFUSED_FOR: Duration = Duration::from_millis(700);

type Client =
    discovery::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient<Channel>;

/// Follows whoever leads, for as long as this replica does not, until nobody listens.
pub async fn run(
    replicas: Arc<Replicas>,
    mut roles: watch::Receiver<Role>,
    configs: watch::Receiver<Arc<Config>>,
    deposed: mpsc::Sender<Depose>,
    updates: mpsc::Sender<News>,
) {
    let mut mirror = Mirror::default();
    // Two of one name, as two on one machine are, do not end each other's streams.
    let process = format!("{:x}", rand::random::<u64>());
    loop {
        let role = roles.borrow_and_update().clone();
        match role {
            Role::Following(leader) => {
                let span =
                    tracing::info_span!("follow", leader = %leader.name, address = %leader.address);
                let follower = Follower {
                    replicas: &replicas,
                    process: &process,
                    leader: &leader,
                    configs: &configs,
                    deposed: &deposed,
                    updates: &updates,
                };
                tokio::select! {
                    () = follower.follow(&mut mirror).instrument(span) => return,
                    changed = roles.changed() => if changed.is_err() { return },
                }
            }
            _ => {
                mirror = Mirror::default();
                if roles.changed().await.is_err() {
                    return;
                }
            }
        }
    }
}

struct Follower<'a> {
    replicas: &'a Arc<Replicas>,
    process: &'a str,
    leader: &'a Arc<Leader>,
    configs: &'a watch::Receiver<Arc<Config>>,
    deposed: &'a mpsc::Sender<Depose>,
    updates: &'a mpsc::Sender<News>,
}

/// Why there is no stream any more.
enum End {
    /// Nobody listens where the leader was.
    Refused,
    /// Anything else.
    Broken(String),
    /// This process ends.
    Over,
}

impl Follower<'_> {
    async fn follow(&self, mirror: &mut Mirror) {
        let mut refusals = Refusals::default();
        let mut pause = FIRST_PAUSE;
        loop {
            let end = self.connect(mirror, &mut pause).await;
            let index = self.leader.index;
            let severed = self.updates.send(Update::Severed { index }.into());
            if matches!(end, End::Over) || severed.await.is_err() {
                return;
            }
            match end {
                End::Over => return,
                End::Refused if refusals.count(Instant::now()) => {
                    refusals = Refusals::default();
                    // It looks at one after the other.
                    let _ = self.deposed.try_send(self.leader.session.clone());
                }
                End::Refused => {}
                End::Broken(why) => {
                    info!(why, "the leader's stream has ended");
                    refusals = Refusals::default();
                }
            }
            let share = rand::rng().random_range(0.5..1.0);
            sleep(pause.mul_f64(share)).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    async fn connect(&self, mirror: &mut Mirror, pause: &mut Duration) -> End {
        let config = self.configs.borrow().clone();
        // Its certificates are the newest; all else of it stays until a restart.
        let replicas = config.replicas.as_ref().unwrap_or(self.replicas);
        let endpoint = match peer::endpoint(&self.leader.address, replicas.tls.as_ref()) {
            Ok(endpoint) => endpoint,
            Err(why) => return End::Broken(why),
        };
        let channel = match endpoint.connect().await {
            Ok(channel) => channel,
            Err(error) if is_refused(&error) => return End::Refused,
            Err(error) => return End::Broken(with_sources(&error)),
        };
        let client = Client::new(channel).max_decoding_message_size(MAX_RESPONSE_BYTES);
        let tables = [HOST_TABLE_TYPE, CACHE_SHARD_TYPE].as_slice();
        let standalone = self.configs.borrow().standalone.is_some();
        let envoys: &[&'static str] = if standalone { &types::ORDER } else { &[] };
        let (mut tables, mut envoys) = (
            self.open(&client, tables, mirror).await,
            self.open(&client, envoys, mirror).await,
        );
        let mut follows = false;
        let mut settles = pin!(sleep(SETTLED));
        let mut is_settled = false;
        loop {
            let (stream, response) = tokio::select! {
                response = tables.next() => (&mut tables, response),
                response = envoys.next() => (&mut envoys, response),
                () = &mut settles, if !is_settled => {
                    is_settled = true;
                    let index = self.leader.index;
                    if self.updates.send(Update::Reached { index }.into()).await.is_err() {
                        return End::Over;
                    }
                    continue;
                }
            };
            let response = match response {
                Ok(response) => response,
                Err(why) => return End::Broken(why),
            };
            *pause = FIRST_PAUSE;
            // Who is not let in learns it only now: in TLS 1.3 a client's certificate is looked at after the handshake.
            if !follows {
                follows = true;
                info!("follows");
            }
            let refusal = mirror.take(&response, self.leader.index);
            debug!(kind = response.type_url, ?refusal, "mirrored");
            if !stream.answer(&response, refusal).await {
                return End::Broken("closed".to_owned());
            }
            let update = Update::Mirrored {
                index: self.leader.index,
                snapshot: mirror.snapshot(),
            };
            if self.updates.send(update.into()).await.is_err() {
                return End::Over;
            }
        }
    }

    /// Asks for all that there is of these types, and tells what is known of it. Without types it says nothing.
    async fn open(&self, client: &Client, types: &[&'static str], known: &Mirror) -> Stream {
        let (requests, outbound) = mpsc::channel(types.len().max(1) + 1);
        let mut stream = Stream {
            requests,
            responses: None,
            error: None,
        };
        if types.is_empty() {
            return stream;
        }
        for kind in types {
            let first = discovery::DeltaDiscoveryRequest {
                node: Some(Node {
                    id: format!("replica/{}", self.replicas.name),
                    user_agent_version_type: Some(UserAgentVersionType::UserAgentVersion(
                        env!("CARGO_PKG_VERSION").to_owned(),
                    )),
                    ..Default::default()
                }),
                type_url: (*kind).to_owned(),
                initial_resource_versions: known.versions(kind),
                ..Default::default()
            };
            // There is room for them.
            let _ = stream.requests.try_send(first);
        }
        let mut outbound = Request::new(ReceiverStream::new(outbound));
        if let Ok(process) = self.process.parse() {
            outbound.metadata_mut().insert(PROCESS, process);
        }
        match client.clone().delta_aggregated_resources(outbound).await {
            Ok(answer) => stream.responses = Some(answer.into_inner()),
            Err(status) => stream.error = Some(reason(&status)),
        }
        stream
    }
}

/// Connections that were refused in a row.
#[derive(Debug, Default)]
struct Refusals {
    count: u32,
    since: Option<Instant>,
}

impl Refusals {
    /// One more; whether they are enough.
    fn count(&mut self, now: Instant) -> bool {
        self.count += 1;
        let since = *self.since.get_or_insert(now);
        self.count >= REFUSALS && now - since >= REFUSED_FOR
    }
}

fn is_refused(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut source = Some(error);
    while let Some(inner) = source {
        if let Some(io) = inner.downcast_ref::<io::Error>()
            && io.kind() == io::ErrorKind::ConnectionRefused
        {
            return true;
        }
        source = inner.source();
    }
    false
}

/// What a stream ended with, with what the library says of the connection.
fn reason(status: &Status) -> String {
    let message = status.message();
    let source = std::error::Error::source(status).map(with_sources);
    match source {
        Some(told) if told.starts_with(message) => told,
        Some(told) => format!("{message}: {told}"),
        None => message.to_owned(),
    }
}

/// A stream of some types.
struct Stream {
    requests: mpsc::Sender<discovery::DeltaDiscoveryRequest>,
    responses: Option<tonic::Streaming<discovery::DeltaDiscoveryResponse>>,
    error: Option<String>,
}

impl Stream {
    async fn next(&mut self) -> Result<discovery::DeltaDiscoveryResponse, String> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let Some(responses) = &mut self.responses else {
            return std::future::pending().await;
        };
        match responses.message().await {
            Ok(Some(response)) => Ok(response),
            Ok(None) => Err("closed".to_owned()),
            Err(status) => Err(reason(&status)),
        }
    }

    /// Says whether all of a response was taken. False where nobody hears it.
    async fn answer(
        &self,
        response: &discovery::DeltaDiscoveryResponse,
        refusal: Option<String>,
    ) -> bool {
        let error_detail = refusal.map(|message| envoy_types::pb::google::rpc::Status {
            code: tonic::Code::InvalidArgument.into(),
            message,
            ..Default::default()
        });
        let answer = discovery::DeltaDiscoveryRequest {
            type_url: response.type_url.clone(),
            response_nonce: response.nonce.clone(),
            error_detail,
            ..Default::default()
        };
        self.requests.send(answer).await.is_ok()
    }
}
