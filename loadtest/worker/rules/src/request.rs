// SPDX-License-Identifier: Apache-2.0
//! What was written: requests as they arrive, shape checked, meaning not yet.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::limits::Limits;

mod field;
pub(crate) mod object;
mod operator;
pub(crate) mod path;
mod presentation;
pub(crate) mod value;

use object::objects;
use path::Path;

pub(crate) use operator::{ActionName, FilterName, Node, Operator, WrittenAction};
pub(crate) use presentation::{As, Format, Order, Search, SortKey};

/// Why a request is refused, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRequest {
    /// The place, as `operators[0].condition[1].value`; empty for the request as a whole.
    pub path: String,
    /// What is wrong there and what would be right.
    pub reason: String,
}

impl std::error::Error for BadRequest {}

impl std::fmt::Display for BadRequest {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() {
            return out.write_str(&self.reason);
        }
        write!(out, "{}: {}", self.path, self.reason)
    }
}

/// A rule-processing request (document 001, section 3.1 and Listing 1). DESIGN.md lists its fields.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Request {
    /// Names the submitter's session in logs: at most 128 characters.
    #[serde(deserialize_with = "field::session")]
    pub session_id: String,
    /// Whose items: 1 to 128 of `[A-Za-z0-9._-]`, no `.` first. Written as text or as an integer.
    #[serde(deserialize_with = "field::project")]
    pub project_id: String,
    /// The name of its priority; what it means is the host's matter.
    #[serde(default, deserialize_with = "field::priority")]
    pub priority: Option<String>,
    /// How long it may be queued, evaluated and streamed.
    #[serde(default)]
    pub timeouts: Timeouts,
    #[serde(default)]
    pub(crate) shared_operators: Vec<Operator>,
    #[serde(default)]
    pub(crate) operators: Vec<Operator>,
    #[serde(default = "field::yes")]
    pub(crate) cache: bool,
    #[serde(default)]
    pub(crate) sort: Vec<SortKey>,
    #[serde(default)]
    pub(crate) search: Option<Search>,
    #[serde(default)]
    pub(crate) fields: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) omit: Vec<String>,
    #[serde(default)]
    pub(crate) format: Format,
}

/// A request to fetch a project's items into the cache (document 001, section 3.2).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Prefetch {
    /// As in [`Request`].
    #[serde(deserialize_with = "field::session")]
    pub session_id: String,
    /// As in [`Request`].
    #[serde(deserialize_with = "field::project")]
    pub project_id: String,
    /// As in [`Request`].
    #[serde(default, deserialize_with = "field::priority")]
    pub priority: Option<String>,
    /// As in [`Request`].
    #[serde(default)]
    pub timeouts: Timeouts,
}

/// How long a request may stay in a state before it is aborted: over 0, at most an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, remote = "Self")]
pub struct Timeouts {
    /// Until its first joblet starts: `queue_seconds`, 15 unless told.
    #[serde(rename = "queue_seconds", deserialize_with = "field::seconds")]
    pub queue: Duration,
    /// Until its result is ready: `evaluate_seconds`, 120 unless told.
    #[serde(rename = "evaluate_seconds", deserialize_with = "field::seconds")]
    pub evaluate: Duration,
    /// Until its result is sent: `stream_seconds`, 300 unless told.
    #[serde(rename = "stream_seconds", deserialize_with = "field::seconds")]
    pub stream: Duration,
}

impl Default for Timeouts {
    /// The values of Listing 1 of document 001.
    fn default() -> Self {
        Self {
            queue: Duration::from_secs(15),
            evaluate: Duration::from_secs(120),
            stream: Duration::from_secs(300),
        }
    }
}

objects!(Request, Prefetch, Timeouts);

impl Request {
    /// Reads a request and counts its parts.
    ///
    /// # Errors
    /// The path and the reason; for a body that is not JSON in UTF-8, its line and column.
    pub fn parse(body: &[u8], limits: &Limits) -> Result<Self, BadRequest> {
        let request: Self = read(body)?;
        operator::count(&request, limits)?;
        request.check_lists(limits)?;
        Ok(request)
    }

    fn check_lists(&self, limits: &Limits) -> Result<(), BadRequest> {
        let root = Path::Root;
        at_most(&root.key("sort"), self.sort.len(), limits.sort_keys)?;
        at_most(&root.key("omit"), self.omit.len(), limits.list_length)?;
        let fields = self.fields.as_ref().map_or(0, Vec::len);
        at_most(&root.key("fields"), fields, limits.columns)?;
        let searched = self
            .search
            .as_ref()
            .and_then(|search| search.fields.as_ref());
        let at = root.key("search");
        at_most(
            &at.key("fields"),
            searched.map_or(0, Vec::len),
            limits.list_length,
        )
    }
}

impl Prefetch {
    /// Reads a prefetch request.
    ///
    /// # Errors
    /// As [`Request::parse`].
    pub fn parse(body: &[u8], _limits: &Limits) -> Result<Self, BadRequest> {
        read(body)
    }
}

/// A list has too many entries.
pub(crate) fn at_most(path: &Path<'_>, entries: usize, limit: usize) -> Result<(), BadRequest> {
    if entries > limit {
        return Err(path.refuse(format!(
            "has {entries} entries, at most {limit} are allowed"
        )));
    }
    Ok(())
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, BadRequest> {
    let text = std::str::from_utf8(body).map_err(|error| not_text(body, error.valid_up_to()))?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let (path, cause) = (path::inner(error.path()), error.inner());
        if cause.is_data() {
            return BadRequest {
                path,
                reason: path::without_position(cause),
            };
        }
        not_json(cause)
    })?;
    reader.end().map_err(|error| not_json(&error))?;
    Ok(read)
}

fn not_json(error: &serde_json::Error) -> BadRequest {
    let (line, column, reason) = (error.line(), error.column(), path::without_position(error));
    BadRequest {
        path: String::new(),
        reason: format!("not JSON, line {line}, column {column}: {reason}"),
    }
}

fn not_text(body: &[u8], valid: usize) -> BadRequest {
    let before = &body[..valid];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = valid
        - before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1)
        + 1;
    BadRequest {
        path: String::new(),
        reason: format!("not UTF-8, line {line}, column {column}: send JSON in UTF-8"),
    }
}
