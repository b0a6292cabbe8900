// SPDX-License-Identifier: Apache-2.0
//! All subscriptions of one stream and the order in which they are served: pure, no I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use envoy_types::pb::envoy::service::discovery::v3 as discovery;
use tonic::Status;

use super::codec::Response;
use super::subscription::{Subscription, Verdict};
use super::types;
use crate::snapshot::Snapshot;

/// Types that one stream may ask for. Envoy knows about a dozen.
const MAX_TYPES: usize = 32;

/// Bytes that a node's id may have: it becomes a key and a label.
const MAX_NODE_ID_BYTES: usize = 512;

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
    subscriptions: BTreeMap<Rank, Subscription>,
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

impl Session {
    /// Starts with a stream's first request, which must say whose it is.
    pub fn open(first: &discovery::DeltaDiscoveryRequest) -> Result<Self, Status> {
        let id = first.node.as_ref().map_or("", |node| node.id.as_str());
        if id.is_empty() {
            return Err(Status::invalid_argument("the first request has no node.id"));
        }
        if id.len() > MAX_NODE_ID_BYTES {
            return Err(Status::invalid_argument(format!(
                "node.id is over {MAX_NODE_ID_BYTES} bytes"
            )));
        }
        Ok(Self {
            proxy: id.into(),
            weir: types::is_weir(&first.type_url),
            subscriptions: BTreeMap::new(),
        })
    }

    /// Takes in a request. An error ends the stream.
    pub fn on_request(
        &mut self,
        request: &discovery::DeltaDiscoveryRequest,
    ) -> Result<Option<Verdict>, Status> {
        if request.type_url.is_empty() {
            return Err(Status::invalid_argument("a request has no type_url"));
        }
        // Which stream of a proxy replaces which is decided once, by the first request.
        if types::is_weir(&request.type_url) != self.weir {
            return Err(Status::invalid_argument(
                "weir.v1 types and Envoy's types need a stream each",
            ));
        }
        let rank = Rank::of(&request.type_url);
        if !self.subscriptions.contains_key(&rank) && self.subscriptions.len() == MAX_TYPES {
            return Err(Status::resource_exhausted(format!(
                "more than {MAX_TYPES} resource types"
            )));
        }
        let subscription = self.subscriptions.entry(rank).or_default();
        subscription
            .on_request(request)
            .map_err(|error| Status::resource_exhausted(error.to_string()))
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
