// SPDX-License-Identifier: Apache-2.0
//! The plugin configuration: as written (`config/written.rs`, JSON) and as checked ([`Config`]).

mod written;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use serde::Deserialize;
use weir_body::Body;
use weir_body::value::Pointer;
use weir_policy::{KeyHash, Keys, Salt};

use crate::wanted::Wanted;

/// Where a request says what it is, unless the configuration says otherwise.
pub const KEY_HEADER: &str = "x-weir-key";
/// See [`KEY_HEADER`].
pub const PRIORITY_HEADER: &str = "x-weir-priority";
/// See [`KEY_HEADER`].
pub const USER_HEADER: &str = "x-weir-user";

/// Where a request's key is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The value of this header.
    Header(String),
    /// The path segment that stands where the template says `{key}`.
    Path(String),
    /// In its body.
    Body(BodyKey),
}

impl KeySource {
    /// The header that has it; where it comes from elsewhere, the one that hosts would read.
    pub(crate) fn header(&self) -> &str {
        match self {
            Self::Header(name) => name,
            Self::Path(_) | Self::Body(_) => KEY_HEADER,
        }
    }
}

/// What is read of a body that is JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyKey {
    pub(crate) value: BodyValue,
    /// So much of it is read at most.
    pub(crate) max_bytes: usize,
}

/// What of it makes the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BodyValue {
    /// The blocks of a language model's prompt, which have so many bytes.
    Prompt(usize),
    /// The value at a pointer.
    At(Pointer),
}

impl BodyKey {
    /// One of which nothing is read yet.
    pub(crate) fn body(&self) -> Body {
        match &self.value {
            BodyValue::Prompt(block_bytes) => Body::prompt(*block_bytes),
            BodyValue::At(pointer) => Body::value(pointer),
        }
    }
}

/// Where a request's user is found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum UserSource {
    /// The value of this header.
    Header(String),
    /// The URI in the certificate that the caller showed.
    PeerCertificate,
}

impl UserSource {
    /// As [`KeySource::header`].
    pub(crate) fn header(&self) -> &str {
        match self {
            Self::Header(name) => name,
            Self::PeerCertificate => USER_HEADER,
        }
    }
}

impl Default for UserSource {
    fn default() -> Self {
        Self::Header(USER_HEADER.into())
    }
}

/// Whose key, priority and user headers are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Everybody's.
    Any,
    /// Those of callers on the loopback addresses: the application next to the sidecar.
    Loopback,
    /// Those of callers that showed a certificate.
    Mtls,
    /// Nobody's.
    None,
}

/// What the filter does where it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Chooses hosts, in the caller's proxy.
    #[default]
    Caller,
    /// Looks after each attempt at a host, as an upstream filter of the caller's cluster.
    Attempt,
    /// Gives requests back that would wait too long, in the host's proxy.
    Host,
}

/// The checked configuration.
#[derive(Debug, PartialEq, Eq)]
pub struct Config {
    /// What it does where it stands.
    pub role: Role,
    /// Of the host behind this proxy, where that is what it looks after; never 0 there.
    pub cores: u32,
    /// Whether that one gives requests with bodies back.
    pub bodies: bool,
    /// The queuing delay that its credits head for.
    pub target_delay: Duration,
    /// Envoy's name for the cluster of weir-control; none: no tables, Envoy's fallback decides.
    pub control_cluster: Option<String>,
    /// Identity towards weir-control; none: Envoy's node id.
    pub proxy: Option<String>,
    /// The zone that it is in; none: the one that Envoy was told.
    pub zone: Option<String>,
    /// By Envoy's cluster name.
    pub clusters: BTreeMap<Vec<u8>, ClusterConfig>,
    /// That of every other cluster, which is written as `*`.
    pub others: Option<ClusterConfig>,
    /// Whether a key of theirs is in bodies, and chosen by.
    pub(crate) reads_bodies: bool,
    /// Business class by priority name; none is more important than `max_priority`.
    pub priorities: BTreeMap<String, u8>,
    /// Class of requests without a known priority.
    pub default_class: u8,
    /// Whose headers are believed.
    pub trust: Trust,
    /// Whether answers say host and reason.
    pub debug: bool,
    /// How often VMs look at shared data.
    pub tick: Duration,
    /// For how long a silent stream owner stays the owner.
    pub lease: Duration,
    /// How often weir-control hears of this proxy's requests.
    pub report_interval: Duration,
    /// Bytes that decoded cache contents take in one VM.
    pub cache_limit: usize,
}

