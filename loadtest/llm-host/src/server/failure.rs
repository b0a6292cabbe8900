// SPDX-License-Identifier: Apache-2.0
//! Answers that say what went wrong, in the form of OpenAI's API.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::host::Gone;
use crate::sequence::Refused;

/// A status and its reason.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    reason: String,
}

impl Failure {
    pub(super) fn new(status: StatusCode, reason: impl ToString) -> Self {
        let reason = reason.to_string();
        Self { status, reason }
    }

    pub(super) fn bad(reason: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }

    pub(super) fn path() -> Self {
        let reason =
            "the paths are /v1/completions, /v1/chat/completions, /v1/models, /metrics and /cache";
        Self::new(StatusCode::NOT_FOUND, reason)
    }

    pub(super) fn method() -> Self {
        let reason = "completions are POSTed, all else is a GET";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, reason)
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let status = match refused {
            Refused::Full(_) => StatusCode::SERVICE_UNAVAILABLE,
            Refused::TooLong { .. } => StatusCode::BAD_REQUEST,
        };
        Self::new(status, refused)
    }
}

impl From<Gone> for Failure {
    fn from(gone: Gone) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, gone)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let kind = if self.status.is_client_error() {
            "invalid_request_error"
        } else {
            "server_error"
        };
        let code = self.status.as_u16();
        let error = serde_json::json!({ "message": self.reason, "type": kind, "code": code });
        (self.status, Json(serde_json::json!({ "error": error }))).into_response()
    }
}
