// SPDX-License-Identifier: Apache-2.0
//! A client for tests.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

/// Status and body of a GET; `None` if nobody answered.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let request = Request::get(format!("http://{address}{path}"));
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let answer = client
        .request(request.body(Empty::new()).unwrap())
        .await
        .ok()?;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.ok()?.to_bytes();
    Some((status, String::from_utf8_lossy(&body).into_owned()))
}
