// SPDX-License-Identifier: Apache-2.0
//! The client side of delta xDS, without the wire: what is subscribed to, and what a response means.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weir_policy::CacheShard;
use weir_tables::discovery::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node, Status};
use weir_tables::{Meta, Refusal, decode_cache_shard, decode_host_table, parse_cache_shard_name};

use crate::index::{Entry, Index, Kind, Says};

/// google.rpc.Code.INVALID_ARGUMENT, as other xDS clients send it with a NACK.
const INVALID_ARGUMENT: i32 = 3;

/// What weir-control shows of this filter: a fleet is upgraded sidecar by sidecar.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Bytes of reasons in a NACK, more or less: weir-control keeps as many.
const MAX_REASON_BYTES: usize = 1024;
/// Characters of a resource's name in them.
const MAX_NAME_SHOWN: usize = 64;

/// What this stream has asked for so far.
#[derive(Debug, Default)]
pub struct Subscriptions {
    /// Names by kind; a kind without an entry has not been asked for.
    names: BTreeMap<Kind, BTreeSet<String>>,
}

impl Subscriptions {
    /// Whether the resource was asked for.
    pub fn has(&self, kind: Kind, name: &str) -> bool {
        self.names
            .get(&kind)
            .is_some_and(|names| names.contains(name))
    }

    /// The request that brings the subscription of a kind to `wanted`; none where it is there. The first
    /// one of a kind tells which of them this proxy has already, and the first one of all this filter's version.
    pub fn request(
        &mut self,
        kind: Kind,
        wanted: BTreeSet<String>,
        node: &str,
        known: &Index,
    ) -> Option<DeltaDiscoveryRequest> {
        if self
            .names
            .get(&kind)
            .map_or(wanted.is_empty(), |names| *names == wanted)
        {
            return None;
        }
        let opens = self.names.is_empty();
        let first = !self.names.contains_key(&kind);
        let subscribed = self.names.insert(kind, wanted).unwrap_or_default();
        let wanted = self.names.get(&kind)?;
        let version =
            |name: &String| Some((name.clone(), known.get(kind, name)?.meta().to_string()));
        // Not collected, as `index::set` is not.
        let mut initial_resource_versions = BTreeMap::new();
        if first {
            initial_resource_versions.extend(wanted.iter().filter_map(version));
        }
        Some(DeltaDiscoveryRequest {
            node: Some(Node {
                id: node.into(),
                user_agent_version: if opens { VERSION.into() } else { String::new() },
                ..Default::default()
            }),
            type_url: kind.type_url().into(),
            resource_names_subscribe: wanted.difference(&subscribed).cloned().collect(),
            resource_names_unsubscribe: subscribed.difference(wanted).cloned().collect(),
            initial_resource_versions,
            ..Default::default()
        })
    }
}

/// A resource that passed every check.
#[derive(Debug, PartialEq, Eq)]
pub struct Accepted<'a> {
    /// Its name.
    pub name: &'a str,
    /// Which build it is.
    pub meta: Meta,
    /// What it says of itself.
    pub says: Says,
    /// Its encoded message.
    pub body: &'a [u8],
    /// What is in it, of a shard, where that is handed on.
    pub contents: Option<CacheShard>,
}

/// What a response brought, in whose bytes it is.
#[derive(Debug, Default)]
pub struct Update<'a> {
    /// Resources to take.
    pub accepted: Vec<Accepted<'a>>,
    /// Names of resources that are gone.
    pub removed: &'a [String],
    /// Why the others are not taken; empty: all are.
    pub refusals: Vec<(String, Refusal)>,
}

