// SPDX-License-Identifier: Apache-2.0
//! A request, as a line of one log or another tells it.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use weir_filter::orca::Spent;
use weir_policy::KeyHash;

use super::{access, receipt};

#[derive(Debug)]
pub(super) struct Entry {
    /// Microseconds since 1970.
    pub(super) came: u64,
    /// Receipts alone name it.
    pub(super) cluster: Option<String>,
    /// None: whose log it is.
    pub(super) caller: Option<String>,
    pub(super) key: Option<Name>,
    pub(super) user: Option<Name>,
    pub(super) important: bool,
    /// Of the answer; 0: there was none.
    pub(super) status: u16,
    pub(super) duration_ms: u32,
    pub(super) took: Option<Took>,
    /// As the host says.
    pub(super) cost: Option<Spent>,
}

/// What the host took that answered.
#[derive(Debug)]
pub(super) struct Took {
    pub(super) host: String,
    /// From the request's coming to its beginning there.
    pub(super) before_us: u64,
    pub(super) us: u64,
}

/// Of a key or user.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Name {
    Clear(String),
    /// As [`Self::shown`] makes it.
    Hash(String),
}

impl Name {
    pub(super) fn shown(self, keep_names: bool) -> String {
        match self {
            Self::Clear(name) if !keep_names => format!("{:016x}", KeyHash::of(name.as_bytes()).0),
            Self::Clear(name) | Self::Hash(name) => name,
        }
    }
}

/// Of a class: whether it is of the upper half.
pub(super) fn is_important(class: u8) -> bool {
    class < 16
}

/// Which kind of line it is.
#[derive(Deserialize)]
struct Kind {
    ended_unix_ms: Option<IgnoredAny>,
}

impl Entry {
    /// # Errors
    /// The field, and why.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        match serde_json::from_str(line) {
            Ok(Kind {
                ended_unix_ms: Some(_),
            }) => receipt::parse(line),
            _ => access::parse(line),
        }
    }
}

/// A line of JSON.
///
/// # Errors
/// The field, and why.
pub(super) fn read<T: DeserializeOwned>(line: &str) -> Result<T, String> {
    let json = &mut serde_json::Deserializer::from_str(line);
    serde_path_to_error::deserialize(json).map_err(|error| {
        let field = error.path().to_string();
        match field.as_str() {
            "." => error.inner().to_string(),
            _ => format!("{field}: {}", error.inner()),
        }
    })
}
