// SPDX-License-Identifier: Apache-2.0
//! Everything that is configured, asked once: `weir-control --check --probe`.
//!
//! ```text
//!  registry ─ Membership ──> hosts ── jobs ──> pages, Prometheus ──> Answers ── findings (pure) ──> Report
//! ```
//!
//! The questions and their readers are those of the sources.

mod clause;
mod findings;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use weir_fleet::poll::{Fault, PollError, Source};
use weir_fleet::prometheus;

use super::cache::Conversation;
use super::consul::{self, Client, Patience};
use super::discovery::Found;
use super::dns;
use super::kubernetes;
use super::kv_events;
use super::membership::Membership;
use super::scrape::{self, Page};
use super::{Job, Key, Way, jobs};
use crate::client::{self, fetch};
use crate::config::{Cache, Config, Consul, Prometheus, Registry};

pub use findings::Report;

/// Questions at a time: a page of cache contents may take 16 MiB and more.
const AT_A_TIME: usize = 32;

/// For all of it. 40,000 hosts that answer within 40 ms take as long.
const LONGEST: Duration = Duration::from_secs(60);

/// What one cluster's registry says.
#[derive(Debug)]
struct Discovered {
    source: Source,
    hosts: Result<Found, PollError>,
    /// Only asked of a mesh.
    trust_domain: Option<Result<String, PollError>>,
}

/// What one question brought.
#[derive(Debug)]
enum Answer {
    Page(Result<Page, PollError>),
    /// How many keys.
    Cache(Result<usize, PollError>),
    /// Which of its sockets are there.
    KvEvents(Result<Vec<&'static str>, PollError>),
    Prometheus(prometheus::Answers),
}

/// By what was asked.
type Answers = BTreeMap<Key, Answer>;

/// Asks every page of every host and every server that names hosts or knows figures, each once.
pub async fn probe(config: Arc<Config>) -> Report {
    let asking = Asking::within(LONGEST);
    let mut membership = Membership::new(config.clone());
    let mut discovered = BTreeMap::new();
    for (name, said) in asking.discover(&config).await {
        if let Ok(found) = &said.hosts {
            // Its complaints are of who is left, which is said of them.
            membership.find(&name, found.clone());
        }
        discovered.insert(name, said);
    }
    let config = membership.effective();
    let answers = asking.ask_all(&config).await;
    findings::report(&config, &discovered, &answers)
}

/// The limits of all questions, and the connections that they share.
#[derive(Clone, Debug)]
struct Asking {
    client: fetch::Client,
    places: Arc<Semaphore>,
    until: Instant,
    limit: Duration,
}

impl Asking {
    fn within(limit: Duration) -> Self {
        Self {
            client: fetch::Client::new(),
            places: Arc::new(Semaphore::new(AT_A_TIME)),
            until: Instant::now() + limit,
            limit,
        }
    }

    /// The answer, unless there is no time left for it. The question's own limit holds as well.
    async fn answer<T>(
        &self,
        question: impl Future<Output = Result<T, PollError>>,
    ) -> Result<T, PollError> {
        let answer = async {
            let _place = self.places.acquire().await;
            question.await
        };
        let answer = timeout_at(self.until, answer).await;
        answer.unwrap_or_else(|_| Err(client::too_slow(self.limit)))
    }

    async fn discover(&self, config: &Config) -> BTreeMap<String, Discovered> {
        let mut questions = JoinSet::new();
        for (name, cluster) in &config.clusters {
            if let Some(registry) = cluster.registry.clone() {
                let (name, asking) = (name.clone(), self.clone());
                questions.spawn(async move { (name, asking.discovered(&registry).await) });
            }
        }
        questions.join_all().await.into_iter().collect()
    }

    async fn discovered(&self, registry: &Registry) -> Discovered {
        let (hosts, trust_domain) = match registry {
            Registry::Consul(settings) => self.of_consul(settings).await,
            Registry::Dns(settings) => (self.answer(dns::hosts(settings)).await, None),
            Registry::Kubernetes(settings) => {
                (self.answer(kubernetes::hosts(settings)).await, None)
            }
        };
        Discovered {
            source: registry.source(),
            hosts,
            trust_domain,
        }
    }

    async fn of_consul(
        &self,
        settings: &Consul,
    ) -> (Result<Found, PollError>, Option<Result<String, PollError>>) {
        let client = Client::new(settings, Patience::default()).map_err(unasked);
        let hosts = async {
            let (found, _) = consul::hosts(client.as_ref().map_err(Clone::clone)?, 0).await?;
            Ok(found)
        };
        let trust_domain = async {
            let client = client.as_ref().map_err(Clone::clone)?;
            let (name, _) = consul::trust_domain(client, 0).await?;
            Ok(name)
        };
        let hosts = self.answer(hosts).await;
        let trust_domain = match settings.question.connect {
            true => Some(self.answer(trust_domain).await),
            false => None,
        };
        (hosts, trust_domain)
    }

    async fn ask_all(&self, config: &Config) -> Answers {
        let mut questions = JoinSet::new();
        for (key, job) in jobs(config) {
            let asking = self.clone();
            questions.spawn(async move { (key, asking.ask(job).await) });
        }
        questions.join_all().await.into_iter().collect()
    }

    async fn ask(&self, job: Job) -> Answer {
        match job {
            Job::Scrape { at, with } => Answer::Page(
                self.answer(async {
                    let way = Way::to(&at, &with.poll, self.client.clone()).map_err(unasked)?;
                    scrape::page(&way, &at, &with).await
                })
                .await,
            ),
            Job::Cache { at, with } => Answer::Cache(self.answer(self.keys(&at, &with)).await),
            Job::KvEvents { at, with } => {
                Answer::KvEvents(self.answer(kv_events::sockets(at, &with)).await)
            }
            Job::Prometheus(with) => Answer::Prometheus(self.figures(&with).await),
        }
    }

    async fn keys(&self, at: &str, cache: &Cache) -> Result<usize, PollError> {
        let way = Way::to(at, &cache.poll, self.client.clone()).map_err(unasked)?;
        let mut conversation = Conversation::default();
        let question = conversation.question(&cache.poll.path);
        let body = way.fetch(at, &question, &cache.poll).await?;
        let keys = conversation.answer(&body, cache)?.added.len();
        if keys > cache.max_keys {
            let detail = format!("{keys} keys, the limit is {}", cache.max_keys);
            return Err(PollError::new(Fault::TooManyKeys, detail));
        }
        Ok(keys)
    }

    async fn figures(&self, settings: &Prometheus) -> prometheus::Answers {
        let answers = self.answer(async {
            let client = client::Client::new(&settings.server).map_err(unasked)?;
            Ok(super::prometheus::ask(&client, settings).await)
        });
        answers.await.unwrap_or_else(|error| {
            let figures = settings.queries.keys();
            figures
                .map(|figure| (*figure, Err(error.clone())))
                .collect()
        })
    }
}

/// It was tried when the configuration was checked.
fn unasked(reason: String) -> PollError {
    PollError::new(Fault::Failed, reason)
}
