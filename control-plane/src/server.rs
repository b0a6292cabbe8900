// SPDX-License-Identifier: Apache-2.0
//! The gRPC listener: discovery, reports and nodes on one port.

use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};

use crate::config::Tls;
use crate::forward::Forward;
use crate::reports;
use crate::sources::nodes;
use crate::xds;

/// A server with this certificate. The error is the library's reason.
pub fn with_tls(tls: &Tls) -> Result<Server, String> {
    let mut config =
        ServerTlsConfig::new().identity(Identity::from_pem(&tls.certificate, &tls.key));
    if let Some(ca) = &tls.client_ca {
        config = config.client_ca_root(Certificate::from_pem(ca));
    }
    xds::server()
        .tls_config(config)
        .map_err(|error| crate::config::with_sources(&error))
}

/// The services of the listener.
#[derive(Debug)]
pub struct Services {
    /// Tables and standalone resources.
    pub discovery: xds::Discovery,
    /// What proxies say.
    pub reports: Forward<weir_tables::v1::reports_server::ReportsServer<reports::Service>>,
    /// What governors say and are told.
    pub nodes: Forward<weir_tables::v1::nodes_server::NodesServer<nodes::Service>>,
}

/// Serves until `shutdown`, then until the streams have ended.
pub async fn serve(
    listener: TcpListener,
    tls: Option<&Tls>,
    services: Services,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let mut server = match tls {
        Some(tls) => with_tls(tls).map_err(anyhow::Error::msg)?,
        None => xds::server(),
    };
    server
        .add_service(services.discovery)
        .add_service(services.reports)
        .add_service(services.nodes)
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), shutdown.cancelled_owned())
        .await?;
    Ok(())
}
