// SPDX-License-Identifier: Apache-2.0
//! What the API server answers, as far as it is read: discovery.k8s.io/v1 in Kubernetes' reference of its API.

use serde::{Deserialize, Deserializer};

use crate::kube::Status;

/// A page of slices.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Page {
    pub(super) metadata: Metadata,
    #[serde(deserialize_with = "or_none")]
    pub(super) items: Vec<Slice>,
}

/// Of a page, a slice or a bookmark.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) name: String,
    /// What a watch goes on from. Only the server knows what is in it.
    pub(super) resource_version: String,
    /// What the next page is asked with; empty at the last.
    pub(super) r#continue: String,
}

/// A part of a service's endpoints.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Slice {
    pub(super) metadata: Metadata,
    /// `IPv4`, `IPv6` or `FQDN`.
    pub(super) address_type: String,
    #[serde(deserialize_with = "or_none")]
    pub(super) endpoints: Vec<Endpoint>,
    #[serde(deserialize_with = "or_none")]
    pub(super) ports: Vec<Port>,
}

/// One of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Endpoint {
    /// The first counts: to the others nobody gives a meaning.
    #[serde(deserialize_with = "or_none")]
    pub(super) addresses: Vec<String>,
    #[serde(deserialize_with = "or_none")]
    pub(super) conditions: Conditions,
    pub(super) hostname: Option<String>,
    pub(super) node_name: Option<String>,
    pub(super) target_ref: Option<Target>,
    pub(super) zone: Option<String>,
}

/// Absent is true, of `terminating` false.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Conditions {
    pub(super) ready: Option<bool>,
    pub(super) serving: Option<bool>,
    pub(super) terminating: Option<bool>,
}

/// Whose endpoint it is: mostly a pod's.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(default)]
pub(super) struct Target {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Port {
    /// Absent is empty.
    pub(super) name: Option<String>,
    pub(super) port: Option<u16>,
    /// Absent is TCP.
    pub(super) protocol: Option<String>,
}

/// A line of a watch.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", content = "object", rename_all = "UPPERCASE")]
pub(super) enum Event {
    Added(Slice),
    Modified(Slice),
    Deleted(Slice),
    /// Nothing has changed up to here.
    Bookmark(Marked),
    Error(Status),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Marked {
    pub(super) metadata: Metadata,
}

/// Go writes `null` for what is empty.
fn or_none<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
