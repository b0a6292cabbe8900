// SPDX-License-Identifier: Apache-2.0
//! Questions for all objects of one kind.

use std::time::Duration;

use http::Method;
use weir_fleet::poll::{Fault, PollError};

use super::objects::{EXPIRED, Kept, Objects};
use super::{Caller, Status};
use crate::client::{Answer, Limits, Lines};
use crate::config::Access;
use crate::sources::consul::encoded;

/// A list that goes on for longer has no end.
const MAX_PAGES: usize = 1000;
/// Of a page.
const MAX_BYTES: usize = 64 << 20;
/// Of an event, which has one object: the server keeps none that is larger than 1.5 MiB in a tighter encoding.
const MAX_LINE: usize = 8 << 20;

/// Whom they are asked of.
#[derive(Debug)]
pub(crate) struct Questions {
    caller: Caller,
    /// With a query, and more to come.
    path: String,
    answer: Duration,
}

impl Questions {
    /// With the certificates of now. `path` may have a query.
    pub(crate) fn new(access: &Access, path: &str, answer: Duration) -> Result<Self, PollError> {
        let end = if path.contains('?') { '&' } else { '?' };
        Ok(Self {
            caller: Caller::new(access)?,
            path: format!("{path}{end}"),
            answer,
        })
    }

    /// All there are.
    pub(crate) async fn list<K: Kept>(&self) -> Result<Objects<K>, PollError> {
        let (mut objects, mut next) = (Objects::default(), String::new());
        for _ in 0..MAX_PAGES {
            let path = format!("{}limit={}&continue={}", self.path, K::PAGE, encoded(&next));
            let limits = self.limits(MAX_BYTES);
            let answer = self.caller.send(Method::GET, &path, None, limits).await?;
            if !answer.status.is_success() {
                return Err(refusal::<K>(&answer));
            }
            match objects.add(&answer.body)? {
                Some(page) => next = page,
                None => return Ok(objects),
            }
        }
        let detail = format!("more than {MAX_PAGES} pages");
        Err(PollError::new(Fault::TooLarge, detail))
    }

    /// What becomes of them after this version, for so long.
    pub(crate) async fn watch<K: Kept>(
        &self,
        objects: &Objects<K>,
        lasts: Duration,
    ) -> Result<Watch, PollError> {
        let path = format!(
            "{}watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
            self.path,
            encoded(&objects.version),
            lasts.as_secs().max(1)
        );
        let limits = self.limits(MAX_LINE);
        let headers = self.caller.headers().await?;
        match self.caller.http.lines(&path, headers, limits).await? {
            Ok(lines) => Ok(Watch::Lines(lines)),
            Err(answer) if answer.status.as_u16() == EXPIRED => Ok(Watch::Expired),
            Err(answer) => Err(refusal::<K>(&answer)),
        }
    }

    fn limits(&self, max_bytes: usize) -> Limits {
        let timeout = self.answer;
        Limits { timeout, max_bytes }
    }
}

fn refusal<K: Kept>(answer: &Answer) -> PollError {
    let code = answer.status.as_u16();
    Status::read(code, &answer.body).refusal(code, K::RIGHT)
}

/// What a question for changes brings.
#[derive(Debug)]
pub(crate) enum Watch {
    Lines(Lines),
    /// The version is forgotten.
    Expired,
}
