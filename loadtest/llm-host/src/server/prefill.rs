// SPDX-License-Identifier: Apache-2.0
//! A prompt that another host reads for this one: the request goes there first, for one token, and its answer is waited for.
//! llm-d's sidecar beside an engine that writes does the same (llm-d-routing-sidecar, internal/proxy/connector_nixlv2.go),
//! and has the engine fetch the KV cache by what that answer says. That takes no time here.

use std::net::SocketAddr;

use axum::http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value};
use tokio::net::TcpStream;

use super::App;
use super::failure::Failure;
use super::request::Api;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The host that a request names to read its prompt, if this one has prompts read elsewhere.
pub(super) fn reader(app: &App, headers: &HeaderMap) -> Result<Option<SocketAddr>, Failure> {
    let Some(name) = &app.prefill_header else {
        return Ok(None);
    };
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let address = value.to_str().ok().and_then(|text| text.parse().ok());
    let refused = || Failure::bad(format!("header {name}: is not the address of a host"));
    address.map(Some).ok_or_else(refused)
}

/// Has it read the prompt. Whoever gives up waiting takes the request back.
pub(super) async fn ask(reader: SocketAddr, api: Api, body: &[u8]) -> Result<(), Failure> {
    let failed = |reason| {
        let reason = format!("the prompt was not read by {reader}: {reason}");
        Failure::new(StatusCode::BAD_GATEWAY, reason)
    };
    let body = for_one_token(body).map_err(|error| failed(error.to_string()))?;
    match answer(reader, api, body).await {
        Ok(status) if status.is_success() => Ok(()),
        Ok(status) => Err(failed(status.to_string())),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// The request as it is, but for what is asked to be written.
fn for_one_token(body: &[u8]) -> serde_json::Result<Vec<u8>> {
    let mut request: Map<String, Value> = serde_json::from_slice(body)?;
    for name in ["stream", "stream_options", "max_completion_tokens"] {
        request.remove(name);
    }
    request.insert("max_tokens".to_owned(), Value::from(1));
    serde_json::to_vec(&request)
}

async fn answer(reader: SocketAddr, api: Api, body: Vec<u8>) -> Result<StatusCode, Error> {
    let stream = TcpStream::connect(reader).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::post(api.path())
        .header("host", reader.to_string())
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))?;
    let answer = async move {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        answer.into_body().collect().await?;
        Ok(status)
    };
    tokio::select! {
        biased;
        answer = answer => answer,
        ended = connection => Err(ended.err().map_or("it closed the connection".into(), Error::from)),
    }
}
