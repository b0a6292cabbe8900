// SPDX-License-Identifier: Apache-2.0
//! A job as a span of its caller's trace, by OpenTelemetry's conventions for HTTP servers.

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use tracing::field::Empty;
use tracing::{Instrument, info_span};
use weir_telemetry::{SPANS, continues};

/// Where its time went, as its answer tells it.
const SPENT: [(&str, &str); 3] = [
    ("x-worker-wait-us", "weir.wait_us"),
    ("x-worker-fetch-us", "weir.fetch_us"),
    ("x-worker-run-us", "weir.run_us"),
];

/// Answers within a span.
pub(super) async fn job(request: Request, next: Next) -> Response {
    let span = info_span!(
        target: SPANS,
        parent: None,
        "job",
        otel.kind = "server",
        http.request.method = request.method().as_str(),
        url.path = request.uri().path(),
        http.response.status_code = Empty,
        weir.cache = Empty,
        weir.wait_us = Empty,
        weir.fetch_us = Empty,
        weir.run_us = Empty,
    );
    if span.is_disabled() {
        return next.run(request).await;
    }
    continues(&span, request.headers());
    let answer = next.run(request).instrument(span.clone()).await;
    span.record("http.response.status_code", answer.status().as_u16());
    if let Some(cache) = text(answer.headers(), "x-worker-cache") {
        span.record("weir.cache", cache);
    }
    for (header, field) in SPENT {
        let micros = text(answer.headers(), header).and_then(|text| text.parse::<u64>().ok());
        if let Some(micros) = micros {
            span.record(field, micros);
        }
    }
    answer
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
