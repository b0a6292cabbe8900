// SPDX-License-Identifier: Apache-2.0
//! `POST /v1/completions`.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::failure::Failure;
use super::{App, number};
use crate::key::Key;
use crate::load::{Load, ORCA_HEADER};
use crate::prompt::Prompt;
use crate::request_log::Line;
use crate::sequence::{Sequence, Spent};

/// OpenAI's default.
const MAX_TOKENS: u64 = 16;
/// Longest key, in bytes; Weir's other hosts have the same limit.
const MAX_KEY_BYTES: usize = 4096;

/// What of a completion request matters here; other fields are of no concern.
#[derive(Debug, Deserialize)]
struct Request<'a> {
    model: Cow<'a, str>,
    #[serde(borrow)]
    prompt: Cow<'a, str>,
    max_tokens: Option<u64>,
    #[serde(default)]
    stream: bool,
}

pub(super) async fn complete(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Failure> {
    let body = body.map_err(|bad| Failure::new(bad.status(), bad.body_text()))?;
    let sequence = parse(&app, &headers, &body)?;
    let asked = sequence.clone();
    let under_way = app.host.submit(sequence)?;
    let answer = under_way.answer().await;
    let (spent, load) =
        answer.map_err(|gone| Failure::new(StatusCode::SERVICE_UNAVAILABLE, gone))?;
    app.metrics.answered(asked.prompt.tokens, &spent);
    if let Some(log) = &app.log {
        let line = Line::new(
            app.address,
            &asked.prompt,
            asked.key.as_ref().map(Key::text),
            &spent,
        );
        log.write(&line).map_err(|error| {
            let reason = format!("the request log: {error}");
            Failure::new(StatusCode::INTERNAL_SERVER_ERROR, reason)
        })?;
    }
    Ok(answered(&app, &asked, &spent, &load))
}

fn parse(app: &App, headers: &HeaderMap, body: &[u8]) -> Result<Sequence, Failure> {
    let request: Request<'_> =
        serde_json::from_slice(body).map_err(|e| Failure::bad(format!("no completion: {e}")))?;
    if request.model != app.model {
        let (asked, served) = (&request.model, &app.model);
        let reason = format!("model: there is no {asked:?} here, only {served:?}");
        return Err(Failure::new(StatusCode::NOT_FOUND, reason));
    }
    if request.stream {
        return Err(Failure::bad("stream: answers are not streamed here"));
    }
    if request.prompt.is_empty() {
        return Err(Failure::bad("prompt: is empty"));
    }
    let key = match headers.get("x-weir-key").map(HeaderValue::to_str) {
        None => None,
        Some(Ok(key)) if (1..=MAX_KEY_BYTES).contains(&key.len()) => {
            Some(Key::new(key, app.key_separator))
        }
        Some(_) => {
            let reason = format!("header x-weir-key: is not 1 to {MAX_KEY_BYTES} bytes of text");
            return Err(Failure::bad(reason));
        }
    };
    Ok(Sequence {
        prompt: Prompt::of(&request.prompt, app.block_tokens),
        output_tokens: request.max_tokens.unwrap_or(MAX_TOKENS),
        key,
    })
}

fn answered(app: &App, asked: &Sequence, spent: &Spent, load: &Load) -> Response {
    let (read, written) = (asked.prompt.tokens, asked.output_tokens);
    let body = completion(&app.model, read, spent.hit_tokens, written);
    let mut response = Json(body).into_response();
    let headers = response.headers_mut();
    for (name, took) in [
        ("x-worker-wait-us", spent.wait),
        ("x-worker-fetch-us", spent.prefill),
        ("x-worker-run-us", spent.decode),
    ] {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        headers.insert(name, number(micros));
    }
    for (name, n) in [
        ("x-worker-blocks", asked.prompt.blocks.len() as u64),
        ("x-worker-hit-blocks", spent.hit_blocks as u64),
        ("x-worker-prompt-tokens", read),
        ("x-worker-hit-tokens", spent.hit_tokens),
    ] {
        headers.insert(name, number(n));
    }
    sign(app, &mut response, load);
    response
}

/// Who answered, and how loaded it is.
fn sign(app: &App, response: &mut Response, load: &Load) {
    let headers = response.headers_mut();
    for (name, text) in [
        ("x-worker-id", app.address.to_string()),
        (ORCA_HEADER, load.orca()),
    ] {
        if let Ok(text) = HeaderValue::try_from(text) {
            headers.insert(name, text);
        }
    }
}

/// No text is generated: the answer says how much there would have been.
fn completion(model: &str, read: u64, hit: u64, written: u64) -> serde_json::Value {
    serde_json::json!({
        "id": "cmpl-emulated", "object": "text_completion", "created": 0, "model": model,
        "choices": [{ "index": 0, "text": "EMULATED", "logprobs": null, "finish_reason": "length" }],
        "usage": {
            "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
            "prompt_tokens_details": { "cached_tokens": hit },
        },
    })
}
