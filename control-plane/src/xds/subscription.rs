// SPDX-License-Identifier: Apache-2.0
//! What one stream knows of one resource type: pure, no I/O.
//!
//! ```text
//! request ──on_request──> named, wildcard, held, owed ──on_snapshot──> response, then in flight
//!                              ^                                            │
//!                              └────────────── ACK or NACK <────────────────┘
//! ```
//!
//! At most one response of a type is in flight on a stream. The protocol would allow a pipeline;
//! waiting for the answer means that a slow client gets the newest state next instead of every
//! state in between, and that what is remembered for it is bounded. Names that a client can make up
//! take no more than the room that it is given; whoever asks for more is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use names::Names;
use weir_fleet::snapshot::Resource;

use super::room::Full;

mod names;
#[cfg(test)]
mod tests;

/// Bytes that a name, or a version that a client has, may be long.
pub const MAX_NAME_BYTES: usize = 1024;

/// Bytes of resources after which a response is cut. The rest follows after its ACK. Large enough
/// that most tables travel in one message, small enough that a message does not keep a stream's
/// other types waiting.
pub const MAX_RESPONSE_BYTES: usize = 2 << 20;

/// Bytes of a NACK's reason that are kept.
const MAX_REASON_BYTES: usize = 1024;
/// This server's own versions are shorter.
const MAX_VERSION_BYTES: usize = 64;
/// No version of this server's.
const FOREIGN: &str = "?";

/// The name that stands for all resources of a type.
pub(super) const WILDCARD: &str = "*";

/// Resources of one type, by name.
pub type Resources = BTreeMap<String, Resource>;

/// One stream's view of one type.
#[derive(Debug, Default)]
pub struct Subscription {
    started: bool,
    wildcard: bool,
    named: Names<()>,
    /// What the client has, by its own words or because it accepted it.
    held: Names<Held>,
    /// Names that are answered even if their resource has not changed.
    owed: Names<()>,
    /// What is new is answered even if there is nothing: of a wildcard, as Envoy waits for it to become ready.
    greeting: bool,
    in_flight: Option<InFlight>,
    /// The name after which the next response starts, so that a cut response does not make the
    /// names at the end of the alphabet wait for ever.
    cursor: String,
    /// Resources that were found to need no response. Compared by pointer.
    settled: Option<Arc<Resources>>,
    responses: u64,
}

/// What a client is known to have under a name.
#[derive(Debug, Default)]
struct Held {
    /// `None`: it was told that there is no such resource, or it refused the only one.
    version: Option<Arc<str>>,
    /// The last version that it refused. It is not sent that one again.
    refused: Option<Arc<str>>,
}

#[derive(Debug)]
struct InFlight {
    nonce: Arc<str>,
    /// `None` is a removal.
    sent: Vec<(String, Option<Arc<str>>)>,
}

/// What is to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Unique within the stream and type.
    pub nonce: Arc<str>,
    /// New and changed resources.
    pub resources: Vec<(String, Resource)>,
    /// Names without a resource.
    pub removed: Vec<String>,
}

/// What a request said to the response before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Nonce of the response.
    pub nonce: Arc<str>,
    /// Name and version of each resource in the response.
    pub versions: Vec<(String, Arc<str>)>,
    /// Names that the response removed.
    pub removed: Vec<String>,
    /// Why it was refused; `None` if it was accepted.
    pub refusal: Option<String>,
}

impl Subscription {
    /// One whose first request is answered even if nothing is known of what it names.
    pub fn greeting() -> Self {
        Self {
            greeting: true,
            ..Self::default()
        }
    }

