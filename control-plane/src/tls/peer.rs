// SPDX-License-Identifier: Apache-2.0
//! Connections to another replica.

use std::fmt;
use std::time::Duration;

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::errors::with_sources;

/// A leader that is frozen, or behind a network that swallows everything, is noticed in these two together.
const PING_INTERVAL: Duration = Duration::from_secs(1);
const PING_TIMEOUT: Duration = Duration::from_secs(2);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How a replica trusts another one. Contents of PEM files.
#[derive(Clone, PartialEq, Eq)]
pub struct PeerTls {
    /// Only this authority is trusted.
    pub ca: Vec<u8>,
    /// What is shown: certificate and key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The name that the others' certificates have.
    pub server_name: String,
}

impl fmt::Debug for PeerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerTls")
            .field("identity", &self.identity.is_some())
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

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
