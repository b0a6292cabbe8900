// SPDX-License-Identifier: Apache-2.0
//! One question to Consul's HTTP API.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use weir_fleet::poll::{Fault, PollError};

use super::{Patience, cut};
use crate::client::{self, Limits};
use crate::config::Consul;

/// An instance with its checks takes 1 to 2 KiB, so more hosts fit than a table may have.
const MAX_BYTES: usize = 64 << 20;
/// What stands for itself in a URL (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

pub(crate) fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}

/// Asks one Consul. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Client {
    http: client::Client,
    consul: Consul,
    patience: Patience,
}

/// What Consul says.
#[derive(Clone, Debug)]
pub struct Answer {
    /// JSON, if all is well.
    pub body: Bytes,
    /// `X-Consul-Index`: what the next question waits to be exceeded. Absent where nothing may be waited for.
    pub index: Option<u64>,
    /// The token may not read all that was asked for.
    pub filtered: bool,
}

impl Client {
    /// The error is the library's reason, which the check of the configuration has heard first.
    pub fn new(consul: &Consul, patience: Patience) -> Result<Self, String> {
        Ok(Self {
            http: client::Client::new(&consul.server)?,
            consul: consul.clone(),
            patience,
        })
    }

    /// What is asked for.
    pub fn consul(&self) -> &Consul {
        &self.consul
    }

    /// How long it is waited for.
    pub fn patience(&self) -> &Patience {
        &self.patience
    }

    /// Asks. With an index the answer comes when there is a newer one, or after the time that a query may wait.
    pub async fn ask(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        index: u64,
    ) -> Result<Answer, PollError> {
        let mut url: String = path
            .iter()
            .map(|part| format!("/{}", encoded(part)))
            .collect();
        let mut separator = '?';
        let mut add = |name: &str, value: &str| {
            url.push_str(&format!("{separator}{name}={}", encoded(value)));
            separator = '&';
        };
        query.iter().for_each(|(name, value)| add(name, value));
        let mut timeout = self.patience.answer;
        if index > 0 {
            let wait = self.consul.wait;
            add("index", &index.to_string());
            add("wait", &format!("{}ms", wait.as_millis()));
            // Consul adds up to a sixteenth, so that queries do not end at once.
            timeout += wait + wait / 16;
        }
        let max_bytes = MAX_BYTES;
        let limits = Limits { timeout, max_bytes };
        let answer = self.http.get(&url, self.headers(), limits).await?;
        if let StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED = answer.status {
            return Err(self.denied(&answer));
        }
        let number = |name| answer.headers.get(name)?.to_str().ok()?.parse().ok();
        let index = number("X-Consul-Index");
        let filtered = answer.headers.get("X-Consul-Results-Filtered-By-ACLs");
        let filtered = filtered.is_some_and(|value| value == "true");
        Ok(Answer {
            index,
            filtered,
            body: answer.good()?,
        })
    }

    fn headers(&self) -> HeaderMap {
        let token = self.consul.token.iter();
        let name = http::HeaderName::from_static("x-consul-token");
        token.map(|token| (name.clone(), token.0.clone())).collect()
    }

    fn denied(&self, answer: &client::Answer) -> PollError {
        let said = String::from_utf8_lossy(&answer.body);
        let said = cut(said.trim());
        let token = match &self.consul.token {
            Some(_) => "consul.token_file names a token that is unknown or may not read this",
            None => "consul.token_file is not set",
        };
        let status = answer.status.as_u16();
        let detail = format!("{status}: {said}: {token}; service:read and node:read are needed");
        PollError::new(Fault::Denied, detail)
    }
}