    /// Takes in a request: its answer to the response in flight and its changes of interest. An
    /// answer with another nonce than the one in flight is stale and answers nothing. The stream ends
    /// where it asks for more than `room` bytes of names, of which no more are kept.
    pub fn on_request(
        &mut self,
        request: &DeltaDiscoveryRequest,
        room: usize,
    ) -> Result<Option<Verdict>, Full> {
        let verdict = self.answer(request);
        let first = !std::mem::replace(&mut self.started, true);

        let subscribe = &request.resource_names_subscribe;
        let unsubscribe = &request.resource_names_unsubscribe;
        // What changes nothing is no reason to look at all names again.
        if first || verdict.is_some() || !(subscribe.is_empty() && unsubscribe.is_empty()) {
            self.settled = None;
        }
        if first && subscribe.is_empty() && unsubscribe.is_empty() {
            self.subscribe_all();
        }
        for name in subscribe {
            if name.len() > MAX_NAME_BYTES {
                return Err(Full::Name);
            }
            self.subscribe(name);
            self.fits(room)?;
        }
        for name in unsubscribe {
            self.unsubscribe(name);
            self.fits(room)?;
        }
        // Allowed in the first request only; later ones know less than the server does.
        if first {
            self.resume(request, room)?;
        }
        Ok(verdict)
    }

    /// Bytes that the names in it count.
    pub fn bytes(&self) -> usize {
        self.named.bytes() + self.held.bytes() + self.owed.bytes()
    }

    fn fits(&self, room: usize) -> Result<(), Full> {
        match self.bytes() > room {
            true => Err(Full::StreamBytes),
            false => Ok(()),
        }
    }

    /// The next response, if one is due and none is in flight. With `removals` false, resources
    /// that are gone are left for a later call, unless the client asked for them.
    pub fn on_snapshot(&mut self, resources: &Arc<Resources>, removals: bool) -> Option<Delta> {
        if self.is_waiting() || self.has_settled(resources) {
            return None;
        }
        let mut due = self.due(resources);
        if due.is_empty() && !self.greeting {
            self.settled = Some(resources.clone());
            return None;
        }
        due.retain(|name| removals || resources.contains_key(name) || self.owed.contains(name));
        if due.is_empty() && !self.greeting {
            return None;
        }
        self.greeting = false;
        let start = due.partition_point(|name| *name <= self.cursor);
        due.rotate_left(start);
        Some(self.send(due, resources))
    }

    /// A response waits for its answer.
    pub fn is_waiting(&self) -> bool {
        self.in_flight.is_some()
    }

    /// The client has all of `resources` that it wants, or refused it.
    pub fn is_settled(&self, resources: &Arc<Resources>) -> bool {
        !self.is_waiting()
            && (self.has_settled(resources) || (!self.greeting && self.due(resources).is_empty()))
    }

    /// It was found so, and nothing has changed since.
    fn has_settled(&self, resources: &Arc<Resources>) -> bool {
        let settled = self.settled.as_ref();
        settled.is_some_and(|settled| Arc::ptr_eq(settled, resources))
    }

    fn answer(&mut self, request: &DeltaDiscoveryRequest) -> Option<Verdict> {
        let nonce = request.response_nonce.as_str();
        let InFlight { nonce, sent } = self
            .in_flight
            .take_if(|in_flight| *in_flight.nonce == *nonce)?;
        let refusal = request
            .error_detail
            .as_ref()
            .map(|status| cut(&status.message));
        for (name, version) in &sent {
            self.record(name, version, refusal.is_some());
        }
        let removed =
            |(name, version): &(String, Option<_>)| version.is_none().then(|| name.clone());
        Some(Verdict {
            nonce,
            removed: sent.iter().filter_map(removed).collect(),
            versions: sent
                .into_iter()
                .filter_map(|(name, version)| Some((name, version?)))
                .collect(),
            refusal,
        })
    }

    /// Notes that `name` was accepted or refused. A removal cannot be refused: there is nothing to
    /// keep.
    fn record(&mut self, name: &str, version: &Option<Arc<str>>, refused: bool) {
        let named = self.named.contains(name);
        if !named && (!self.wildcard || version.is_none()) {
            self.held.remove(name);
            return;
        }
        let held = self.held.entry(name);
        if refused && version.is_some() {
            held.refused.clone_from(version);
        } else {
            *held = Held {
                version: version.clone(),
                refused: None,
            };
        }
    }

    fn subscribe(&mut self, name: &str) {
        if name == WILDCARD {
            self.subscribe_all();
        } else {
            self.named.insert(name, ());
            self.owed.insert(name, ());
        }
    }

