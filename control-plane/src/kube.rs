// SPDX-License-Identifier: Apache-2.0
//! The API server of Kubernetes: where it is, who asks, its refusals, and how objects of one kind are followed.

mod access;
pub(crate) mod follower;
pub(crate) mod objects;
pub(crate) mod questions;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use weir_fleet::poll::{Fault, PollError};

use crate::client::{Answer, Client, Limits};
use crate::config::{Access, Bearer};
use crate::sources::discovery::cut;

/// One who asks.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) http: Client,
    bearer: Option<Bearer>,
}

impl Caller {
    /// With the certificates of now.
    pub(crate) fn new(access: &Access) -> Result<Self, PollError> {
        let api = access::api_server(access)?.into_owned();
        let http = Client::new(&api.server).map_err(|why| PollError::new(Fault::Failed, why))?;
        Ok(Self {
            http,
            bearer: api.bearer,
        })
    }

    /// The answer to a question with this body, if any, and what it is.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, &Value)>,
        limits: Limits,
    ) -> Result<Answer, PollError> {
        let mut headers = self.headers().await?;
        let mut bytes = Bytes::new();
        if let Some((kind, object)) = body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            bytes = object.to_string().into();
        }
        self.http.send(method, path, headers, bytes, limits).await
    }

    /// Of a question, with the token of now.
    pub(crate) async fn headers(&self) -> Result<HeaderMap, PollError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(bearer) = &self.bearer {
            headers.insert(AUTHORIZATION, access::token(bearer).await?);
        }
        Ok(headers)
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    pub(crate) code: u16,
    pub(crate) message: String,
}

impl Status {
    /// Of an answer that is no success.
    pub(crate) fn read(code: u16, body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_else(|_| Self {
            code,
            message: String::from_utf8_lossy(body).into_owned(),
        })
    }

    /// In the server's words. `right` is what a Role must allow.
    pub(crate) fn refusal(&self, code: u16, right: &str) -> PollError {
        let message = cut(self.message.trim());
        match code {
            401 => PollError::new(
                Fault::Denied,
                format!("401: {message}: the token is unknown or has run out"),
            ),
            403 => PollError::new(
                Fault::Denied,
                format!("403: {message}: a Role with {right} is needed"),
            ),
            _ => PollError::new(Fault::BadStatus, format!("{code}: {message}")),
        }
    }
}

/// An object, or why it is none.
pub(crate) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, PollError> {
    let reader = &mut serde_json::Deserializer::from_slice(body);
    serde_path_to_error::deserialize(reader)
        .map_err(|error| PollError::new(Fault::BadBody, cut(&error.to_string())))
}
