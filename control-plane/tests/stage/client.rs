// SPDX-License-Identifier: Apache-2.0
//! A caller.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// Headers of a request.
pub(crate) type Headers = Vec<(&'static str, String)>;

/// An answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// The number of its request, counted from 0.
    pub(crate) number: usize,
    /// Requests of its load that were sent when it was answered.
    pub(crate) sent: usize,
    /// None: the connection failed.
    pub(crate) status: Option<u16>,
    pub(crate) host: Option<SocketAddr>,
    pub(crate) reason: String,
    pub(crate) retry_after: Option<u64>,
    pub(crate) grpc_status: Option<u32>,
    pub(crate) body: String,
}

/// Of so many, one after another, all come to one of two workers once in 30,000 times.
const CONNECTIONS: u32 = 16;

#[derive(Clone)]
pub(crate) struct Caller {
    address: SocketAddr,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Caller {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { address, client }
    }

    /// Whether requests are decided by a table that names a host, be it one without such a path; in each of the
    /// sidecar's workers, of which one gets all of a connection's requests.
    pub(crate) async fn is_decided_by_tables(egress: SocketAddr) -> bool {
        for _ in 0..CONNECTIONS {
            let answer = Self::new(egress).send("/", &keyed(0)).await;
            let by_none = ["", "no_table", "no_host", "stale_table"].contains(&&*answer.reason);
            if !matches!(answer.status, Some(200 | 404)) || by_none {
                return false;
            }
        }
        true
    }

    pub(crate) async fn send(&self, path: &str, headers: &Headers) -> Answer {
        self.ask(Method::GET, path, headers, Bytes::new()).await
    }

    pub(crate) async fn post(&self, headers: &Headers, body: impl Into<Bytes>) -> Answer {
        self.ask(Method::POST, "/", headers, body.into()).await
    }

    async fn ask(&self, method: Method, path: &str, headers: &Headers, body: Bytes) -> Answer {
        let request = Request::builder().method(method);
        let mut request = request.uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(body)).unwrap();
        match self.client.request(request).await {
            Ok(answer) => Answer::read(answer).await,
            Err(_) => Answer::default(),
        }
    }
}

impl Answer {
    pub(crate) async fn read(answer: Response<Incoming>) -> Self {
        let header = |name: &str| answer.headers().get(name)?.to_str().ok();
        let mut received = Self {
            number: 0,
            sent: 0,
            status: Some(answer.status().as_u16()),
            host: header("x-weir-host").and_then(|host| host.parse().ok()),
            reason: header("x-weir-reason").unwrap_or_default().to_owned(),
            retry_after: header("retry-after").and_then(|seconds| seconds.parse().ok()),
            grpc_status: header("grpc-status").and_then(|status| status.parse().ok()),
            body: String::new(),
        };
        match answer.into_body().collect().await {
            Ok(body) => received.body = String::from_utf8_lossy(&body.to_bytes()).into_owned(),
            Err(_) => received.status = None,
        }
        received
    }
}

/// A request for one of twenty keys.
pub(crate) fn keyed(number: usize) -> Headers {
    vec![("x-weir-key", format!("k{}", number % 20))]
}
