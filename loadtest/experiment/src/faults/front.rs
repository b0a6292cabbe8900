// SPDX-License-Identifier: Apache-2.0
//! HTTPS before a server that has none, with a certificate that can be replaced.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The name that is in its certificates.
pub(crate) const NAME: &str = "localhost";
/// Of a question: a query of Prometheus takes a tenth.
const MOST_BYTES: usize = 64 << 10;
/// Nobody who asks here waits longer.
const LIMIT: Duration = Duration::from_secs(10);

/// Answers until the process ends. Each question has a connection of its own, so that each sees the certificate as it
/// is then.
pub(crate) struct Front {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    issuer: Issuer<'static, KeyPair>,
    /// The authority's certificate, PEM.
    pub(crate) authority: String,
    shown: Arc<Mutex<Arc<ServerConfig>>>,
}

impl Front {
    /// Before the server at `behind`, with a certificate that is good for so long.
    ///
    /// # Errors
    /// The system gives no port or thread.
    pub(crate) fn start(behind: SocketAddr, life: Duration) -> Result<Self> {
        let mut params = named("authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        let authority = params.self_signed(&key)?.pem();
        let issuer = Issuer::new(params, key);
        let shown = Arc::new(Mutex::new(certificate(&issuer, life)?));
        let listener = TcpListener::bind("127.0.0.1:0").context("a port for HTTPS")?;
        let address = listener.local_addr()?;
        let newest = shown.clone();
        std::thread::Builder::new()
            .name("front".to_owned())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    let config = newest.lock().unwrap_or_else(PoisonError::into_inner);
                    let config = config.clone();
                    // Whoever is not answered asks again.
                    std::thread::spawn(move || answer(stream, config, behind));
                }
            })?;
        Ok(Self {
            address,
            issuer,
            authority,
            shown,
        })
    }

    /// Shows another certificate from now on, that is good for so long.
    ///
    /// # Errors
    /// It cannot be signed.
    pub(crate) fn renew(&self, life: Duration) -> Result<()> {
        let renewed = certificate(&self.issuer, life)?;
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
        Ok(())
    }
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn certificate(issuer: &Issuer<'_, KeyPair>, life: Duration) -> Result<Arc<ServerConfig>> {
    let mut params = named(NAME);
    params.subject_alt_names = vec![rcgen::SanType::DnsName(NAME.try_into()?)];
    params.not_after = (SystemTime::now() + life).into();
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    // Whoever resumes a session looks at no certificate.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Passes one question on, and its answer back.
fn answer(stream: TcpStream, config: Arc<ServerConfig>, behind: SocketAddr) -> io::Result<()> {
    stream.set_read_timeout(Some(LIMIT))?;
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut caller = StreamOwned::new(connection, stream);
    let mut question = Vec::new();
    while !question.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        caller.read_exact(&mut byte)?;
        question.push(byte[0]);
        if question.len() > MOST_BYTES {
            return Err(io::Error::other("no end of a question"));
        }
    }
    question.truncate(question.len() - 2);
    question.extend_from_slice(b"connection: close\r\n\r\n");
    let mut server = TcpStream::connect(behind)?;
    server.set_read_timeout(Some(LIMIT))?;
    server.write_all(&question)?;
    io::copy(&mut server, &mut caller)?;
    caller.conn.send_close_notify();
    caller.flush()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::*;

    /// What a caller reads who trusts the front's authority.
    fn asked(front: &Front) -> io::Result<String> {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(front.authority.as_bytes()).unwrap();
        roots.add(root).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = NAME.try_into().unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(connection, TcpStream::connect(front.address)?);
        stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    #[test]
    fn questions_are_passed_on_until_the_certificate_expires_and_again_with_another() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let behind = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut question = [0; 1024];
                let read = stream.read(&mut question).unwrap();
                stream.write_all(&question[..read]).unwrap();
            }
        });
        let day = Duration::from_secs(24 * 3600);
        let front = Front::start(behind, day).unwrap();
        let passed_on = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        assert_eq!(asked(&front).unwrap(), passed_on);
        front.renew(Duration::ZERO).unwrap();
        // It is good to the end of this second.
        let begun = Instant::now();
        let error = loop {
            if let Err(error) = asked(&front) {
                break error;
            }
            let waited = begun.elapsed();
            assert!(waited < Duration::from_secs(60), "it does not expire");
        };
        assert!(error.to_string().contains("expired"), "{error}");
        front.renew(day).unwrap();
        assert_eq!(asked(&front).unwrap(), passed_on);
    }
}
