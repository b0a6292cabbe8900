// SPDX-License-Identifier: Apache-2.0
//! A Lease as one replica sees it, and what it would write. Pure: `now` is of this machine's clock, and no time in the
//! Lease is compared with it.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use weir_fleet::poll::{Fault, PollError};

use super::super::{Holder, Key};
use crate::config::replicas::{LONGEST_LEASE, Lease as Settings};
use crate::kube::json;
use crate::sources::discovery::short;

/// Of a session in `holderIdentity`: 128 bits in hexadecimal digits.
const SESSION_DIGITS: usize = 32;

/// What counts of a Lease.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    /// `name address session`, each without spaces.
    holder_identity: Option<String>,
    lease_duration_seconds: Option<i32>,
    acquire_time: Option<String>,
    renew_time: Option<String>,
    lease_transitions: Option<i32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Object {
    kind: String,
    metadata: Metadata,
    spec: Option<Spec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

#[derive(Debug)]
struct Seen {
    /// All of it: labels and the like are written as they were.
    object: Value,
    spec: Spec,
    /// When it was seen first as it is.
    since: Instant,
}

/// What a replica knows.
#[derive(Debug)]
pub(super) struct View {
    pub(super) duration: Duration,
    namespace: String,
    lease: String,
    /// Of this replica: `name address`.
    replica: String,
    /// This process'.
    session: Option<String>,
    /// None: there is no Lease, as far as is known.
    seen: Option<Seen>,
    /// The highest that was seen: a Lease that was deleted goes on from there.
    transitions: i32,
    /// When the last write began that made or kept the Lease the session's.
    claimed: Option<Instant>,
    /// The same of the session before, by which this process may still lead.
    former: Option<Instant>,
}

/// The Lease as it would be the session's.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// There is none yet.
    New(Value),
    /// In place of the one that was seen.
    Over(Value),
}

impl Spec {
    fn holder(&self) -> Option<&str> {
        self.holder_identity.as_deref().filter(|it| !it.is_empty())
    }

    /// Of the replica that holds it.
    fn replica(&self) -> Option<Holder> {
        let mut parts = self.holder()?.split(' ');
        let (name, address, session) = (parts.next()?, parts.next()?, parts.next()?);
        let is_session = session.len() == SESSION_DIGITS
            && session.bytes().all(|digit| digit.is_ascii_hexdigit());
        let is_ours = is_session && parts.next().is_none() && address.contains(':');
        is_ours.then(|| Holder {
            name: name.to_owned(),
            address: address.to_owned(),
            // 0 would be no lock. An `i32` goes into the epoch's 31 bits.
            index: u64::try_from(self.transitions()).unwrap_or(0).max(1),
            session: session.to_owned(),
        })
    }

    fn transitions(&self) -> i32 {
        self.lease_transitions.unwrap_or(0).max(0)
    }
}

impl View {
    pub(super) fn new(settings: &Settings, name: &str, address: &str) -> Self {
        Self {
            duration: settings.duration,
            namespace: settings.namespace.clone(),
            lease: settings.name.clone(),
            replica: format!("{name} {address}"),
            session: None,
            seen: None,
            transitions: 0,
            claimed: None,
            former: None,
        }
    }

    /// This process has a new session, which holds nothing yet. What it leads by lapses when it would have.
    pub(super) fn open(&mut self, session: &str) {
        self.session = Some(session.to_owned());
        self.former = self.claimed.take().or(self.former);
    }

    /// Takes in the Lease, or that there is none.
    pub(super) fn see(&mut self, body: Option<&[u8]>, now: Instant) -> Result<(), PollError> {
        let Some(body) = body else {
            self.seen = None;
            return Ok(());
        };
        let Object {
            kind,
            metadata,
            spec,
        } = json(body)?;
        let object: Value = json(body)?;
        if metadata.resource_version.is_empty() || !matches!(&*kind, "" | "Lease") {
            let detail = format!("kind {}, which is no Lease with a version", short(&kind));
            return Err(PollError::new(Fault::BadBody, detail));
        }
        let spec = spec.unwrap_or_default();
        let same = self.seen.as_ref().filter(|seen| seen.spec == spec);
        let since = same.map_or(now, |seen| seen.since);
        self.transitions = self.transitions.max(spec.transitions());
        self.seen = Some(Seen {
            object,
            spec,
            since,
        });
        Ok(())
    }

    /// The session's last write, which made or kept the Lease its own, began then.
    pub(super) fn claim(&mut self, begun: Instant) {
        (self.claimed, self.former) = (Some(begun), None);
    }

