// SPDX-License-Identifier: Apache-2.0
use std::future::Future;
use std::time::Duration;

use tokio::time::timeout;
use tracing::field::Empty;
use tracing::{Instrument, Span};
use weir_fleet::poll::PollError;
use weir_telemetry::SPANS;

use super::too_slow;

/// What is asked of whom, as a span by OpenTelemetry's conventions for HTTP clients.
pub(crate) struct Question(Span);

impl Question {
    /// `server` is an address or a URL. The query is left out: it may tell of keys.
    pub(crate) fn new(method: &str, server: &str, path: &str) -> Self {
        let path = path.split('?').next().unwrap_or_default();
        Self(tracing::info_span!(
            target: SPANS,
            parent: None,
            "question",
            otel.name = format_args!("{method} {path}"),
            otel.kind = "client",
            otel.status_code = Empty,
            http.request.method = method,
            server.address = server,
            url.path = path,
            error.type = Empty,
        ))
    }

    /// The answer, if it comes within this time.
    pub(crate) async fn answered<T>(
        self,
        limit: Duration,
        answer: impl Future<Output = Result<T, PollError>>,
    ) -> Result<T, PollError> {
        let answer = timeout(limit, answer.instrument(self.0.clone())).await;
        let answer = answer.unwrap_or_else(|_| Err(too_slow(limit)));
        if let Err(error) = &answer {
            self.0.record("otel.status_code", "ERROR");
            self.0.record("error.type", error.fault.as_str());
        }
        answer
    }
}
