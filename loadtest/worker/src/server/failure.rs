// SPDX-License-Identifier: Apache-2.0
//! Answers of one line that say what went wrong.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use weir_feeds::StoreError;
use weir_rules::{BadRequest, EvaluateError};

use crate::task::TaskError;

/// A status and its reason.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) status: StatusCode,
    pub(super) reason: String,
    /// Whether the data was replaced meanwhile, so that another attempt may do.
    pub(super) changed: bool,
}

impl Failure {
    pub(super) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.into(),
            changed: false,
        }
    }

    pub(super) fn unavailable(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, reason)
    }

    pub(super) fn gone() -> Self {
        Self::unavailable("the host has stopped")
    }

    pub(super) fn stopped() -> Self {
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

impl From<BadRequest> for Failure {
    fn from(bad: BadRequest) -> Self {
        Self::new(StatusCode::BAD_REQUEST, bad.to_string())
    }
}

impl From<&StoreError> for Failure {
    fn from(error: &StoreError) -> Self {
        let status = match error {
            StoreError::BadProjectName { .. } => StatusCode::BAD_REQUEST,
            StoreError::UnknownProject { .. } => StatusCode::NOT_FOUND,
            StoreError::TooLarge { .. } | StoreError::BadFeed { .. } => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            StoreError::Changed { .. } | StoreError::Stopped { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            StoreError::BadUrl { .. }
            | StoreError::Unreachable { .. }
            | StoreError::Denied { .. } => StatusCode::BAD_GATEWAY,
        };
        Self {
            changed: matches!(error, StoreError::Changed { .. }),
            ..Self::new(status, error.to_string())
        }
    }
}

impl From<&TaskError> for Failure {
    fn from(error: &TaskError) -> Self {
        match error {
            TaskError::Store(error) => Self::from(&**error),
            TaskError::Evaluate(error) => {
                let status = match **error {
                    EvaluateError::Stopped | EvaluateError::ClientGone => {
                        StatusCode::SERVICE_UNAVAILABLE
                    }
                    _ => StatusCode::UNPROCESSABLE_ENTITY,
                };
                Self::new(status, error.to_string())
            }
            TaskError::Defect => Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    }
}
