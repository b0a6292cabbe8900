// SPDX-License-Identifier: Apache-2.0
//! Weir's share of an entry, put into what stands there and taken out of it.

mod defaults;
mod intentions;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};
use thiserror::Error;

use crate::normal::normal;

/// Kinds of entries that Weir has a share in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Kind {
    /// Protocol, extensions of the sidecar, overrides of upstreams.
    #[serde(rename = "service-defaults")]
    Defaults,
    /// Who may reach the service.
    #[serde(rename = "service-intentions")]
    Intentions,
}

/// As in the API's paths.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Defaults => "service-defaults",
            Self::Intentions => "service-intentions",
        })
    }
}

/// Weir's share of one entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// Of the entry.
    pub kind: Kind,
    /// Of the entry: a service.
    pub name: String,
    /// By which the service is reached, where it matters.
    pub(crate) protocol: Option<&'static str>,
    /// The service's sidecars choose.
    pub(crate) calls: bool,
    /// In their order, after all others.
    pub(crate) extensions: Vec<Value>,
    /// By upstream.
    pub clusters: BTreeMap<String, Value>,
    /// Who may reach the service.
    pub(crate) sources: BTreeSet<String>,
    /// Others than this share's callers reach the service by Weir's word: [`Self::without`] leaves its protocol.
    pub reached: bool,
}

/// What comes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// There was none.
    Created,
    /// There was one.
    Changed,
    /// Nothing is to be written.
    Same,
    /// Nothing is left of it.
    Removed,
}

/// An entry after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// What comes of it.
    pub outcome: Outcome,
    /// The whole entry; none where it is removed, or there is none.
    pub entry: Option<Value>,
    /// What changes, in words.
    pub changes: Vec<String>,
}

/// Why an entry cannot be changed without loss.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}", reasons.join("; "))]
pub struct Refused {
    /// In words, with what to do.
    pub reasons: Vec<String>,
}

impl Share {
    pub(crate) fn new(kind: Kind, name: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            protocol: None,
            calls: false,
            extensions: Vec::new(),
            clusters: BTreeMap::new(),
            sources: BTreeSet::new(),
            reached: false,
        }
    }

    /// The entry as it is to be, by what Consul says of it now. `adopt`: parts of Weir's that a hand has written or
    /// changed are replaced too.
    ///
    /// # Errors
    /// Something there would be lost, or says otherwise.
    pub fn with(&self, stands: Option<&Value>, adopt: bool) -> Result<Written, Refused> {
        let mut change = Change::of(self, stands, adopt);
        match self.kind {
            Kind::Defaults => defaults::put(self, &mut change),
            Kind::Intentions => intentions::put(self, &mut change),
        }
        change.done(stands)
    }

    /// The entry without this share, as far as [`Self::with`] has written it.
    ///
    /// # Errors
    /// Something of it was changed since, or stands beside it, and that would be lost.
    pub fn without(&self, stands: Option<&Value>, adopt: bool) -> Result<Written, Refused> {
        let Some(stands) = stands else {
            return Ok(Written {
                outcome: Outcome::Same,
                entry: None,
                changes: Vec::new(),
            });
        };
        let mut change = Change::of(self, Some(stands), adopt);
        let emptied = match self.kind {
            Kind::Defaults => defaults::take(self, &mut change),
            Kind::Intentions => intentions::take(self, &mut change),
        };
        let mut written = change.done(Some(stands))?;
        if written.outcome == Outcome::Changed && emptied {
            written.outcome = Outcome::Removed;
            written.entry = None;
        }
        Ok(written)
    }

    /// Whether others than this share's callers still reach the service by Weir's word, so that what they need
    /// stays.
    #[must_use]
    pub fn serves_others(intentions: Option<&Value>) -> bool {
        intentions.is_some_and(intentions::has_ours)
    }
}

/// An entry that changes.
struct Change {
    entry: Value,
    changes: Vec<String>,
    refused: Vec<String>,
    adopt: bool,
}

impl Change {
    fn of(share: &Share, stands: Option<&Value>, adopt: bool) -> Self {
        let new = || json!({"Kind": share.kind, "Name": share.name});
        let mut entry = stands.cloned().unwrap_or_else(new);
        if let Some(fields) = entry.as_object_mut() {
            fields.retain(|name, _| !["CreateIndex", "ModifyIndex", "Hash"].contains(&&**name));
        }
        Self {
            entry,
            changes: Vec::new(),
            refused: Vec::new(),
            adopt,
        }
    }

    fn changes(&mut self, said: impl Into<String>) {
        self.changes.push(said.into());
    }

    fn refuses(&mut self, said: impl Into<String>) {
        self.refused.push(said.into());
    }

    /// A list of the entry, taken out of it.
    fn take_list(&mut self, field: &str) -> Vec<Value> {
        match self.entry.get_mut(field).map(Value::take) {
            Some(Value::Array(all)) => all,
            _ => Vec::new(),
        }
    }

    fn meta(&self, name: &str) -> Option<&str> {
        self.entry["Meta"][name].as_str()
    }

    fn note(&mut self, name: &str, value: Option<String>) {
        let meta = self.entry["Meta"].as_object_mut();
        match (meta, value) {
            (Some(meta), Some(value)) => drop(meta.insert(name.to_owned(), value.into())),
            (Some(meta), None) => drop(meta.remove(name)),
            (None, Some(value)) => self.entry["Meta"] = json!({name: value}),
            (None, None) => (),
        }
    }

    fn done(self, stands: Option<&Value>) -> Result<Written, Refused> {
        let Self {
            entry,
            changes,
            refused,
            ..
        } = self;
        if !refused.is_empty() {
            return Err(Refused { reasons: refused });
        }
        let outcome = match stands {
            None => Outcome::Created,
            Some(stands) if bare(stands) == bare(&entry) => Outcome::Same,
            Some(_) => Outcome::Changed,
        };
        let changes = match outcome {
            Outcome::Same => Vec::new(),
            _ => changes,
        };
        Ok(Written {
            outcome,
            entry: Some(entry),
            changes,
        })
    }
}

/// What an entry says.
fn bare(entry: &Value) -> Value {
    let mut entry = normal(entry);
    if let Some(fields) = entry.as_object_mut() {
        fields.retain(|name, _| !["CreateIndex", "ModifyIndex", "Hash"].contains(&&**name));
    }
    entry
}

/// Whether two entries say the same: Consul answers with more empty fields than it was told.
#[must_use]
pub fn says_the_same(one: &Value, other: &Value) -> bool {
    bare(one) == bare(other)
}

#[cfg(test)]
mod tests;
