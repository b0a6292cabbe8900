// SPDX-License-Identifier: Apache-2.0
//! All subscriptions of one stream and the order in which they are served: pure, no I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::config::core::v3::node::UserAgentVersionType;
use envoy_types::pb::envoy::service::discovery::v3 as discovery;
use tonic::Status;
use weir_fleet::snapshot::Snapshot;
use weir_tables::HOST_TABLE_TYPE;

use super::codec::Response;
use super::room::Full;
use super::subscription::{Subscription, Verdict};
use super::types;

/// Types that one stream may ask for. Envoy knows about a dozen.
pub(super) const MAX_TYPES: usize = 32;

/// Bytes that the URL of a type may be long.
const MAX_TYPE_URL_BYTES: usize = 256;

/// Bytes that a node's id may have: it becomes a key and a label.
const MAX_NODE_ID_BYTES: usize = 512;
/// Of a client's version.
const MAX_VERSION_CHARS: usize = 64;

/// The server's side of one stream.
///
/// Envoy's own types are sent make-before-break: clusters and endpoints, then listeners and
/// routes, which wait until the former are accepted; clusters that are gone are withdrawn last,
/// when nothing routes to them any more.
#[derive(Debug)]
pub struct Session {
    /// `Node.id` of the first request.
    pub proxy: Arc<str>,
    /// The filter speaks, not Envoy itself.
    pub weir: bool,
    /// The filter's version, or Envoy's, where the first request tells it.
    pub version: Option<Arc<str>>,
    subscriptions: BTreeMap<Rank, Subscription>,
}

/// Why a stream must end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Refusal {
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Full(#[from] Full),
}

impl Refusal {
    fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid(reason.into())
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid(reason) => Self::invalid_argument(reason),
            Refusal::Full(full) => Self::resource_exhausted(full.to_string()),
        }
    }
}

/// Types in the order of sending.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(usize, Arc<str>);

impl Rank {
    fn of(type_url: &str) -> Self {
        let listed = types::ORDER.iter().position(|listed| *listed == type_url);
        Self(listed.unwrap_or(types::ORDER.len()), type_url.into())
    }
}

/// The version that a client tells, cut, and without characters that no version has: it is a stranger's text.
fn version(node: &Node) -> Option<Arc<str>> {
    let told = match node.user_agent_version_type.as_ref()? {
        UserAgentVersionType::UserAgentVersion(text) => text.clone(),
        UserAgentVersionType::UserAgentBuildVersion(build) => {
            let number = build.version.as_ref()?;
            format!(
                "{}.{}.{}",
                number.major_number, number.minor_number, number.patch
            )
        }
    };
    let shown = told.chars().take(MAX_VERSION_CHARS);
    let shown: String = shown
        .map(|c| if c.is_ascii_graphic() { c } else { '?' })
        .collect();
    (!shown.is_empty()).then(|| shown.into())
}

impl Session {
    /// Starts with a stream's first request, which must say whose it is.
    pub fn open(first: &discovery::DeltaDiscoveryRequest) -> Result<Self, Refusal> {
        let id = first.node.as_ref().map_or("", |node| node.id.as_str());
        if id.is_empty() {
            return Err(Refusal::invalid("the first request has no node.id"));
        }
        if id.len() > MAX_NODE_ID_BYTES {
            let reason = format!("node.id is over {MAX_NODE_ID_BYTES} bytes");
            return Err(Refusal::Invalid(reason));
        }
        // It is shown in logs and terminals.
        if id.contains(char::is_control) {
            return Err(Refusal::invalid("node.id has a control character"));
        }
        Ok(Self {
            proxy: id.into(),
            weir: types::is_weir(&first.type_url),
            version: first.node.as_ref().and_then(version),
            subscriptions: BTreeMap::new(),
        })
    }

    /// Takes in a request, unless the names of all types would take more than `room` bytes then. An error
    /// ends the stream.
    pub fn on_request(
        &mut self,
        request: &discovery::DeltaDiscoveryRequest,
        room: usize,
    ) -> Result<Option<Verdict>, Refusal> {
        if request.type_url.is_empty() {
            return Err(Refusal::invalid("a request has no type_url"));
        }
        if request.type_url.len() > MAX_TYPE_URL_BYTES {
            let reason = format!("type_url is over {MAX_TYPE_URL_BYTES} bytes");
            return Err(Refusal::Invalid(reason));
        }
        // Which stream of a proxy replaces which is decided once, by the first request.
        if types::is_weir(&request.type_url) != self.weir {
            return Err(Refusal::invalid(
                "weir.v1 types and Envoy's types need a stream each",
            ));
        }
        let rank = Rank::of(&request.type_url);
        if !self.subscriptions.contains_key(&rank) && self.subscriptions.len() == MAX_TYPES {
            return Err(Full::Types.into());
        }
        let others = self
            .subscriptions
            .iter()
            .filter(|(other, _)| **other != rank);
        let others: usize = others.map(|(_, subscription)| subscription.bytes()).sum();
        let is_table = &*rank.1 == HOST_TABLE_TYPE;
        let subscription = self.subscriptions.entry(rank);
        let subscription = subscription.or_insert_with(|| match is_table {
            true => Subscription::greeting(),
            false => Subscription::default(),
        });
        Ok(subscription.on_request(request, room.saturating_sub(others))?)
    }

    /// Bytes that the names of all types count.
    pub fn bytes(&self) -> usize {
        self.subscriptions.values().map(Subscription::bytes).sum()
    }

    /// The next response that is due. Call until there is none.
    ///
    /// A type that is not in the snapshot is unknown, which is not the same as empty: nothing is
    /// answered, so that a server that has just started does not take away what its clients have.
    pub fn on_snapshot(&mut self, snapshot: &Snapshot) -> Option<Response> {
        let unused = self.types(types::ROUTING).all(|(rank, subscription)| {
            snapshot
                .of_type(&rank.1)
                .is_none_or(|resources| subscription.is_settled(resources))
        });
        let warming = self
            .types(types::CLUSTERS)
            .any(|(_, subscription)| subscription.is_waiting());
        for (Rank(_, type_url), subscription) in &mut self.subscriptions {
            let held_back = warming && types::ROUTING.contains(&&**type_url);
            let removals = unused || !types::CLUSTERS.contains(&&**type_url);
            let published = snapshot.resources.get_key_value(&**type_url);
            let Some((type_url, resources)) = published.filter(|_| !held_back) else {
                continue;
            };
            if let Some(delta) = subscription.on_snapshot(resources, removals) {
                return Some(Response { type_url, delta });
            }
        }
        None
    }

    fn types(
        &self,
        wanted: &'static [&'static str],
    ) -> impl Iterator<Item = (&Rank, &Subscription)> {
        self.subscriptions
            .iter()
            .filter(|(rank, _)| wanted.contains(&&*rank.1))
    }
}

#[cfg(test)]
mod tests;
