// SPDX-License-Identifier: Apache-2.0
//! The hosts of a cluster from Kubernetes.
//!
//! ```text
//!  EndpointSlices of the service ── list, pages ──┐
//!           ^          └────────── watch, lines ──┴─> Slices ── read (pure) ──> Answered ──> membership
//!           └─ 410, or any failure: anew
//! ```
//!
//! As Kubernetes' own clients do (kubernetes.io/docs/reference/using-api/api-concepts): a list tells the version that it
//! is of, and a watch goes on from there until the server ends it, after [`WATCH`]; the next begins where it ended.
//! A server that has forgotten a version says 410, and all are listed again.

mod answer;
mod api;
mod read;
mod slices;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use weir_fleet::poll::PollError;

use super::discovery::{Answered, Found, Patience, Said};
use crate::client::{self, Lines};
use crate::config::{Kubernetes, Registry};
use api::{Api, Watch};
use slices::{Event, Slices};

/// So long the server goes on with one watch, and a connection that is gone without a word is noticed a little later.
const WATCH: Duration = Duration::from_secs(30);

/// Asks until nobody listens.
pub(super) async fn run(
    cluster: Arc<str>,
    settings: Arc<Kubernetes>,
    news: mpsc::Sender<Answered>,
) {
    Asker {
        cluster,
        settings,
        news,
        patience: Patience::default(),
        watch: WATCH,
    }
    .run()
    .await;
}

/// Who is there. Also tries whether a watch is allowed.
pub(super) async fn hosts(settings: &Kubernetes) -> Result<Found, PollError> {
    let api = Api::new(settings, Patience::default().answer)?;
    let slices = api.list().await?;
    api.watch(&slices.version, WATCH).await?;
    Ok(slices.read(settings))
}

/// Who asks for one cluster.
#[derive(Debug)]
struct Asker {
    cluster: Arc<str>,
    settings: Arc<Kubernetes>,
    news: mpsc::Sender<Answered>,
    patience: Patience,
    watch: Duration,
}

/// Why a conversation is over.
#[derive(Debug)]
enum End {
    /// Nobody listens any more.
    Unheard,
    /// The version to go on from is forgotten.
    Expired,
    Failed(PollError),
}

impl From<PollError> for End {
    fn from(error: PollError) -> Self {
        Self::Failed(error)
    }
}

impl Asker {
    async fn run(self) {
        let mut failures = 0;
        loop {
            let began = Instant::now();
            let Err(end) = self.follow(&mut failures).await;
            let mut pause = self.patience.aimless.saturating_sub(began.elapsed());
            match end {
                End::Unheard => return,
                End::Expired => {}
                End::Failed(error) => {
                    failures += 1;
                    pause = pause.max(self.patience.retry(failures));
                    if self.say(Err(error)).await.is_err() {
                        return;
                    }
                }
            }
            sleep(pause).await;
        }
    }

    /// Lists, and watches from there on, with the credentials of now. A watch that goes well ends a row of failures.
    async fn follow(&self, failures: &mut u32) -> Result<Infallible, End> {
        let api = Api::new(&self.settings, self.patience.answer)?;
        let mut slices = api.list().await?;
        loop {
            self.tell(&slices).await?;
            let began = Instant::now();
            self.watch(&api, &mut slices, failures).await?;
            *failures = 0;
            sleep(self.patience.aimless.saturating_sub(began.elapsed())).await;
        }
    }

    /// Until the server ends it. What has changed by then is told, however it ends: it may be long until there is more.
    async fn watch(&self, api: &Api, slices: &mut Slices, failures: &mut u32) -> Result<(), End> {
        let limit = self.watch + self.patience.answer;
        let Watch::Lines(lines) = api.watch(&slices.version, self.watch).await? else {
            return Err(End::Expired);
        };
        let mut is_news = false;
        let ended = self
            .heed(lines, (slices, &mut is_news), limit, failures)
            .await;
        if is_news {
            self.tell(slices).await?;
        }
        ended
    }

    async fn heed(
        &self,
        mut lines: Lines,
        (slices, is_news): (&mut Slices, &mut bool),
        limit: Duration,
        failures: &mut u32,
    ) -> Result<(), End> {
        let (ends, mut told) = (Instant::now() + limit, Instant::now());
        loop {
            let due = told + self.patience.between;
            if *is_news && Instant::now() >= due {
                self.tell(slices).await?;
                (told, *is_news) = (Instant::now(), false);
            }
            let until = if *is_news { due.min(ends) } else { ends };
            let line = match timeout_at(until, lines.next()).await {
                Ok(line) => line?,
                Err(_) if Instant::now() >= ends => return Err(client::too_slow(limit).into()),
                Err(_) => continue,
            };
            let Some(line) = line else {
                return Ok(());
            };
            *is_news |= match slices.take(&line)? {
                Event::Changed => true,
                Event::Same => false,
                Event::Expired => return Err(End::Expired),
            };
            *failures = 0;
        }
    }

    async fn tell(&self, slices: &Slices) -> Result<(), End> {
        self.say(Ok(slices.read(&self.settings))).await
    }

    async fn say(&self, said: Result<Found, PollError>) -> Result<(), End> {
        let news = Answered {
            cluster: self.cluster.clone(),
            registry: Registry::Kubernetes(self.settings.clone()),
            said: Said::Hosts(said),
        };
        self.news.send(news).await.map_err(|_| End::Unheard)
    }
}

#[cfg(test)]
mod tests;
