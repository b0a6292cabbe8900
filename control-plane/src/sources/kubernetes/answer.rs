// SPDX-License-Identifier: Apache-2.0
//! What the API server answers, as far as it is read: discovery.k8s.io/v1 in Kubernetes' reference of its API.

use serde::Deserialize;

use crate::kube::objects::{Metadata, or_none};

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
