// SPDX-License-Identifier: Apache-2.0
//! What is answered where a request, the store or the rules are at fault.

use axum::http::StatusCode;
use weir_feeds::StoreError;
use weir_rules::{BadRequest, EvaluateError};

use super::task::TaskError;
use crate::server::failure::Failure;

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
