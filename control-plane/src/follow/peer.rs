// SPDX-License-Identifier: Apache-2.0
//! Connections to another replica.

use std::time::Duration;

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::config::replicas::PeerTls;
use crate::errors::with_sources;

/// A leader that is frozen, or behind a network that swallows everything, is noticed in these two together.
const PING_INTERVAL: Duration = Duration::from_secs(1);
const PING_TIMEOUT: Duration = Duration::from_secs(2);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How the discovery listener at `host:port` is reached. The error is the library's reason.
pub(crate) fn endpoint(address: &str, tls: Option<&PeerTls>) -> Result<Endpoint, String> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let says = |error: tonic::transport::Error| with_sources(&error);
    let endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
        .map_err(says)?
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true);
    let Some(tls) = tls else { return Ok(endpoint) };
    let mut config = ClientTlsConfig::new()
        .domain_name(&tls.server_name)
        .ca_certificate(Certificate::from_pem(&tls.ca));
    if let Some((certificate, key)) = &tls.identity {
        config = config.identity(Identity::from_pem(certificate, key));
    }
    endpoint.tls_config(config).map_err(says)
}
