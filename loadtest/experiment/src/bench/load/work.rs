// SPDX-License-Identifier: Apache-2.0
//! What is sent, over and over.

use std::cell::Cell;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::Full;

const AUTHORITY: &str = "bench";

/// A request, and whose answer to it is right.
pub(crate) struct Shot {
    request: Request<Full<Bytes>>,
    /// With scheme and authority in the address, and no `host`.
    http2_request: Request<Full<Bytes>>,
    pub(super) answered_by: AnsweredBy,
}

/// Hosts tell their address (`x-host`), and what they were named by (`x-named`).
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AnsweredBy {
    Any,
    This(HeaderValue),
    /// This one, unless whoever chose had reasons: these answers are counted.
    Preferably(HeaderValue),
    /// Whom the destination header named first, as it came to the host.
    TheNamed,
}

impl Shot {
    /// A GET, or a POST where there is a body (JSON).
    pub(crate) fn new(
        path: &str,
        headers: &[(&'static str, &str)],
        body: Option<Bytes>,
        answered_by: AnsweredBy,
    ) -> Result<Self> {
        let mut request = Request::new(Full::new(body.clone().unwrap_or_default()));
        *request.uri_mut() = path.parse::<Uri>().context("the path")?;
        let fields = request.headers_mut();
        fields.insert(HOST, HeaderValue::from_static(AUTHORITY));
        for (name, value) in headers {
            fields.insert(*name, value.parse().context("a header")?);
        }
        if body.is_some() {
            fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.method_mut() = Method::POST;
        }
        let mut http2_request = request.clone();
        *http2_request.uri_mut() = format!("http://{AUTHORITY}{path}").parse()?;
        http2_request.headers_mut().remove(HOST);
        Ok(Self {
            request,
            http2_request,
            answered_by,
        })
    }

    pub(super) fn request(&self) -> Request<Full<Bytes>> {
        self.request.clone()
    }

    pub(super) fn http2_request(&self) -> Request<Full<Bytes>> {
        self.http2_request.clone()
    }
}

/// Requests that are sent in turns.
pub(crate) struct Work {
    shots: Vec<Shot>,
    next: Cell<usize>,
}

impl Work {
    pub(crate) fn new(shots: Vec<Shot>) -> Self {
        Self {
            shots,
            next: Cell::new(0),
        }
    }

    pub(super) fn next(&self) -> &Shot {
        let next = self.next.get();
        self.next.set((next + 1) % self.shots.len());
        &self.shots[next]
    }
}
