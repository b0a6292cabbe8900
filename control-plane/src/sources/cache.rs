// SPDX-License-Identifier: Apache-2.0
//! The keys in a host's cache, as changes since the last answer.

use std::collections::HashSet;

use serde::Deserialize;
use tokio::sync::oneshot;
use weir_fleet::Update;
use weir_fleet::holdings::Changes;
use weir_fleet::poll::{Fault, PollError};
use weir_policy::KeyHash;

use super::{Target, Ticker};
use crate::config::Cache;
use crate::news::News;

/// The answer to `GET /cache?since=V&epoch=E`. Unknown fields are for later versions.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Answer {
    /// Changes within the epoch.
    pub version: u64,
    /// Drawn by each start of the host.
    pub epoch: u64,
    /// `added` is everything there is, not what is new.
    #[serde(default)]
    pub reset: bool,
    /// Keys that came.
    #[serde(default)]
    pub added: Vec<String>,
    /// Keys that went.
    #[serde(default)]
    pub removed: Vec<String>,
}

/// What was heard last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Heard {
    epoch: u64,
    version: u64,
}

/// The conversation with one host.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    heard: Option<Heard>,
}

impl Conversation {
    /// Path and query of the next question.
    pub fn question(&self, path: &str) -> String {
        match self.heard {
            Some(heard) => format!("{path}?since={}&epoch={}", heard.version, heard.epoch),
            None => path.to_owned(),
        }
    }

    /// Takes in an answer. One that cannot be true makes the next question ask for everything.
    pub fn answer(&mut self, body: &[u8], limits: &Cache) -> Result<Changes, PollError> {
        let heard = self.heard.take();
        let answer: Answer =
            serde_json::from_slice(body).map_err(|error| PollError::new(Fault::BadBody, error))?;
        check(&answer, heard, limits)?;
        self.heard = Some(Heard {
            epoch: answer.epoch,
            version: answer.version,
        });
        let salt = limits.salt.as_ref();
        let hash = |key: &String| KeyHash::under(salt, key.as_bytes());
        let hash = |keys: &[String]| keys.iter().map(hash).collect();
        Ok(Changes {
            reset: answer.reset,
            added: hash(&answer.added),
            removed: hash(&answer.removed),
        })
    }
}

/// What is wrong with an answer. How many keys the host holds is counted where they are kept (`Holdings` of
/// weir-fleet).
fn check(answer: &Answer, heard: Option<Heard>, limits: &Cache) -> Result<(), PollError> {
    let lie = |detail: String| Err(PollError::new(Fault::Inconsistent, detail));
    let (epoch, version) = (answer.epoch, answer.version);
    match heard {
        None if !answer.reset => {
            return lie("changes without reset, though everything was asked for".into());
        }
        Some(heard) if !answer.reset && heard.epoch != epoch => {
            return lie(format!(
                "changes without reset in epoch {epoch}, though since is of epoch {}",
                heard.epoch
            ));
        }
        Some(heard) if heard.epoch == epoch && version < heard.version => {
            return lie(format!(
                "version went back from {} to {version} within epoch {epoch}",
                heard.version
            ));
        }
        Some(heard)
            if !answer.reset
                && version == heard.version
                && !(answer.added.is_empty() && answer.removed.is_empty()) =>
        {
            return lie(format!("changes, but still version {version}"));
        }
        _ if answer.reset && !answer.removed.is_empty() => {
            return lie("removed keys in a reset".into());
        }
        _ => {}
    }
    let longest = answer
        .added
        .iter()
        .chain(&answer.removed)
        .map(String::len)
        .max()
        .unwrap_or(0);
    if longest > limits.max_key_bytes {
        let detail = format!(
            "a key of {longest} bytes, the limit is {}",
            limits.max_key_bytes
        );
        return Err(PollError::new(Fault::TooLarge, detail));
    }
    if !answer.removed.is_empty() {
        let removed: HashSet<&str> = answer.removed.iter().map(String::as_str).collect();
        if answer
            .added
            .iter()
            .any(|key| removed.contains(key.as_str()))
        {
            return lie("a key both added and removed".into());
        }
    }
    Ok(())
}

/// Polls until dropped.
pub async fn run(target: Target, at: String, cache: Cache) {
    let mut ticker = Ticker::new(cache.poll.interval);
    let (mut conversation, mut drops) = (Conversation::default(), 0);
    loop {
        ticker.tick().await;
        let contents = target.contents();
        if contents.drops != drops {
            // Nobody has what was told so far.
            (conversation, drops) = (Conversation::default(), contents.drops);
        }
        if contents.dropped {
            continue;
        }
        let question = conversation.question(&cache.poll.path);
        let body = target.way.fetch(&at, &question, &cache.poll).await;
        let result = body.and_then(|body| conversation.answer(&body, &cache));
        let (cluster, host) = (target.cluster.clone(), target.host.clone());
        let (refused, refusal) = oneshot::channel();
        let update = Update::Cached {
            cluster,
            host,
            drops,
            result,
        };
        if target
            .updates
            .send(News::Cached { update, refused })
            .await
            .is_err()
        {
            return;
        }
        // Nothing of it was kept: changes since then would be changes of nothing.
        if refusal.await.is_ok() {
            conversation = Conversation::default();
        }
    }
}

#[cfg(test)]
mod tests;
