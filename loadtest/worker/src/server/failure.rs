// SPDX-License-Identifier: Apache-2.0
//! Answers of one line that say what went wrong.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// A status and its reason.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) reason: String,
    /// Whether the data was replaced meanwhile, so that another attempt may do.
    #[cfg_attr(
        not(feature = "rules"),
        expect(dead_code, reason = "emulated data stay as they are")
    )]
    pub(crate) changed: bool,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.into(),
            changed: false,
        }
    }

    pub(crate) fn unavailable(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, reason)
    }

    pub(crate) fn gone() -> Self {
        Self::unavailable("the host has stopped")
    }

    pub(crate) fn stopped() -> Self {
        Self::unavailable("cancelled: the host is shutting down")
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = (self.status, format!("{}\n", self.reason)).into_response();
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            let post = HeaderValue::from_static("POST");
            response.headers_mut().insert(header::ALLOW, post);
        }
        response
    }
}