    /// A wildcard asked for again is answered in full again, as a name is.
    fn subscribe_all(&mut self) {
        if std::mem::replace(&mut self.wildcard, true) {
            for name in self.held.keys() {
                self.owed.insert(name, ());
            }
        }
        self.greeting = true;
    }

    /// Under a wildcard the client cannot know whether an unsubscribed name is still part of it,
    /// so it is told.
    fn unsubscribe(&mut self, name: &str) {
        if name == WILDCARD {
            self.wildcard = false;
            self.greeting = false;
            self.held.retain(|name| self.named.contains(name));
            self.owed.retain(|name| self.named.contains(name));
        } else if self.named.remove(name) {
            if self.wildcard {
                self.owed.insert(name, ());
            } else {
                self.held.remove(name);
                self.owed.remove(name);
            }
        }
    }

    fn resume(&mut self, request: &DeltaDiscoveryRequest, room: usize) -> Result<(), Full> {
        let mut versions = 0;
        for (name, version) in &request.initial_resource_versions {
            if self.wildcard || self.named.contains(name) {
                if name.len().max(version.len()) > MAX_NAME_BYTES {
                    return Err(Full::Name);
                }
                // One that is none of this server's is kept as another word that fits nothing.
                let version = match version.len() {
                    0..=MAX_VERSION_BYTES => version.as_str(),
                    _ => FOREIGN,
                };
                versions += version.len();
                let version = Some(version.into());
                self.held.insert(
                    name,
                    Held {
                        version,
                        refused: None,
                    },
                );
                self.owed.remove(name);
                self.fits(room.saturating_sub(versions))?;
            }
        }
        Ok(())
    }

    /// Names whose resources the client must be told of, in order.
    fn due(&self, resources: &Resources) -> Vec<String> {
        let is_due = |name: &&String| self.is_due(name, resources.get(*name));
        if !self.wildcard {
            return self.named.keys().filter(is_due).cloned().collect();
        }
        let all = resources.keys().chain(self.held.keys());
        let all = all.chain(self.owed.keys()).chain(self.named.keys());
        let due: BTreeSet<&String> = all.filter(is_due).collect();
        due.into_iter().cloned().collect()
    }

    fn is_due(&self, name: &str, resource: Option<&Resource>) -> bool {
        if resource.is_some_and(Resource::is_unknown) {
            return false;
        }
        if self.owed.contains(name) {
            return true;
        }
        match (self.held.get(name), resource) {
            (None, _) => true,
            // Of a response that is refused a client may have taken a part.
            (Some(held), None) => held.version.is_some() || held.refused.is_some(),
            (Some(held), Some(resource)) => {
                let version = Some(&resource.version);
                held.version.as_ref() != version && held.refused.as_ref() != version
            }
        }
    }

    fn send(&mut self, due: Vec<String>, resources: &Resources) -> Delta {
        self.responses += 1;
        let nonce: Arc<str> = format!("{:x}", self.responses).into();
        let mut delta = Delta {
            nonce: nonce.clone(),
            ..Delta::default()
        };
        let mut sent = Vec::new();
        let mut bytes = 0;
        for name in due {
            let resource = resources.get(&name);
            bytes += name.len() + resource.map_or(0, |resource| resource.body.len());
            if bytes > MAX_RESPONSE_BYTES && !sent.is_empty() {
                break;
            }
            self.owed.remove(&name);
            sent.push((
                name.clone(),
                resource.map(|resource| resource.version.clone()),
            ));
            match resource {
                Some(resource) => delta.resources.push((name, resource.clone())),
                None => delta.removed.push(name),
            }
        }
        self.cursor = sent
            .last()
            .map_or_else(String::new, |(name, _)| name.clone());
        self.in_flight = Some(InFlight { nonce, sent });
        delta
    }
}

/// For logs and terminals: a stranger wrote it.
fn cut(reason: &str) -> String {
    let cut = &reason[..reason.floor_char_boundary(MAX_REASON_BYTES)];
    cut.replace(char::is_control, " ")
}
