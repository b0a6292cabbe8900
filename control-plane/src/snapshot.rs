// SPDX-License-Identifier: Apache-2.0
//! What is pushed, and what the proxies say to it: the seam between the state and the xDS server.
//!
//! The state's owner publishes an immutable [`Snapshot`] through a `tokio::sync::watch`; the xDS
//! server holds receivers, compares versions per resource name and sends what differs. What its
//! clients answer comes back as [`ClientEvent`]s.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};

/// Everything that is pushed at one moment. Clones share the resources.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Type URL → resource name → resource.
    pub resources: BTreeMap<&'static str, Arc<BTreeMap<String, Resource>>>,
}

impl Snapshot {
    /// The resources of one type, if there are any.
    pub fn of_type(&self, type_url: &str) -> Option<&Arc<BTreeMap<String, Resource>>> {
        self.resources.get(type_url)
    }

    /// One resource, if it is known.
    pub fn get(&self, type_url: &str, name: &str) -> Option<&Resource> {
        let resource = self.resources.get(type_url)?.get(name);
        resource.filter(|resource| !resource.is_unknown())
    }
}

/// One resource as it travels. Two resources of one name are equal if their versions are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// `"<epoch hex>.<version>"` for weir.v1 types.
    pub version: Arc<str>,
    /// The encoded message, without its `Any`.
    pub body: Bytes,
}

impl Resource {
    /// Stands for one that exists and is not known yet: nothing is said of it, so that whoever has one from an
    /// earlier process keeps it.
    pub fn unknown() -> Self {
        Self {
            version: "".into(),
            body: Bytes::new(),
        }
    }

    /// Whether nothing may be said of it.
    pub fn is_unknown(&self) -> bool {
        self.version.is_empty()
    }
}

/// Numbers the streams of this process, so that the end of an old stream of a proxy is not taken
/// for the end of its new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// What a discovery stream tells back. Sent with `try_send`: a full channel loses news for
/// `/tables`, never a table.
#[derive(Clone, Debug)]
pub enum ClientEvent {
    /// The first request of a stream has come.
    Connected {
        /// The stream.
        stream: StreamId,
        /// `Node.id` of its first request.
        proxy: Arc<str>,
        /// Where it comes from, if known.
        peer: Option<SocketAddr>,
        /// What its certificate names.
        identity: Option<Arc<str>>,
        /// The first request's type is of weir.v1: the filter speaks, not Envoy itself.
        weir: bool,
    },
    /// A response was accepted.
    Acked {
        /// The stream.
        stream: StreamId,
        /// `Node.id`.
        proxy: Arc<str>,
        /// Type of the resources.
        type_url: Arc<str>,
        /// Nonce of the response.
        nonce: Arc<str>,
        /// Name and version of each resource in the response.
        versions: Vec<(String, Arc<str>)>,
        /// Names that the response removed.
        removed: Vec<String>,
    },
    /// A response was refused; the proxy keeps what it had.
    Nacked {
        /// The stream.
        stream: StreamId,
        /// `Node.id`.
        proxy: Arc<str>,
        /// Type of the resources.
        type_url: Arc<str>,
        /// Nonce of the response.
        nonce: Arc<str>,
        /// `error_detail.message`, cut to 1,024 bytes.
        reason: String,
        /// Name and version of each resource in the response.
        versions: Vec<(String, Arc<str>)>,
    },
    /// The stream has ended.
    Disconnected {
        /// The stream.
        stream: StreamId,
        /// `Node.id`.
        proxy: Arc<str>,
        /// Why: "client closed", "superseded", "shutdown", a transport error.
        reason: String,
    },
}

/// The two ends that a discovery server is given.
#[derive(Clone, Debug)]
pub struct Feed {
    /// The newest snapshot.
    pub snapshots: watch::Receiver<Arc<Snapshot>>,
    /// Where events go.
    pub events: mpsc::Sender<ClientEvent>,
}
