// SPDX-License-Identifier: Apache-2.0
//! Questions to the API server.

use std::time::Duration;

use weir_fleet::poll::{Fault, PollError};

use super::slices::{EXPIRED, RIGHT, Slices};
use crate::client::{Answer, Limits, Lines};
use crate::config::Kubernetes;
use crate::kube::{Caller, Status};
use crate::sources::consul::encoded;

/// Slices of a page: a hundred endpoints each, which whoever writes them may make a thousand, of half a KiB.
const PAGE: usize = 100;
/// A list that goes on for longer has no end.
const MAX_PAGES: usize = 1000;
/// Of a page.
const MAX_BYTES: usize = 64 << 20;
/// Of an event, which has one slice: the server keeps none that is larger than 1.5 MiB in a tighter encoding.
const MAX_LINE: usize = 8 << 20;

/// Whom one service's slices are asked of.
#[derive(Debug)]
pub(super) struct Api {
    caller: Caller,
    /// With the selector, and more to come.
    path: String,
    answer: Duration,
}

impl Api {
    /// With the certificates of now.
    pub(super) fn new(settings: &Kubernetes, answer: Duration) -> Result<Self, PollError> {
        let Kubernetes {
            namespace, service, ..
        } = settings;
        let selector = format!("kubernetes.io/service-name={service}");
        let path = format!(
            "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector={}",
            encoded(&selector)
        );
        Ok(Self {
            caller: Caller::new(&settings.access)?,
            path,
            answer,
        })
    }

    /// All there are.
    pub(super) async fn list(&self) -> Result<Slices, PollError> {
        let (mut slices, mut next) = (Slices::default(), String::new());
        for _ in 0..MAX_PAGES {
            let path = format!("{}&limit={PAGE}&continue={}", self.path, encoded(&next));
            let limits = self.limits(MAX_BYTES);
            let answer = self
                .caller
                .http
                .get(&path, self.caller.headers().await?, limits)
                .await?;
            if !answer.status.is_success() {
                return Err(refusal(&answer));
            }
            match slices.add(&answer.body)? {
                Some(page) => next = page,
                None => return Ok(slices),
            }
        }
        let detail = format!("more than {MAX_PAGES} pages");
        Err(PollError::new(Fault::TooLarge, detail))
    }

    /// What becomes of them after this version, for so long.
    pub(super) async fn watch(&self, version: &str, lasts: Duration) -> Result<Watch, PollError> {
        let path = format!(
            "{}&watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
            self.path,
            encoded(version),
            lasts.as_secs().max(1)
        );
        let limits = self.limits(MAX_LINE);
        let headers = self.caller.headers().await?;
        match self.caller.http.lines(&path, headers, limits).await? {
            Ok(lines) => Ok(Watch::Lines(lines)),
            Err(answer) if answer.status.as_u16() == EXPIRED => Ok(Watch::Expired),
            Err(answer) => Err(refusal(&answer)),
        }
    }

    fn limits(&self, max_bytes: usize) -> Limits {
        let timeout = self.answer;
        Limits { timeout, max_bytes }
    }
}

fn refusal(answer: &Answer) -> PollError {
    let code = answer.status.as_u16();
    Status::read(code, &answer.body).refusal(code, RIGHT)
}

/// What a question for changes brings.
#[derive(Debug)]
pub(super) enum Watch {
    Lines(Lines),
    /// The version is forgotten.
    Expired,
}
