// SPDX-License-Identifier: Apache-2.0
//! The gRPC listener: discovery, reports and nodes on one port.

mod incoming;
mod tls;

use std::sync::Arc;

use nix::sys::resource::{Resource, getrlimit};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::config::Config;
use crate::forward::Forward;
use crate::reports;
use crate::sources::nodes;
use crate::xds;

use crate::tls::acceptor;
pub use incoming::{Connection, Limits, incoming};

/// The services of the listener.
#[derive(Debug)]
pub struct Services {
    /// Tables and standalone resources.
    pub discovery: xds::Discovery,
    /// What proxies say.
    pub reports: Forward<reports::Service>,
    /// What governors say and are told.
    pub nodes: Forward<weir_tables::v1::nodes_server::NodesServer<nodes::Service>>,
}

/// Serves until `shutdown`, then until the streams have ended. TLS is as the newest of `configs` has it, where the
/// first one has any.
pub async fn serve(
    listener: TcpListener,
    mut configs: watch::Receiver<Arc<Config>>,
    limits: Limits,
    services: Services,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let tls = configs.borrow_and_update().xds.tls.clone();
    let acceptors = match tls {
        None => None,
        Some(tls) => {
            let acceptor = acceptor(&tls).map_err(anyhow::Error::msg)?;
            let (sender, acceptors) = watch::channel(acceptor);
            let renewal = tls::renew(sender, tls, configs).in_current_span();
            let renewal = AbortOnDropHandle::new(tokio::spawn(renewal));
            Some((acceptors, renewal))
        }
    };
    let tls = acceptors.as_ref().map(|(acceptors, _)| acceptors.clone());
    let connections = incoming(listener, tls, limits, shutdown.clone());
    xds::server()
        .add_service(services.discovery)
        .add_service(services.reports)
        .add_service(services.nodes)
        .serve_with_incoming_shutdown(connections, shutdown.cancelled_owned())
        .await?;
    Ok(())
}

/// An Envoy opens a connection for itself and one for each thread whose filter talks; while it is replaced there
/// are two of it.
const CONNECTIONS_PER_PROXY: usize = 4;
/// Governors, and gateways in between.
const OTHER_CONNECTIONS: usize = 1024;
/// Open files that are left for polls, pages and files.
const FILES_LEFT: u64 = 1024;

/// Room for so many proxies, as far as the system lets this process have it.
pub fn places(max_proxies: usize) -> usize {
    let wanted = OTHER_CONNECTIONS + CONNECTIONS_PER_PROXY * max_proxies;
    let files = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(files, _)| files);
    let allowed = files - FILES_LEFT.min(files / 2);
    wanted.min(usize::try_from(allowed).unwrap_or(usize::MAX))
}
