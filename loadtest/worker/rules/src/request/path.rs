// SPDX-License-Identifier: Apache-2.0
//! Where in a request something stands.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::BadRequest;

/// A place in a JSON document, printed as `operators[0].condition[1].value`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    /// The member `key` of the object here.
    pub(crate) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path::Key(self, key)
    }

    /// Entry `at` of the list here.
    pub(crate) fn index(&'a self, at: usize) -> Path<'a> {
        Path::Index(self, at)
    }

    /// What stands here is refused.
    pub(crate) fn refuse(&self, reason: impl Into<String>) -> BadRequest {
        BadRequest {
            path: self.to_string(),
            reason: reason.into(),
        }
    }

    /// Reads JSON text that stands here. Errors point into it.
    pub(crate) fn read<T: DeserializeOwned>(&self, json: &RawValue) -> Result<T, BadRequest> {
        let mut reader = serde_json::Deserializer::from_str(json.get());
        serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let within = inner(error.path());
            let path = self.to_string();
            let separator = if within.is_empty() || within.starts_with('[') || path.is_empty() {
                ""
            } else {
                "."
            };
            let reason = without_position(error.inner());
            BadRequest {
                path: path + separator + &within,
                reason,
            }
        })
    }
}

/// The path that serde saw, which is `.` for the whole document.
pub(super) fn inner(path: &serde_path_to_error::Path) -> String {
    let path = path.to_string();
    if path == "." { String::new() } else { path }
}

/// A message without its line and column, which count from the start of the part that was read.
pub(super) fn without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rfind(" at line ") {
        Some(end) => message[..end].to_owned(),
        None => message,
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Key(Path::Root, key) => out.write_str(key),
            Path::Key(parent, key) => write!(out, "{parent}.{key}"),
            Path::Index(parent, at) => write!(out, "{parent}[{at}]"),
        }
    }
}
