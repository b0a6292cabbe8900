// SPDX-License-Identifier: Apache-2.0
//! One question to Consul's HTTP API: token, TLS, time-out, limit on the body.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use reqwest::{Certificate, Identity, Url, redirect};

use super::{Patience, cut};
use crate::config::{Consul, with_sources};
use crate::sources::fetch::failure;
use crate::sources::{Fault, PollError};

/// An instance with its checks takes 1 to 2 KiB, so more hosts fit than a table may have.
const MAX_BYTES: usize = 64 << 20;
/// Consul says in a line why it refuses.
const MAX_REASON_BYTES: usize = 1024;

/// Asks one Consul. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
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
    /// The error is the library's reason: certificates that do not fit.
    pub fn new(consul: &Consul) -> Result<Self, String> {
        Self::with_patience(consul, Patience::default())
    }

    /// The same, with other times to wait.
    pub fn with_patience(consul: &Consul, patience: Patience) -> Result<Self, String> {
        let _chosen_already = rustls::crypto::ring::default_provider().install_default();
        let reason = |error: reqwest::Error| with_sources(&error);
        let mut builder = reqwest::Client::builder()
            // The address is the one that is configured, whatever the environment says.
            .no_proxy()
            .redirect(redirect::Policy::none())
            .connect_timeout(patience.answer)
            .tcp_keepalive(patience.answer);
        // Without encryption no authority is needed, and a container may have none.
        if let Some(ca) = &consul.tls.ca {
            builder = builder.tls_certs_only(Certificate::from_pem_bundle(ca).map_err(reason)?);
        } else if consul.question.address.scheme() == "http" {
            builder = builder.tls_certs_only([]);
        }
        if let Some(pem) = &consul.tls.identity {
            builder = builder.identity(Identity::from_pem(pem).map_err(reason)?);
        }
        Ok(Self {
            http: builder.build().map_err(reason)?,
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
        let mut url = self.consul.question.address.clone();
        append(&mut url, path);
        url.query_pairs_mut().extend_pairs(query);
        let mut limit = self.patience.answer;
        if index > 0 {
            let wait = self.consul.wait;
            url.query_pairs_mut()
                .append_pair("index", &index.to_string())
                .append_pair("wait", &format!("{}ms", wait.as_millis()));
            // Consul adds up to a sixteenth, so that queries do not end at once.
            limit += wait + wait / 16;
        }
        tokio::time::timeout(limit, self.get(url))
            .await
            .unwrap_or_else(|_| Err(late(limit)))
    }

    async fn get(&self, url: Url) -> Result<Answer, PollError> {
        let mut request = self.http.get(url);
        if let Some(token) = &self.consul.token {
            request = request.header("X-Consul-Token", token.0.clone());
        }
        let answer = request.send().await.map_err(|error| failure(&error))?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        if status != StatusCode::OK {
            // What it says is worth having, not waiting for.
            let reason = body(answer, MAX_REASON_BYTES).await.unwrap_or_default();
            return Err(refused(
                status,
                &String::from_utf8_lossy(&reason),
                &self.consul,
            ));
        }
        Ok(Answer {
            body: body(answer, MAX_BYTES).await?,
            index: number(&headers, "X-Consul-Index"),
            filtered: headers
                .get("X-Consul-Results-Filtered-By-ACLs")
                .is_some_and(|v| v == "true"),
        })
    }
}

/// Behind whatever path a gateway in front of Consul wants.
fn append(url: &mut Url, path: &[&str]) {
    // Addresses that have no path were refused when they were checked.
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

fn late(limit: Duration) -> PollError {
    let limit = crate::config::show_duration(limit);
    PollError::new(
        Fault::TimedOut,
        format!("no complete answer within {limit}"),
    )
}

fn refused(status: StatusCode, said: &str, consul: &Consul) -> PollError {
    let said = cut(said.trim()).replace(char::is_control, " ");
    match status {
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => {
            let token = match &consul.token {
                Some(_) => {
                    "consul.token_file names a token that may not read this or is none of its"
                }
                None => "consul.token_file is not set",
            };
            let detail = format!(
                "{} {said}: {token}; service:read and node:read are needed",
                status.as_u16()
            );
            PollError::new(Fault::Denied, detail)
        }
        _ => PollError::new(Fault::BadStatus, format!("{} {said}", status.as_u16())),
    }
}

async fn body(mut answer: reqwest::Response, most: usize) -> Result<Bytes, PollError> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| failure(&error))? {
        if bytes.len() + chunk.len() > most {
            let limit = crate::config::show_size(most);
            let detail = format!(
                "{} bytes or more, the limit is {limit}",
                bytes.len() + chunk.len()
            );
            return Err(PollError::new(Fault::TooLarge, detail));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.freeze())
}
