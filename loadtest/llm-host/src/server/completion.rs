// SPDX-License-Identifier: Apache-2.0
//! `POST /v1/completions` and `/v1/chat/completions`.

use std::io;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::failure::Failure;
use super::request::{Api, Asked};
use super::{App, number, prefill, stream, written};
use crate::key::Key;
use crate::load::{Load, ORCA_HEADER};
use crate::request_log::Line;
use crate::sequence::{Sequence, Spent};

type Body = Result<Bytes, BytesRejection>;

pub(super) async fn complete(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    answer(app, Api::Completions, &headers, body).await
}

pub(super) async fn chat(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    answer(app, Api::Chat, &headers, body).await
}

async fn answer(
    app: Arc<App>,
    api: Api,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let body = body.map_err(|bad| Failure::new(bad.status(), bad.body_text()))?;
    let mut asked = Asked::parse(&app, api, headers, &body)?;
    if let Some(reader) = prefill::reader(&app, headers)? {
        prefill::ask(reader, api, &body).await?;
        asked.sequence.read_by = Some(reader);
    }
    let sequence = asked.sequence.clone();
    let mut under_way = app.host.submit(sequence.clone())?;
    let (mut response, spent, load) = if asked.stream {
        let (spent, load) = under_way.first_token().await?;
        let response = stream::answer(Arc::clone(&app), asked, under_way, spent);
        (response, spent, load)
    } else {
        let (spent, load) = under_way.answer().await?;
        note(&app, &sequence, &spent).map_err(|error| {
            let reason = format!("the request log: {error}");
            Failure::new(StatusCode::INTERNAL_SERVER_ERROR, reason)
        })?;
        let body = written::whole(&app.model, &asked, &spent);
        (Json(body).into_response(), spent, load)
    };
    tell(&mut response, &sequence, &spent);
    sign(&app, &mut response, &load);
    Ok(response)
}

/// A request has been answered in whole.
pub(super) fn note(app: &App, asked: &Sequence, spent: &Spent) -> io::Result<()> {
    let Sequence {
        prompt,
        key,
        read_by,
        ..
    } = asked;
    app.metrics.answered(prompt.tokens, spent);
    match &app.log {
        Some(log) => log.write(&Line::new(
            app.address,
            prompt,
            (key.as_ref().map(Key::text), *read_by),
            spent,
        )),
        None => Ok(()),
    }
}

/// What it took, or, of a stream, will take.
fn tell(response: &mut Response, asked: &Sequence, spent: &Spent) {
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
        ("x-worker-prompt-tokens", asked.prompt.tokens),
        ("x-worker-hit-tokens", spent.hit_tokens),
    ] {
        headers.insert(name, number(n));
    }
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