/// How requests of one Envoy cluster are read.
#[derive(Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Whether hosts are chosen; else requests are left to Envoy.
    pub enabled: bool,
    /// weir-control's name for the cluster.
    pub table: Rc<str>,
    /// Where the key is.
    pub key: KeySource,
    /// What separates several keys in prefix order; none: it is one key, whatever it holds.
    pub key_separator: Option<u8>,
    /// What keys are hashed with; none: they have no salt.
    pub salt: Option<Salt>,
    /// The header that names the priority.
    pub priority_header: String,
    /// Where the user is.
    pub user: UserSource,
    /// Where prompts are read for its hosts, which write the answers.
    pub(crate) prefill: Option<Rc<Prefill>>,
    /// The headers that may say something of all this.
    pub(crate) wanted: Wanted,
}

/// Hosts that read prompts for those of another cluster.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Prefill {
    /// weir-control's name for them.
    pub(crate) table: Rc<str>,
    /// The header that names one of them.
    pub(crate) header: String,
    /// A prompt goes there if its host lacks more blocks of it.
    pub(crate) above_blocks: usize,
}

/// What is wrong with the configuration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ConfigError {
    #[error("plugin configuration: {}", line(.0))]
    Json(String),
    #[error("plugin configuration: {}: {}", line(field), line(reason))]
    Field { field: String, reason: String },
}

impl Config {
    /// The tables that requests are decided by, each with the cluster that names it.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (&Rc<str>, &ClusterConfig)> {
        self.all_clusters().flat_map(|cluster| {
            // Nobody but its sender sees an attempt at reading.
            let prefill = cluster.prefill.as_ref();
            let prefill = prefill.filter(|_| self.role != Role::Attempt);
            let tables = [Some(&cluster.table), prefill.map(|prefill| &prefill.table)];
            let tables = tables.into_iter().flatten();
            tables.map(move |table| (table, cluster))
        })
    }

    /// What is known of the Envoy cluster with this name.
    pub fn cluster(&self, name: &[u8]) -> Option<&ClusterConfig> {
        self.clusters.get(name).or(self.others.as_ref())
    }

    /// The cluster's configuration where the name does not matter.
    pub(crate) fn only_cluster(&self) -> Option<&ClusterConfig> {
        self.others.as_ref().filter(|_| self.clusters.is_empty())
    }

    /// Of all clusters.
    pub(crate) fn all_clusters(&self) -> impl Iterator<Item = &ClusterConfig> {
        self.clusters.values().chain(&self.others)
    }

    /// Whether keys are in bodies, which the proxy then has to show (`allow_on_headers_stop_iteration`).
    pub fn reads_bodies(&self) -> bool {
        self.reads_bodies
    }

    /// The business class of a priority's name.
    pub fn class(&self, priority: Option<&[u8]>) -> u8 {
        priority
            .and_then(|name| std::str::from_utf8(name).ok())
            .and_then(|name| self.priorities.get(name.trim()))
            .copied()
            .unwrap_or(self.default_class)
    }
}

/// Characters of a text in a refusal.
const MAX_SHOWN: usize = 600;

/// A part of one line, not for ever: names and values in it are what somebody has written.
fn line(text: &str) -> String {
    let shown = text.chars().take(MAX_SHOWN);
    shown
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn error(field: impl Into<String>, reason: impl Into<String>) -> ConfigError {
    ConfigError::Field {
        field: field.into(),
        reason: reason.into(),
    }
}

/// The segment of `path` that stands where `template` has `{key}`; none where the path is another.
pub fn key_in_path<'a>(template: &str, path: &'a [u8]) -> Option<&'a [u8]> {
    let path = path.split(|byte| *byte == b'?').next()?;
    let mut segments = path.split(|byte| *byte == b'/');
    let mut key = None;
    for wanted in template.split('/') {
        let segment = segments.next()?;
        match wanted {
            "{key}" => key = Some(segment),
            _ if wanted.as_bytes() != segment => return None,
            _ => {}
        }
    }
    // A longer path is under the template's: the key is the same.
    key.filter(|key| !key.is_empty())
}

/// The keys that a value names: itself, or where there is a separator those between; spaces around them and places
/// without one do not count.
pub fn keys(value: Option<&[u8]>, separator: Option<u8>, salt: Option<&Salt>) -> Keys {
    let hash = |name: &[u8]| KeyHash::under(salt, name);
    let (Some(list), Some(separator)) = (value, separator) else {
        return value.map(hash).into();
    };
    let names = list.split(|byte| *byte == separator);
    let names = names
        .map(<[u8]>::trim_ascii)
        .filter(|name| !name.is_empty());
    Keys::new(names.map(hash))
}

/// The keys that these names are, in prefix order.
pub(crate) fn named(names: &[Vec<u8>], salt: Option<&Salt>) -> Keys {
    Keys::of_prompt(names.iter().map(|name| KeyHash::under(salt, name)))
}

#[cfg(test)]
mod reference;

#[cfg(test)]
mod tests;
