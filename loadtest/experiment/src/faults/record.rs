// SPDX-License-Identifier: Apache-2.0
//! What became of a request.

use serde::Serialize;

/// One request and its one end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// Its name, under which hosts note it.
    pub id: String,
    /// Which of the callers it was sent to.
    pub caller: usize,
    /// Whether it is important.
    pub important: bool,
    /// When it was due, milliseconds since the load began.
    pub due_ms: u64,
    /// From then to its end.
    pub took_ms: u64,
    /// How it ended.
    #[serde(flatten)]
    pub end: End,
    /// The application that answered, as it names itself.
    pub answered_by: Option<String>,
    /// The sidecar that the filter chose first.
    pub chosen: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "end", content = "why", rename_all = "snake_case")]
pub enum End {
    /// With 2xx.
    Answered,
    /// With 429.
    Refused,
    /// In any other way, which is told.
    Failed(String),
    /// The client left on purpose before it had an answer.
    Abandoned,
}
