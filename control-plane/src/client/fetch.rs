// SPDX-License-Identifier: Apache-2.0
//! One GET with a limit on the body, enforced while it is read.

use std::io;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use weir_fleet::poll::{Fault, PollError};

/// A pool of connections. Clones share it.
#[derive(Clone, Debug)]
pub struct Client(hyper_util::client::legacy::Client<HttpConnector, Empty<Bytes>>);

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    /// No connection yet.
    pub fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            // One connection a host and source is all that ever works at once.
            .pool_max_idle_per_host(2)
            .build(connector);
        Self(client)
    }

    /// The body of a 200 answer.
    pub async fn get(
        &self,
        address: &str,
        path: &str,
        max_bytes: usize,
    ) -> Result<Bytes, PollError> {
        let uri: http::Uri = format!("http://{address}{path}")
            .parse()
            .map_err(|error| PollError::new(Fault::Failed, error))?;
        let answer = self.0.get(uri).await.map_err(|error| failure(&error))?;
        let too_large = |bytes| too_large(bytes, max_bytes);
        if !answer.status().is_success() {
            return Err(PollError::new(Fault::BadStatus, answer.status().as_u16()));
        }
        let mut body = answer.into_body();
        let announced = hyper::body::Body::size_hint(&body).lower();
        if announced > max_bytes as u64 {
            return Err(too_large(announced));
        }
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| failure(&error))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if bytes.len() + data.len() > max_bytes {
                return Err(too_large((bytes.len() + data.len()) as u64));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes.freeze())
    }
}

/// A body of so many bytes, or more.
pub(super) fn too_large(bytes: u64, max_bytes: usize) -> PollError {
    let limit = weir_settings::show_size(max_bytes);
    PollError::new(
        Fault::TooLarge,
        format!("{bytes} bytes or more, the limit is {limit}"),
    )
}

/// Looks for the operating system's word on it.
pub(super) fn failure(error: &(dyn std::error::Error + 'static)) -> PollError {
    let mut detail = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(io) = inner.downcast_ref::<io::Error>()
            && let io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe = io.kind()
        {
            return PollError::new(Fault::Refused, io);
        }
        detail = inner.to_string();
        source = inner.source();
    }
    PollError::new(Fault::Failed, detail)
}
