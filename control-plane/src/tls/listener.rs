// SPDX-License-Identifier: Apache-2.0
//! Certificates of the listener.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::errors::with_sources;

/// Contents of the PEM files.
#[derive(Clone, PartialEq, Eq)]
pub struct Tls {
    /// Certificate chain.
    pub certificate: Vec<u8>,
    /// Private key.
    pub key: Vec<u8>,
    /// Clients must show a certificate of this authority.
    pub client_ca: Option<Vec<u8>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("client_ca", &self.client_ca.is_some())
            .finish_non_exhaustive()
    }
}

/// Speaks TLS with this certificate, and with whoever shows one of the authority, where there is one. The error
/// is the library's reason.
pub fn acceptor(tls: &Tls) -> Result<TlsAcceptor, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| with_sources(&error))?;
    let builder = match &tls.client_ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates(ca)? {
                roots.add(authority).map_err(|error| with_sources(&error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            let verifier = verifier.build().map_err(|error| with_sources(&error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let key = PrivateKeyDer::from_pem_slice(&tls.key).map_err(|error| unreadable(&error))?;
    let mut config = builder
        .with_single_cert(certificates(&tls.certificate)?, key)
        .map_err(|error| with_sources(&error))?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>();
    all.map_err(|error| unreadable(&error))
}

fn unreadable(error: &pem::Error) -> String {
    with_sources(error)
}
