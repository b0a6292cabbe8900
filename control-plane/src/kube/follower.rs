// SPDX-License-Identifier: Apache-2.0
//! Objects of one kind, listed and then watched for as long as somebody wants to know.
//!
//! ```text
//!  list, pages ──┐
//!  watch, lines ─┴─> Objects ── tell ──> news
//!     └─ 410, or any failure: anew
//! ```
//!
//! As Kubernetes' own clients do (kubernetes.io/docs/reference/using-api/api-concepts): a list tells the version that it
//! is of, and a watch goes on from there until the server ends it, after [`WATCH`]; the next begins where it ended.
//! A server that has forgotten a version says 410, and all are listed again.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use weir_fleet::poll::PollError;

use super::objects::{Event, Kept, Objects};
use super::questions::{Questions, Watch};
use crate::client::{self, Lines};
use crate::config::Access;
use crate::sources::discovery::Patience;

/// So long the server goes on with one watch, and a connection that is gone without a word is noticed a little later.
pub(crate) const WATCH: Duration = Duration::from_secs(30);

/// Who follows them.
pub(crate) struct Follower<Tell, News> {
    pub(crate) access: Access,
    /// Where they are; may have a query.
    pub(crate) path: String,
    pub(crate) patience: Patience,
    /// How long one watch lasts.
    pub(crate) watch: Duration,
    /// What is said of them, or of why they are not known.
    pub(crate) tell: Tell,
    pub(crate) news: mpsc::Sender<News>,
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

impl<Tell, News> Follower<Tell, News> {
    /// Until nobody listens.
    pub(crate) async fn run<K: Kept>(self)
    where
        Tell: Fn(Result<&K, PollError>) -> News,
    {
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
    async fn follow<K: Kept>(&self, failures: &mut u32) -> Result<Infallible, End>
    where
        Tell: Fn(Result<&K, PollError>) -> News,
    {
        let questions = Questions::new(&self.access, &self.path, self.patience.answer)?;
        let mut objects = questions.list().await?;
        loop {
            self.say(Ok(&objects.kept)).await?;
            let began = Instant::now();
            self.watch(&questions, &mut objects, failures).await?;
            *failures = 0;
            sleep(self.patience.aimless.saturating_sub(began.elapsed())).await;
        }
    }

    /// Until the server ends it. What has changed by then is told, however it ends: it may be long until there is more.
    async fn watch<K: Kept>(
        &self,
        questions: &Questions,
        objects: &mut Objects<K>,
        failures: &mut u32,
    ) -> Result<(), End>
    where
        Tell: Fn(Result<&K, PollError>) -> News,
    {
        let limit = self.watch + self.patience.answer;
        let Watch::Lines(lines) = questions.watch(objects, self.watch).await? else {
            return Err(End::Expired);
        };
        let mut is_news = false;
        let ended = self
            .heed(lines, (objects, &mut is_news), limit, failures)
            .await;
        if is_news {
            self.say(Ok(&objects.kept)).await?;
        }
        ended
    }

    async fn heed<K: Kept>(
        &self,
        mut lines: Lines,
        (objects, is_news): (&mut Objects<K>, &mut bool),
        limit: Duration,
        failures: &mut u32,
    ) -> Result<(), End>
    where
        Tell: Fn(Result<&K, PollError>) -> News,
    {
        let (ends, mut told) = (Instant::now() + limit, Instant::now());
        loop {
            let due = told + self.patience.between;
            if *is_news && Instant::now() >= due {
                self.say(Ok(&objects.kept)).await?;
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
            *is_news |= match objects.take(&line)? {
                Event::Changed => true,
                Event::Same => false,
                Event::Expired => return Err(End::Expired),
            };
            *failures = 0;
        }
    }

    async fn say<K>(&self, said: Result<&K, PollError>) -> Result<(), End>
    where
        Tell: Fn(Result<&K, PollError>) -> News,
    {
        let news = (self.tell)(said);
        self.news.send(news).await.map_err(|_| End::Unheard)
    }
}