    /// Whether there is something of the session's to be renewed.
    pub(super) fn is_claimed(&self) -> bool {
        self.claimed.is_some()
    }

    /// From then on others may hold what this process took last. Absent: it took nothing.
    pub(super) fn lapses_at(&self) -> Option<Instant> {
        self.claimed.or(self.former).map(|begun| self.lapse(begun))
    }

    fn lapse(&self, begun: Instant) -> Instant {
        begun + self.duration * 2 / 3
    }

    /// What the Lease says. The session's own is free as well when it has lapsed: it is to be taken anew.
    pub(super) fn key(&self, now: Instant) -> Key {
        let Some(seen) = &self.seen else {
            return Key::Free;
        };
        let name = short(&self.lease);
        let free = match self.transitions {
            i32::MAX => Key::Strange(format!(
                "leaseTransitions of the Lease {name} is at its end: delete it"
            )),
            _ => Key::Free,
        };
        let Some(holder) = seen.spec.holder() else {
            return free;
        };
        let Some(replica) = seen.spec.replica() else {
            return Key::Strange(format!(
                "the Lease {name} is held by {}, which is no replica: name another one in replicas.lease.name",
                short(holder)
            ));
        };
        let is_valid = match self.session.as_ref() == Some(&replica.session) {
            true => self.claimed.is_some_and(|begun| now < self.lapse(begun)),
            false => now < self.runs_out_at(seen),
        };
        match is_valid {
            true => Key::Held(replica),
            false => free,
        }
    }

    /// Until another one's Lease has run out; nothing where that is nothing to wait for.
    pub(super) fn runs_out_in(&self, now: Instant) -> Option<Duration> {
        let seen = self.seen.as_ref()?;
        let left = self.runs_out_at(seen).saturating_duration_since(now);
        (seen.spec.holder().is_some() && !left.is_zero()).then_some(left)
    }

    /// As its holder has written; where that makes no sense, as this replica would write.
    fn runs_out_at(&self, seen: &Seen) -> Instant {
        let written = seen.spec.lease_duration_seconds.unwrap_or(0);
        let duration = match u64::try_from(written) {
            Ok(seconds @ 1..) => Duration::from_secs(seconds).min(LONGEST_LEASE),
            _ => self.duration,
        };
        seen.since + duration
    }

    /// The Lease as the session would take it at this time, if it is free.
    pub(super) fn taken(&self, session: &str, time: &str, now: Instant) -> Option<Taken> {
        if self.key(now) != Key::Free {
            return None;
        }
        let spec = json!({
            "holderIdentity": format!("{} {session}", self.replica),
            "leaseDurationSeconds": self.duration.as_secs(),
            "acquireTime": time,
            "renewTime": time,
            "leaseTransitions": self.transitions.saturating_add(1),
        });
        Some(match &self.seen {
            Some(seen) => Taken::Over(seen.with(spec)),
            None => Taken::New(json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": { "name": self.lease, "namespace": self.namespace },
                "spec": spec,
            })),
        })
    }

    /// The Lease renewed at this time, if the session holds it as far as is known.
    pub(super) fn renewal(&self, session: &str, time: &str) -> Option<Value> {
        let seen = self.held_by(session)?;
        Some(seen.with(json!({
            "leaseDurationSeconds": self.duration.as_secs(),
            "renewTime": time,
        })))
    }

    /// The Lease without a holder, if the session holds it as far as is known.
    pub(super) fn released(&self, session: &str) -> Option<Value> {
        let seen = self.held_by(session)?;
        Some(seen.with(json!({ "holderIdentity": null })))
    }

    fn held_by(&self, session: &str) -> Option<&Seen> {
        let holds = |seen: &&Seen| seen.spec.replica().is_some_and(|it| it.session == session);
        self.seen.as_ref().filter(holds)
    }
}

impl Seen {
    /// The object with these fields of its spec, and its version: a newer one is not written over.
    fn with(&self, fields: Value) -> Value {
        let mut object = self.object.clone();
        let mut spec = object.get("spec").cloned().unwrap_or(Value::Null);
        if !spec.is_object() {
            spec = json!({});
        }
        if let (Some(spec), Value::Object(fields)) = (spec.as_object_mut(), fields) {
            spec.extend(fields);
        }
        if let Some(object) = object.as_object_mut() {
            object.insert("spec".to_owned(), spec);
        }
        object
    }
}

#[cfg(test)]
mod tests;
