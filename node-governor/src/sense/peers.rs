// SPDX-License-Identifier: Apache-2.0
//! Governors of other nodes: whether jobs have ended there that jobs here wait for.
//!
//! ```text
//!  loop <── ended ── Peers <── once a second ── GET /state of each node's governor
//! ```
//! What a governor said last stays until it says something else: its silence ends no job, and takes back no end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use hyper::Uri;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tracing::{info, warn};

use crate::book::shares::{PeerBook, state_named};
use crate::config::Trust;
use crate::config::shares::Peer;
use crate::get::get_over;

/// "Checking the job status every second" (document 004, part 3.2).
const EVERY: Duration = Duration::from_secs(1);
/// An answer that takes longer is none.
const TIMEOUT: Duration = Duration::from_secs(1);

/// What is known of jobs on other nodes, shared with the loop. Neither side waits for the other.
#[derive(Clone, Debug, Default)]
pub struct Peers(Vec<Arc<Told>>);

/// By one governor.
#[derive(Debug)]
struct Told {
    peer: Peer,
    answers: AtomicBool,
    /// One for each of its jobs.
    jobs: Vec<AtomicU8>,
}

/// Not known whether the job has ended.
const UNKNOWN: u8 = 0;
const GOES_ON: u8 = 1;
const ENDED: u8 = 2;

impl Peers {
    /// Nothing is known yet.
    pub fn new(peers: &[Peer]) -> Self {
        let told = |peer: &Peer| {
            Arc::new(Told {
                peer: peer.clone(),
                answers: AtomicBool::new(false),
                jobs: peer.jobs.iter().map(|_| AtomicU8::new(UNKNOWN)).collect(),
            })
        };
        Self(peers.iter().map(told).collect())
    }

    /// Whether each job has ended; none while that is not known.
    pub fn ended(&self) -> impl Iterator<Item = Option<bool>> {
        self.0.iter().flat_map(|told| told.ended())
    }

    /// For pages.
    pub fn book(&self) -> impl Iterator<Item = PeerBook> {
        self.0.iter().map(|told| PeerBook {
            node: told.peer.node.clone(),
            answers: told.answers.load(Ordering::Relaxed),
            jobs: told.peer.jobs.iter().cloned().zip(told.ended()).collect(),
        })
    }

    /// Asks for ever.
    pub async fn ask(self, trust: Trust) {
        let tls = match connector(&trust) {
            Ok(tls) => tls,
            // It was read with the configuration.
            Err(error) => return warn!(error, "governors of other nodes are not asked"),
        };
        let mut asking = JoinSet::new();
        for told in self.0 {
            let (tls, trust) = (tls.clone(), trust.clone());
            asking.spawn(async move { told.ask(tls, &trust).await });
        }
        asking.join_all().await;
    }
}

impl Told {
    fn ended(&self) -> impl Iterator<Item = Option<bool>> {
        let jobs = self.jobs.iter().map(|job| job.load(Ordering::Relaxed));
        jobs.map(|job| (job != UNKNOWN).then_some(job == ENDED))
    }

    async fn ask(&self, mut tls: TlsConnector, trust: &Trust) {
        let (node, url) = (&self.peer.node, &self.peer.url);
        // Beginning with none, so that the first answer is told, too.
        let mut told = None;
        let mut times = tokio::time::interval(EVERY);
        times.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            times.tick().await;
            let answer = tokio::time::timeout(TIMEOUT, state(url, &tls)).await;
            let answer = answer.unwrap_or_else(|_| Err(anyhow!("no answer in {TIMEOUT:?}")));
            let heard = answer.and_then(|page| self.hear(&page));
            self.answers.store(heard.is_ok(), Ordering::Relaxed);
            // Certificates may have been renewed since.
            if heard.is_err()
                && let Ok(renewed) = connector(&trust.renewed())
            {
                tls = renewed;
            }
            let reason = heard.err().map(|error| format!("{error:#}"));
            if told.as_ref() == Some(&reason) {
                continue;
            }
            match &reason {
                Some(error) => {
                    warn!(
                        node,
                        url,
                        error,
                        "another node's jobs are not known: none of them counts as ended that had not"
                    );
                }
                None => info!(node, url, "another node's governor answers"),
            }
            told = Some(reason);
        }
    }

    /// Takes what the page says of every job, or nothing.
    fn hear(&self, page: &str) -> Result<()> {
        let state: State = serde_json::from_str(page).context("no /state of a governor")?;
        let jobs = state.shares.map_or(Vec::new(), |shares| shares.jobs);
        let ended = |name: &String| {
            let job = jobs.iter().find(|job| job.name == *name);
            let job =
                job.with_context(|| format!("it has no job {name:?}: is it another plan's?"))?;
            let state = state_named(&job.state);
            let state = state.with_context(|| format!("{name}: no such state: {:?}", job.state))?;
            Ok(state.has_ended())
        };
        let ended: Vec<bool> = self.peer.jobs.iter().map(ended).collect::<Result<_>>()?;
        for ((name, known), ended) in self.peer.jobs.iter().zip(&self.jobs).zip(ended) {
            let now = if ended { ENDED } else { GOES_ON };
            if known.swap(now, Ordering::Relaxed) != now && ended {
                info!(
                    node = self.peer.node,
                    job = name,
                    "has ended on another node"
                );
            }
        }
        Ok(())
    }
}

/// Of [`View`](crate::admin::View), what is asked for.
#[derive(Deserialize)]
struct State {
    shares: Option<Shares>,
}

#[derive(Deserialize)]
struct Shares {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    name: String,
    state: String,
}

async fn state(url: &str, tls: &TlsConnector) -> Result<String> {
    let uri: Uri = url.parse()?;
    let authority = uri.authority().context("no host")?;
    let stream = TcpStream::connect(authority.as_str()).await?;
    if uri.scheme_str() != Some("https") {
        return get_over(stream, authority.as_str(), "/state").await;
    }
    let name = authority
        .host()
        .trim_start_matches('[')
        .trim_end_matches(']');
    let name = ServerName::try_from(name.to_owned())?;
    let stream = tls.connect(name, stream).await?;
    get_over(stream, authority.as_str(), "/state").await
}

/// Whom to believe. The error is the library's reason.
pub fn connector(trust: &Trust) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(trust.authority.as_deref().unwrap_or_default())? {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let config = match &trust.identity {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| error.to_string())?;
            let config = config.with_client_auth_cert(certificates(certificate)?, key);
            config.map_err(|error| error.to_string())?
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>();
    certificates.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
