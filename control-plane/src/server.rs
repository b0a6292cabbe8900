// SPDX-License-Identifier: Apache-2.0
//! The gRPC listener: discovery and reports on one port.

use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};

use crate::config::Tls;

impl Tls {
    /// A server with this certificate. The error is the library's reason.
    pub fn server(&self) -> Result<Server, String> {
        let mut tls =
            ServerTlsConfig::new().identity(Identity::from_pem(&self.certificate, &self.key));
        if let Some(ca) = &self.client_ca {
            tls = tls.client_ca_root(Certificate::from_pem(ca));
        }
        Server::builder().tls_config(tls).map_err(|error| {
            let mut reason = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(inner) = source {
                reason = format!("{reason}: {inner}");
                source = inner.source();
            }
            reason
        })
    }
}
