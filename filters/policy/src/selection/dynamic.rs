// SPDX-License-Identifier: Apache-2.0
//! Where the key is cached, then where least is in progress (document 001, section 9.2.3).
//!
//! Of several keys in prefix order, the host comes first that holds the most of them, from the first on; of as
//! many, one that said so of all comes before one where some are only assumed. A beginning counts that is
//! more than half of the list. Else a key that every request begins with, such as a system prompt, would
//! bring all requests to whoever had it first, however loaded.
//! (The `cache_aware` routers of SGLang and vLLM ask for 0.3 of the prompt, and for balanced queues besides.)
//!
//! Its cost does not grow with the fleet: of a key's holders and of the other hosts at most a sample is
//! looked at. Ties are broken at random, so that callers with the same tables do not all take the same host.

use rand::Rng;

use super::Candidates;
use crate::key::{scale, split_mix, upper};
use crate::places::{Places, Score};
use crate::{KeyHash, MAX_KEYS, Ranked, Reason};

/// Hosts looked at among a key's holders, and among the others. Fleets up to this size are seen whole;
/// beyond, the least loaded of 16 is in the best 6 % on average.
const SAMPLE: usize = 16;

// Of a score: suspects last, then cache status, then jobs in progress, then chance, and the host (1, 8, 20, 19 and 16
// bits). All in one number, because to compare is most of a decision's work.
const SUSPECT: Score = 1 << 63;
const STATUS_AT: u32 = 55;
const STATUS: Score = 0xff << STATUS_AT;
const IN_PROGRESS_AT: u32 = 35;
const MAX_IN_PROGRESS: u32 = (1 << 20) - 1;
const CHANCE: Score = ((1 << 19) - 1) << 16;

const _: () = assert!(2 * (MAX_KEYS as Score) <= STATUS >> STATUS_AT);

/// How many keys a host lacks, twice, and one more where some are only assumed; in its place in a score.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Status(Score);

const KNOWN: Status = Status::lacking(0, false);
const ASSUMED: Status = Status::lacking(0, true);
const ABSENT: Status = Status::lacking(1, false);

impl Status {
    const fn lacking(keys: usize, assumed: bool) -> Self {
        Self((2 * keys as Score + assumed as Score) << STATUS_AT)
    }

    fn is_assumed(self) -> bool {
        self.0 & ASSUMED.0 != 0
    }
}

pub(super) fn select(
    candidates: &Candidates<'_>,
    key: KeyHash,
    rng: &mut impl Rng,
) -> (Ranked, Reason) {
    let mut best = Best::new(candidates, rng.next_u64());
    let cluster = candidates.cluster;
    for holder in cluster.cache.holders(key, SAMPLE, rng.next_u32()) {
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
        best.offer_sample(ABSENT, rng);
    }
    let reason = match best.first_status() {
        KNOWN => Reason::KnownCached,
        ASSUMED => Reason::AssumedCached,
        _ => Reason::NotCached,
    };
    (best.ranked(), reason)
}

/// The choice for a request with several keys in prefix order.
pub(super) fn select_by_prefix(
    candidates: &Candidates<'_>,
    keys: &[KeyHash],
    rng: &mut impl Rng,
) -> (Ranked, Reason) {
    let mut best = Best::new(candidates, rng.next_u64());
    let prefixes = candidates.prefixes(rng.next_u32());
    for prefix in prefixes
        .iter()
        .filter(|prefix| 2 * prefix.keys as usize > keys.len())
    {
        let lacking = keys.len().saturating_sub(prefix.keys as usize);
        best.offer(prefix.host, Status::lacking(lacking, prefix.assumed));
    }
    let absent = Status::lacking(keys.len(), false);
    if !best.is_settled() {
        best.offer_sample(absent, rng);
    }
    let reason = match best.first_status() {
        status if status == absent => Reason::NotCached,
        status if status.is_assumed() => Reason::AssumedCached,
        _ => Reason::KnownCached,
    };
    (best.ranked(), reason)
}

/// The choice for a request without a key.
pub(super) fn least_in_progress(
    candidates: &Candidates<'_>,
    rng: &mut impl Rng,
) -> (Ranked, Reason) {
    let mut best = Best::new(candidates, rng.next_u64());
    best.offer_sample(ABSENT, rng);
    (best.ranked(), Reason::NoKey)
}

