// SPDX-License-Identifier: Apache-2.0
//! The lock in Consul: sessions and one key (developer.hashicorp.com/consul/api-docs/session, .../kv).

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use weir_fleet::poll::{Fault, PollError};

use super::{ANSWER, Holder, Key, MOST_INDEX, Reading};
use crate::client::{Answer, Client, Limits};
use crate::config::replicas::Session as Settings;
use crate::config::show_duration;

/// A name, an address and a few numbers.
const MAX_BYTES: usize = 64 << 10;
/// How long a question waits for news. Short: one that a network has swallowed is asked again then.
const WAIT: Duration = Duration::from_secs(10);
/// Characters of a session's id in a complaint; Consul's have 36.
const MAX_SESSION_SHOWN: usize = 64;

/// The key's value.
#[derive(Debug, Serialize, Deserialize)]
struct Value {
    name: String,
    address: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    lock_index: u64,
    #[serde(default)]
    session: Option<String>,
    value: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Session {
    #[serde(rename = "ID")]
    id: String,
}

/// Asks for it.
#[derive(Debug)]
pub(in crate::leader) struct Consul {
    client: Client,
    headers: HeaderMap,
    /// `/v1/kv/...`
    path: String,
    key: String,
    name: String,
    value: Bytes,
    ttl: Duration,
}

impl Consul {
    pub(super) fn new(settings: &Settings, name: &str, address: &str) -> Result<Self, String> {
        let token = settings.token.iter();
        let header = HeaderName::from_static("x-consul-token");
        let value = Value {
            name: name.to_owned(),
            address: address.to_owned(),
        };
        let parts = settings.key.split('/');
        let parts: String = parts
            .map(|part| format!("/{}", crate::sources::consul::encoded(part)))
            .collect();
        Ok(Self {
            client: Client::new(&settings.consul)?,
            headers: token
                .map(|token| (header.clone(), token.0.clone()))
                .collect(),
            path: format!("/v1/kv{parts}"),
            key: settings.key.clone(),
            name: name.to_owned(),
            value: json!(value).to_string().into(),
            ttl: settings.ttl,
        })
    }

    /// A new session. It ends when it was not renewed for its time, and frees what it holds, at once.
    pub(super) async fn open(&self) -> Result<String, PollError> {
        let session = json!({
            "Name": format!("weir-control {}", self.name),
            "TTL": show_duration(self.ttl),
            "Behavior": "release",
            "LockDelay": "0s",
        });
        let answer = self.put("/v1/session/create", session.to_string()).await?;
        let session: Session = parsed(&answer.good()?)?;
        Ok(session.id)
    }

    /// Whether the session is still alive.
    pub(super) async fn renew(&self, session: &str) -> Result<bool, PollError> {
        let path = format!("/v1/session/renew/{session}");
        let answer = self.put(&path, "").await?;
        match answer.status {
            StatusCode::NOT_FOUND => Ok(false),
            _ => answer.good().map(|_| true),
        }
    }

    pub(super) async fn destroy(&self, session: &str) -> Result<(), PollError> {
        let path = format!("/v1/session/destroy/{session}");
        self.put(&path, "").await?.good().map(|_| ())
    }

    /// Whether the key is the session's now.
    pub(super) async fn acquire(&self, session: &str) -> Result<bool, PollError> {
        let path = format!("{}?acquire={session}", self.path);
        let answer = self.put(&path, self.value.clone()).await?;
        Ok(answer.good()?.trim_ascii() == b"true")
    }

    /// What the key says, once that is newer than `index`.
    pub(super) async fn read(&self, index: u64) -> Result<Reading, PollError> {
        let mut path = self.path.clone();
        let mut timeout = ANSWER;
        if index > 0 {
            path = format!("{path}?index={index}&wait={}s", WAIT.as_secs());
            // Consul adds up to a sixteenth, so that queries do not end at once.
            timeout += WAIT + WAIT / 16;
        }
        let limits = Limits {
            timeout,
            max_bytes: MAX_BYTES,
        };
        let answer = self.client.get(&path, self.headers.clone(), limits).await?;
        let answer = self.allowed(answer)?;
        let told = answer.headers.get("X-Consul-Index");
        let told = told.and_then(|told| told.to_str().ok()?.parse().ok());
        let newest: u64 = told.unwrap_or(0);
        let key = match answer.status {
            StatusCode::NOT_FOUND => Key::Free,
            _ => read(&answer.good()?, &self.key)?,
        };
        // An index that goes back means that Consul has begun anew.
        let index = if newest < index { 0 } else { newest };
        Ok(Reading { index, key })
    }

    async fn put(&self, path: &str, body: impl Into<Bytes>) -> Result<Answer, PollError> {
        let limits = Limits {
            timeout: ANSWER,
            max_bytes: MAX_BYTES,
        };
        let headers = self.headers.clone();
        let asked = self
            .client
            .send(Method::PUT, path, headers, body.into(), limits);
        self.allowed(asked.await?)
    }

    fn allowed(&self, answer: Answer) -> Result<Answer, PollError> {
        if !matches!(
            answer.status,
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED
        ) {
            return Ok(answer);
        }
        let said = answer.good().err().map(|error| error.detail);
        let detail = format!(
            "{}: replicas.consul.token_file must name a token with key:write of {:?} and session:write",
            said.unwrap_or_default(),
            self.key
        );
        Err(PollError::new(Fault::Denied, detail))
    }
}

/// What Consul's answer for the key `name` says.
pub fn read(body: &[u8], name: &str) -> Result<Key, PollError> {
    let entries: Vec<Entry> = parsed(body)?;
    let Some(entry) = entries.into_iter().next() else {
        return Ok(Key::Free);
    };
    let value = entry.value.unwrap_or_default();
    let value = BASE64_STANDARD.decode(value).unwrap_or_default();
    let written = serde_json::from_slice::<Value>(&value).ok();
    let key = match (entry.session.filter(|held| !held.is_empty()), written) {
        (None, Some(_)) => Key::Free,
        (None, None) if value.is_empty() => Key::Free,
        (None, None) => Key::Strange(format!(
            "the key {name:?} has a value that no replica wrote; it is not overwritten: name another one in replicas.key"
        )),
        (Some(session), Some(Value { name, address })) => Key::Held(Holder {
            name,
            address,
            // Were it ever so large, the epoch could not tell it.
            index: entry.lock_index.min(MOST_INDEX),
            session,
        }),
        (Some(session), None) => Key::Strange(format!(
            "the key {name:?} is held by session {:?}, which is no replica's: name another one in replicas.key",
            session.chars().take(MAX_SESSION_SHOWN).collect::<String>()
        )),
    };
    Ok(key)
}

fn parsed<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, PollError> {
    serde_json::from_slice(body).map_err(|error| PollError::new(Fault::BadBody, error))
}
