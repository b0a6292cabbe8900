// SPDX-License-Identifier: Apache-2.0
//! `/receipts` and `/shadow`.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use weir_fleet::receipts::MOST;
use weir_fleet::view::receipt::ReceiptView;
use weir_fleet::view::shadow::{Shadow, compare};

use super::App;
use crate::news::News;

/// What of the receipts is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// Only those that came after the one with this number.
    #[serde(default)]
    after: u64,
    /// At most so many, the newest.
    limit: Option<usize>,
}

/// Of which cluster.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Of {
    cluster: String,
}

impl App {
    async fn receipts(&self, after: u64, most: usize) -> Result<Vec<ReceiptView>, Response> {
        self.ask(|answer| News::Receipts(after, most, answer)).await
    }
}

fn refused(why: &QueryRejection) -> Response {
    (StatusCode::BAD_REQUEST, format!("{}\n", why.body_text())).into_response()
}

/// `/receipts`: a line of JSON each, oldest first.
pub(super) async fn receipts(
    State(app): State<App>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    let Query(asked) = match asked {
        Ok(asked) => asked,
        Err(why) => return refused(&why),
    };
    let most = asked.limit.unwrap_or(MOST);
    let receipts = match app.receipts(asked.after, most).await {
        Ok(receipts) => receipts,
        Err(response) => return response,
    };
    // It has no map whose keys are not strings.
    let lines = receipts
        .iter()
        .map(|it| serde_json::to_string(it).unwrap_or_default() + "\n");
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    (kind, lines.collect::<String>()).into_response()
}

/// `/shadow`.
pub(super) async fn shadow(
    State(app): State<App>,
    of: Result<Query<Of>, QueryRejection>,
) -> Response {
    let Query(Of { cluster }) = match of {
        Ok(of) => of,
        Err(why) => return refused(&why),
    };
    let view = match app.view().await {
        Ok(view) => view,
        Err(response) => return response,
    };
    let Some(shown) = view.clusters.get(&cluster) else {
        let names: Vec<&str> = view.clusters.keys().map(String::as_str).collect();
        let reason = format!("cluster: no such cluster; there are {}\n", names.join(", "));
        return (StatusCode::NOT_FOUND, reason).into_response();
    };
    let receipts = match app.receipts(0, MOST).await {
        Ok(receipts) => receipts,
        Err(response) => return response,
    };
    Json(Shadow {
        mode: shown.mode.clone(),
        withdrawn: shown.withdrawn.clone(),
        ..compare(&cluster, &receipts, shown.hosts.len())
    })
    .into_response()
}