/// The best hosts offered so far, in order.
struct Best<'a> {
    candidates: &'a Candidates<'a>,
    salt: u64,
    places: Places,
}

impl<'a> Best<'a> {
    fn new(candidates: &'a Candidates<'a>, salt: u64) -> Self {
        Self {
            candidates,
            salt,
            places: Places::new(candidates.limit()),
        }
    }

    /// Considers a host; one that is not eligible is ignored.
    fn offer(&mut self, host: u32, status: Status) {
        if self.candidates.is_eligible(host) {
            self.consider(host, status);
        }
    }

    /// Considers an eligible host.
    fn consider(&mut self, host: u32, status: Status) {
        if let Some(standing) = self.candidates.cluster.feedback.standing(host) {
            let clock = self.candidates.clock;
            // A function of the host, so that a host offered twice scores the same.
            let chance = split_mix(&mut (self.salt ^ u64::from(host)));
            self.places.consider(pack(
                standing.is_suspect(clock),
                status,
                standing.in_progress(clock),
                chance,
                host,
            ));
        }
    }

    /// As many holders as hosts are to be named, none of them suspect.
    fn is_settled(&self) -> bool {
        self.places.worst() < SUSPECT
    }

    /// Considers the eligible hosts as hosts without a key: all of them, or a sample.
    fn offer_sample(&mut self, status: Status, rng: &mut impl Rng) {
        let eligible = self.candidates.eligible;
        if eligible.len() <= SAMPLE {
            for host in eligible {
                self.consider(*host, status);
            }
            return;
        }
        // All are drawn before the first is looked at, so that the processor fetches them side by side.
        let mut sample = [0; SAMPLE];
        for pair in sample.chunks_exact_mut(2) {
            let random = rng.next_u64();
            for (place, random) in pair.iter_mut().zip([random as u32, upper(random)]) {
                let drawn = eligible.get(scale(random, eligible.len()));
                *place = drawn.copied().unwrap_or(u32::MAX);
            }
        }
        for host in sample {
            self.consider(host, status);
        }
    }

    fn first_status(&self) -> Status {
        Status(self.places.first() & STATUS)
    }

    fn ranked(&self) -> Ranked {
        self.places.hosts()
    }
}

fn pack(is_suspect: bool, status: Status, in_progress: u32, chance: u64, host: u32) -> Score {
    let suspect = if is_suspect { SUSPECT } else { 0 };
    let in_progress = Score::from(in_progress.min(MAX_IN_PROGRESS)) << IN_PROGRESS_AT;
    suspect | status.0 | in_progress | (chance & CHANCE) | Score::from(host)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::places::HOST;
    use crate::table::MAX_HOSTS;

    fn parts() -> impl Strategy<Value = (bool, u64, u32, u64, u32)> {
        let in_progress = prop_oneof![0u32..4, MAX_IN_PROGRESS - 1..=MAX_IN_PROGRESS];
        let chance = prop_oneof![0u64..4, CHANCE >> 16..=CHANCE >> 16];
        let host = prop_oneof![0u32..4, MAX_HOSTS as u32 - 2..MAX_HOSTS as u32];
        let status = prop_oneof![0u64..3, 2 * MAX_KEYS as u64 - 1..=2 * MAX_KEYS as u64];
        (any::<bool>(), status, in_progress, chance, host)
    }

    proptest! {
        #[test]
        fn scores_compare_as_their_parts_in_turn(a in parts(), b in parts()) {
            let score = |(suspect, status, in_progress, chance, host): (bool, u64, u32, u64, u32)| {
                pack(suspect, Status(status << STATUS_AT), in_progress, chance << 16, host)
            };
            prop_assert_eq!(score(a).cmp(&score(b)), a.cmp(&b));
            prop_assert!(score(a) < Score::MAX);
            prop_assert_eq!(score(a) & HOST, u64::from(a.4));
        }
    }

    #[test]
    fn more_jobs_than_there_is_room_for_are_the_most() {
        let score = |in_progress| pack(false, KNOWN, in_progress, 0, 0);
        assert_eq!(score(u32::MAX), score(MAX_IN_PROGRESS));
        assert!(score(u32::MAX) < pack(false, ASSUMED, 0, 0, 0));
    }
}
