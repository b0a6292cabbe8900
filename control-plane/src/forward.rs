// SPDX-License-Identifier: Apache-2.0
//! Reports and nodes at a replica that does not lead: their streams go on to the leader, as they are.
//!
//! ```text
//!  sidecar, governor ── stream ──> Forward ── Leading ────> the service here
//!                                     ├────── Following ──> the same service of the leader
//!                                     └────── Waiting ────> UNAVAILABLE
//! ```
//! What was forwarded to one leader ends when there is another one: callers come back and are forwarded anew.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::Frame;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::NamedService;
use tonic::transport::Channel;
use weir_fleet::role::Role;

use crate::config::Config;
use crate::errors::with_sources;
use crate::gate::{FORWARDED, pass_on};
use crate::tls::peer::{self, PeerTls};
use crate::xds::codec::end;

/// Of one connection to the leader: a server takes 256 (`xds::STREAMS_PER_CONNECTION`), and a place is free a
/// moment later there than here.
const STREAMS_PER_CONNECTION: usize = 200;

/// Who is asked what. Clones are the same.
#[derive(Clone, Debug)]
pub struct Routes {
    roles: watch::Receiver<Role>,
    configs: watch::Receiver<Arc<Config>>,
    pool: Arc<Mutex<Pool>>,
    shutdown: CancellationToken,
}

/// Connections to the leader.
#[derive(Debug, Default)]
struct Pool {
    /// How the leader is trusted, and what is shown to it.
    tls: Option<PeerTls>,
    address: String,
    /// Each with what its streams hold.
    channels: Vec<(Channel, Arc<()>)>,
}

/// A service that only the leader has.
#[derive(Clone, Debug)]
pub struct Forward<S> {
    local: S,
    routes: Routes,
}

impl Routes {
    /// By the newest role and certificates, until `shutdown`.
    pub fn new(
        roles: watch::Receiver<Role>,
        configs: watch::Receiver<Arc<Config>>,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            roles,
            configs,
            pool: Arc::default(),
            shutdown,
        }
    }

    /// The service, wherever it is.
    pub fn to<S>(&self, local: S) -> Forward<S> {
        let routes = self.clone();
        Forward { local, routes }
    }

    /// Waits until streams of this role must end.
    async fn over(mut self, role: Role) -> &'static str {
        let changed = self.roles.wait_for(|now| !is_same_way(now, &role));
        let ended = tokio::select! {
            ended = changed => ended.is_ok(),
            () = self.shutdown.cancelled() => return "shutting down",
        };
        match ended {
            true => "another replica leads now",
            // Nobody chooses any more.
            false => std::future::pending().await,
        }
    }
}