/// Checks what a response of a kind brought, against what is in use. Another server's tables (of another
/// epoch) are taken whatever their version: the stream is the truth. Those of a leader of several weir-control
/// are not taken in place of a later leader's, while that one's are fresh: it does not know yet that it has been
/// followed. When they are not, its lock may have begun to count anew, and what comes is better than nothing.
///
/// Shards may take `limit` bytes when they are decoded, all of them together; tables are taken always. Decoded, they
/// are kept where they are handed on, else only their bytes.
pub fn check<'a>(
    response: &'a DeltaDiscoveryResponse,
    kind: Kind,
    index: &Index,
    limit: usize,
    hands_on: bool,
    now: Duration,
) -> Update<'a> {
    let mut room = Room {
        index,
        taken: match kind {
            Kind::Table => 0,
            Kind::Shard => index.contents_bytes(),
        },
        limit,
    };
    let mut update = Update {
        removed: &response.removed_resources,
        ..Default::default()
    };
    for resource in &response.resources {
        let body = resource
            .resource
            .as_ref()
            .map(|any| any.value.as_slice())
            .unwrap_or_default();
        let meta = match kind {
            Kind::Table => decode_host_table(&resource.name, body, now)
                .map(|(meta, table)| (meta, of_table(&table), None)),
            Kind::Shard => decode_cache_shard(&resource.name, body).and_then(|(meta, shard)| {
                let says = room.take(&resource.name, shard.bytes())?;
                Ok((meta, says, hands_on.then_some(shard)))
            }),
        };
        let in_use = index.get(kind, &resource.name).map(|entry| entry.meta());
        let leader = leader(&resource.name, kind, index, now);
        let checked = meta.and_then(|(offered, says, contents)| match (in_use, leader) {
            (Some(current), _) if offered.is_older_than(current) => {
                Err(Refusal::Older { offered, current })
            }
            (_, Some(current)) if offered.is_of_older_leader_than(current) => {
                Err(Refusal::OlderLeader { offered, current })
            }
            _ => Ok((offered, says, contents)),
        });
        match checked {
            Ok((meta, says, contents)) => {
                update.accepted.push(Accepted {
                    name: &resource.name,
                    meta,
                    says,
                    body,
                    contents,
                });
            }
            Err(refusal) => update.refusals.push((resource.name.clone(), refusal)),
        }
    }
    update
}

fn of_table(table: &weir_policy::Table) -> Says {
    Says {
        cache_shards: table.cache_shards(),
        stale_after: table.policy().stale_after,
        bytes: 0,
    }
}

/// What is left of the bytes that decoded shards may take in shared data. Each VM decodes what it has room for; what
/// is refused here none of them could.
struct Room<'a> {
    index: &'a Index,
    taken: usize,
    limit: usize,
}

impl Room<'_> {
    fn take(&mut self, name: &str, bytes: usize) -> Result<Says, Refusal> {
        let before = self.index.get(Kind::Shard, name);
        let before = before.map_or(0, |entry| entry.says().bytes);
        let taken = self.taken.saturating_sub(before).saturating_add(bytes);
        if bytes > before && taken > self.limit {
            let limit = self.limit;
            return Err(Refusal::NoRoom { bytes, limit });
        }
        self.taken = taken;
        Ok(Says {
            bytes,
            ..Says::default()
        })
    }
}

/// Whose word the cluster's table is, as long as it counts. Cache contents go by it too: those in use may be of a leader
/// whose lock is forgotten, and would be refused what that table's own leader says of them.
fn leader(name: &str, kind: Kind, index: &Index, now: Duration) -> Option<Meta> {
    let cluster = match kind {
        Kind::Table => name,
        Kind::Shard => parse_cache_shard_name(name).ok()?.0,
    };
    index.fresh_table(cluster, now).map(Entry::meta)
}

/// Why a resource is not taken, in one line: the name is whatever the server said.
pub fn reason(name: &str, refusal: &Refusal) -> String {
    let shown = name.chars().take(MAX_NAME_SHOWN);
    let shown: String = shown.flat_map(char::escape_debug).collect();
    format!("{shown}: {refusal}")
}

