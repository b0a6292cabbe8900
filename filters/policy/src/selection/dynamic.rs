// SPDX-License-Identifier: Apache-2.0
//! Where the key is cached, then where least is in progress (document 001, section 9.2.3).
//!
//! Its cost does not grow with the fleet: of a key's holders and of the other hosts at most a sample is
//! looked at. Ties are broken at random, so that callers with the same tables do not all take the same host.

use rand::Rng;

use super::Candidates;
use crate::key::{scale, split_mix};
use crate::ranked::MAX_RANKED;
use crate::{KeyHash, Ranked, Reason};

/// Hosts looked at among a key's holders, and among the others. Fleets up to this size are seen whole;
/// beyond, the least loaded of 16 is in the best 6 % on average.
const SAMPLE: usize = 16;

/// Smaller is better: suspects last, then cache status, then jobs in progress, then chance.
type Score = (bool, u8, u32, u32);

const KNOWN: u8 = 0;
const ASSUMED: u8 = 1;
const ABSENT: u8 = 2;

pub(super) fn select(
    candidates: &Candidates<'_>,
    key: KeyHash,
    rng: &mut impl Rng,
) -> (Ranked, Reason) {
    let mut best = Best::new(candidates, rng.next_u64());
    let cluster = candidates.cluster;
    for holder in cluster.cache.holders(key, SAMPLE, rng.next_u64()) {
        if let Some(host) = candidates.table.index_of(holder.host) {
            best.offer(host, if holder.assumed { ASSUMED } else { KNOWN });
        }
    }
    let lifetime = candidates.table.policy().assumed_cached;
    for host in cluster
        .feedback
        .assumed
        .hosts(key, candidates.now, lifetime)
    {
        if let Some(host) = candidates.table.index_of(host) {
            best.offer(host, ASSUMED);
        }
    }
    if !best.is_settled() {
        best.offer_sample(rng);
    }
    let reason = match best.first_status() {
        KNOWN => Reason::KnownCached,
        ASSUMED => Reason::AssumedCached,
        _ => Reason::NotCached,
    };
    (best.ranked(), reason)
}

/// The choice for a request without a key.
pub(super) fn least_in_progress(
    candidates: &Candidates<'_>,
    rng: &mut impl Rng,
) -> (Ranked, Reason) {
    let mut best = Best::new(candidates, rng.next_u64());
    best.offer_sample(rng);
    (best.ranked(), Reason::NoKey)
}

/// The best hosts offered so far, in order.
struct Best<'a> {
    candidates: &'a Candidates<'a>,
    salt: u64,
    limit: usize,
    hosts: [(Score, u32); MAX_RANKED],
    len: usize,
}

impl<'a> Best<'a> {
    fn new(candidates: &'a Candidates<'a>, salt: u64) -> Self {
        let hosts = [((true, u8::MAX, u32::MAX, u32::MAX), u32::MAX); MAX_RANKED];
        Self {
            candidates,
            salt,
            limit: candidates.limit(),
            hosts,
            len: 0,
        }
    }

    /// Considers a host; one that is not eligible is ignored.
    fn offer(&mut self, host: u32, status: u8) {
        if self.candidates.is_eligible(host) {
            self.consider(host, status);
        }
    }

    /// Considers an eligible host.
    fn consider(&mut self, host: u32, status: u8) {
        let candidates = self.candidates;
        let Some(feedback) = candidates.cluster.feedback.row(host) else {
            return;
        };
        let in_progress =
            feedback.in_progress(candidates.now, candidates.table.policy().stale_after);
        // A function of the host, so that a host offered twice scores the same.
        let chance = split_mix(&mut (self.salt ^ u64::from(host))) as u32;
        let score = (
            feedback.suspect_until > candidates.now,
            status,
            in_progress,
            chance,
        );
        self.insert(score, host);
    }

    fn insert(&mut self, score: Score, host: u32) {
        let Some(filled) = self.hosts.get(..self.len) else {
            return;
        };
        // Most hosts of a sample end here.
        if self.len == self.limit && filled.last().is_some_and(|(worst, _)| *worst < score) {
            return;
        }
        if filled.iter().any(|(_, known)| *known == host) {
            // Offered with a better status before: holders come first.
            return;
        }
        let at = filled.partition_point(|(known, _)| *known < score);
        self.len = (self.len + 1).min(self.limit);
        if let Some(moved) = self.hosts.get_mut(at..self.len) {
            moved.rotate_right(1);
            if let Some(slot) = moved.first_mut() {
                *slot = (score, host);
            }
        }
    }

    /// As many holders as hosts are to be named, none of them suspect.
    fn is_settled(&self) -> bool {
        let last = self
            .limit
            .checked_sub(1)
            .and_then(|last| self.hosts.get(last));
        self.len == self.limit && last.is_some_and(|((suspect, ..), _)| !suspect)
    }

    /// Considers the eligible hosts as hosts without the key: all of them, or a sample.
    fn offer_sample(&mut self, rng: &mut impl Rng) {
        let eligible = self.candidates.eligible;
        if eligible.len() <= SAMPLE {
            for host in eligible {
                self.consider(*host, ABSENT);
            }
            return;
        }
        for _ in 0..SAMPLE {
            if let Some(host) = eligible.get(scale(rng.next_u64(), eligible.len())) {
                self.consider(*host, ABSENT);
            }
        }
    }

    fn first_status(&self) -> u8 {
        self.hosts
            .first()
            .map_or(ABSENT, |((_, status, ..), _)| *status)
    }

    fn ranked(&self) -> Ranked {
        let mut ranked = Ranked::default();
        for (_, host) in self.hosts.get(..self.len).unwrap_or_default() {
            ranked.push(*host);
        }
        ranked
    }
}