fn is_same_way(one: &Role, other: &Role) -> bool {
    match (one, other) {
        (Role::Following(one), Role::Following(other)) => one.address == other.address,
        (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

impl Pool {
    /// A connection with room, and what is to be held while a stream uses it. Streams on connections of older
    /// certificates go on.
    fn channel(
        &mut self,
        address: &str,
        tls: Option<&PeerTls>,
    ) -> Result<(Channel, Arc<()>), String> {
        if self.address != address || self.tls.as_ref() != tls {
            self.channels.clear();
            self.address = address.to_owned();
            self.tls = tls.cloned();
        }
        let free = |held: &Arc<()>| Arc::strong_count(held) <= STREAMS_PER_CONNECTION;
        if let Some((channel, held)) = self.channels.iter().find(|(_, held)| free(held)) {
            return Ok((channel.clone(), held.clone()));
        }
        let channel = peer::endpoint(address, self.tls.as_ref())?.connect_lazy();
        let held = Arc::new(());
        self.channels.push((channel.clone(), held.clone()));
        Ok((channel, held))
    }
}

impl<S: NamedService> NamedService for Forward<S> {
    const NAME: &'static str = S::NAME;
}

type Request = http::Request<Body>;
type Response = http::Response<Body>;
type Answer = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

impl<S> Service<Request> for Forward<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.local.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Answer {
        let role = self.routes.roles.borrow().clone();
        let over = self.routes.clone().over(role.clone());
        match role {
            Role::Leading { .. } => {
                let answer = self.local.call(request);
                Box::pin(async move { Ok(answer.await?.map(|body| until(over, body, None))) })
            }
            Role::Following(leader) if !request.headers().contains_key(FORWARDED) => {
                let config = self.routes.configs.borrow().clone();
                let tls = config.replicas.as_ref();
                let tls = tls.and_then(|replicas| replicas.tls.as_ref());
                let pool = self.routes.pool.lock();
                let channel = pool
                    .unwrap_or_else(PoisonError::into_inner)
                    .channel(&leader.address, tls);
                match channel {
                    Ok((channel, held)) => Box::pin(forward(request, channel, held, over)),
                    Err(why) => refuse(why),
                }
            }
            Role::Following(_) => refuse("this replica does not lead".to_owned()),
            Role::Waiting => refuse("no leader is known yet".to_owned()),
        }
    }
}

fn refuse(why: String) -> Answer {
    Box::pin(std::future::ready(Ok(Status::unavailable(why).into_http())))
}

async fn forward(
    mut request: Request,
    mut channel: Channel,
    held: Arc<()>,
    over: impl Future<Output = &'static str> + Send + 'static,
) -> Result<Response, Infallible> {
    pass_on(&mut request);
    let answer = async {
        std::future::poll_fn(|context| channel.poll_ready(context)).await?;
        channel.call(request).await
    };
    let mut over = Box::pin(over);
    let answer = tokio::select! {
        answer = answer => answer,
        why = &mut over => return Ok(Status::unavailable(why).into_http()),
    };
    Ok(match answer {
        Ok(response) => response.map(|body| until(over, body, Some(held))),
        Err(error) => {
            let why = with_sources(&error);
            Status::unavailable(format!("the leader cannot be reached: {why}")).into_http()
        }
    })
}

/// A body that ends with UNAVAILABLE when its stream must.
fn until(
    over: impl Future<Output = &'static str> + Send + 'static,
    body: Body,
    held: Option<Arc<()>>,
) -> Body {
    Body::new(Until {
        body: Some(body),
        over: Box::pin(over),
        _held: held,
    })
}

struct Until {
    body: Option<Body>,
    over: Pin<Box<dyn Future<Output = &'static str> + Send>>,
    _held: Option<Arc<()>>,
}

impl hyper::body::Body for Until {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(context) {
            return Poll::Ready(frame);
        }
        let Poll::Ready(why) = self.over.as_mut().poll(context) else {
            return Poll::Pending;
        };
        self.body = None;
        Poll::Ready(Some(end(&Status::unavailable(why))))
    }

    fn is_end_stream(&self) -> bool {
        self.body
            .as_ref()
            .is_none_or(hyper::body::Body::is_end_stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn streams_after_a_change_of_address_or_certificates_have_a_connection_of_their_own() {
        let mut pool = Pool::default();
        let tls = |name: &str| PeerTls {
            ca: Vec::new(),
            identity: None,
            server_name: name.to_owned(),
        };
        let mut held = |address: &str, tls: Option<&PeerTls>| {
            let (_, held) = pool.channel(address, tls).unwrap();
            held
        };
        let first = held("127.0.0.1:1", None);
        assert!(Arc::ptr_eq(&first, &held("127.0.0.1:1", None)));
        let moved = held("127.0.0.1:2", None);
        assert!(!Arc::ptr_eq(&first, &moved));
        let renewed = held("127.0.0.1:2", Some(&tls("a")));
        assert!(!Arc::ptr_eq(&moved, &renewed));
        assert!(Arc::ptr_eq(&renewed, &held("127.0.0.1:2", Some(&tls("a")))));
        assert!(!Arc::ptr_eq(
            &renewed,
            &held("127.0.0.1:2", Some(&tls("b")))
        ));
    }
}
