// SPDX-License-Identifier: Apache-2.0
//! The hosts of a cluster from Consul.
//!
//! ```text
//!  /v1/health/connect/<service> ─ client (token, TLS, limits) ─ read (pure) ─┐
//!            ^  index: waits until there is news                             ├─> Answered ──> membership
//!  /v1/connect/ca/roots ─────────────────────────────────── trust domain ────┘
//! ```
//!
//! Blocking queries, as Consul's documentation describes them (developer.hashicorp.com/consul/api-docs/features/blocking):
//! a question names the index of the last answer and is answered when there is a newer one, or after its time.
//! An index that is 0 or goes back means that Consul has begun anew, and so does the next question.

mod answer;
mod client;
mod questions;
mod read;

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;

use weir_fleet::poll::{PollError, Source};

use super::discovery::{Answered, Said, cut, short};
use crate::config::{Consul, Registry};

pub(super) use questions::{hosts, trust_domain};

pub(crate) use client::encoded;
pub use client::{Answer, Client};
pub use questions::read_roots;
pub use read::read;

pub use super::discovery::Patience;

/// Asks until nobody listens.
pub async fn run(cluster: Arc<str>, settings: Arc<Consul>, news: mpsc::Sender<Answered>) {
    // It was built once when the configuration was checked.
    match Client::new(&settings, Patience::default()) {
        Ok(client) => {
            Asker {
                cluster,
                settings,
                client,
                news,
            }
            .run()
            .await
        }
        Err(error) => tracing::error!(error, "no client for Consul"),
    }
}

/// Who asks for one cluster.
#[derive(Debug)]
struct Asker {
    cluster: Arc<str>,
    settings: Arc<Consul>,
    client: Client,
    news: mpsc::Sender<Answered>,
}

impl Asker {
    async fn run(self) {
        let roots = async {
            if self.settings.question.connect {
                self.follow(Source::ConsulRoots).await;
            }
        };
        tokio::join!(self.follow(Source::Consul), roots);
    }

    /// Asks again and again, until nobody listens.
    async fn follow(&self, source: Source) {
        let patience = self.client.patience();
        let (mut index, mut failures) = (0, 0);
        loop {
            let began = Instant::now();
            let (said, newest) = self.ask(source, index).await;
            let pause = match newest {
                Some(newest) => {
                    (index, failures) = (following(index, newest), 0);
                    let pause = if newest == 0 {
                        patience.aimless
                    } else {
                        patience.between
                    };
                    pause.saturating_sub(began.elapsed())
                }
                None => {
                    // Whoever answers next may have begun anew: a question for what is newer than this would wait.
                    (index, failures) = (0, failures + 1);
                    patience.retry(failures)
                }
            };
            let news = Answered {
                cluster: self.cluster.clone(),
                registry: Registry::Consul(self.settings.clone()),
                said,
            };
            if self.news.send(news).await.is_err() {
                return;
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// What Consul says, and the index of that; none where it fails.
    async fn ask(&self, source: Source, index: u64) -> (Said, Option<u64>) {
        match source {
            Source::ConsulRoots => {
                let (said, newest) = apart(trust_domain(&self.client, index).await);
                (Said::TrustDomain(said), newest)
            }
            _ => {
                let (said, newest) = apart(hosts(&self.client, index).await);
                (Said::Hosts(said), newest)
            }
        }
    }
}

fn apart<T>(result: Result<(T, u64), PollError>) -> (Result<T, PollError>, Option<u64>) {
    match result {
        Ok((said, newest)) => (Ok(said), Some(newest)),
        Err(error) => (Err(error), None),
    }
}

/// The index to ask with after an answer to a question with `asked`.
fn following(asked: u64, answered: u64) -> u64 {
    if answered < asked { 0 } else { answered }
}

#[cfg(test)]
mod tests;