/// The ACK of a response, or its NACK with the reasons: all of them, unless there are many.
pub fn answer(response: &DeltaDiscoveryResponse, update: &Update<'_>) -> DeltaDiscoveryRequest {
    let mut reasons = String::new();
    for (told, (name, refusal)) in update.refusals.iter().enumerate() {
        if reasons.len() > MAX_REASON_BYTES {
            let more = update.refusals.len() - told;
            reasons.push_str(&format!("; and {more} more"));
            break;
        }
        if told > 0 {
            reasons.push_str("; ");
        }
        reasons.push_str(&reason(name, refusal));
    }
    DeltaDiscoveryRequest {
        type_url: response.type_url.clone(),
        response_nonce: response.nonce.clone(),
        error_detail: (!reasons.is_empty()).then_some(Status {
            code: INVALID_ARGUMENT,
            message: reasons,
        }),
        ..Default::default()
    }
}

/// Why the server has ended a stream of reports, by its gRPC status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportsEnd {
    /// It does not take what was sent: INVALID_ARGUMENT, PERMISSION_DENIED, RESOURCE_EXHAUSTED, OUT_OF_RANGE (too large),
    /// UNIMPLEMENTED.
    Refused,
    /// ABORTED: it has a newer stream of this process.
    Superseded,
    /// It has gone, or the connection.
    Lost,
}

impl ReportsEnd {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Refused, Self::Superseded, Self::Lost];

    /// The end with this status.
    pub fn of(code: u32) -> Self {
        match code {
            3 | 7 | 8 | 11 | 12 => Self::Refused,
            10 => Self::Superseded,
            _ => Self::Lost,
        }
    }

    /// Its name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Superseded => "superseded",
            Self::Lost => "lost",
        }
    }
}

/// When to try again to open a stream.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
    not_before: Duration,
}

impl Backoff {
    /// First pause after a failure; it doubles up to [`Self::LONGEST`].
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_millis(3_200);
    /// While there is nothing to choose by: a mesh gives a new sidecar the endpoints of weir-control seconds
    /// after its listeners, and every request until then goes to a host of chance.
    const LONGEST_AT_START: Duration = Duration::from_millis(400);
    /// How often [`Self::FIRST`] doubles to [`Self::LONGEST_AT_START`].
    const DOUBLINGS_AT_START: u32 = 2;

    /// Whether it is time.
    pub fn is_over(&self, now: Duration) -> bool {
        now >= self.not_before
    }

    /// The stream works.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// It could not be opened, or has ended; `random` is uniform over all numbers. The pause is half fixed
    /// and half drawn, so that sidecars which lost the same server do not return together.
    pub fn failed(&mut self, now: Duration, at_least: Duration, random: u64) {
        self.pause(now, Self::LONGEST, at_least, random);
    }

    /// Envoy knows no host of weir-control's, so that no server was burdened, and no table has come yet. It
    /// counts no further than to its own longest pause: a real failure after many of these is the first one.
    pub fn not_yet(&mut self, now: Duration, random: u64) {
        let most = self.failures.max(Self::DOUBLINGS_AT_START);
        self.pause(now, Self::LONGEST_AT_START, Duration::ZERO, random);
        self.failures = self.failures.min(most);
    }

    fn pause(&mut self, now: Duration, longest: Duration, at_least: Duration, random: u64) {
        let pause = Self::FIRST
            .saturating_mul(1 << self.failures.min(5))
            .min(longest);
        self.failures = self.failures.saturating_add(1);
        self.not_before = now + drawn(pause, random).max(at_least);
    }

    /// The pause at least after the server has refused this client.
    pub fn after_refusal(random: u64) -> Duration {
        drawn(Self::LONGEST, random)
    }
}

/// Half of a pause, and a part of the other half.
fn drawn(pause: Duration, random: u64) -> Duration {
    pause.mul_f64(0.5 + 0.5 * (random as f64 / u64::MAX as f64))
}

#[cfg(test)]
mod tests;
