// SPDX-License-Identifier: Apache-2.0
//! A caching plan: keys are assigned to hosts beforehand, and a key without a planned host that can take it goes
//! to any (Ulita, *Scheduling data processing tasks for product feed management*, University of Amsterdam, 2020, as
//! document 001, sections 5.1 and 9.2, describes it).
//!
//! weir-control publishes the plan as cache contents, so the planned hosts of a key are its known holders.

use rand::Rng;

use super::{Candidates, random};
use crate::key::{split_mix, upper};
use crate::{KeyHash, Ranked, Reason};

/// Of a key that is planned at more hosts, some of them are looked at.
const SAMPLE: usize = 16;

/// Jobs in progress, chance, host. Smaller is better.
type Score = (u32, u32, u32);

const NOBODY: Score = (u32::MAX, u32::MAX, u32::MAX);

pub(super) fn select(
    candidates: &Candidates<'_>,
    key: KeyHash,
    rng: &mut impl Rng,
) -> (Ranked, Reason) {
    let salt = rng.next_u64();
    let planned = candidates
        .cluster
        .cache
        .holders(key, SAMPLE, rng.next_u32());
    let known = planned.filter(|holder| !holder.assumed);
    let hosts = known.filter_map(|holder| candidates.table.index_of(holder.host));
    let mut scores = [NOBODY; SAMPLE];
    for (place, host) in scores.iter_mut().zip(hosts) {
        *place = score(candidates, host, salt);
    }
    scores.sort_unstable();
    let mut ranked = Ranked::default();
    for (_, _, host) in scores.iter().filter(|score| **score != NOBODY) {
        ranked.push_up_to(candidates.limit(), *host);
    }
    let reason = match ranked.first() {
        Some(_) => Reason::Planned,
        None => Reason::Random,
    };
    for host in random::select(candidates, rng).as_slice() {
        ranked.push_up_to(candidates.limit(), *host);
    }
    (ranked, reason)
}

/// A host that just did not take a request is as good as not there.
fn score(candidates: &Candidates<'_>, host: u32, salt: u64) -> Score {
    let standing = candidates.cluster.feedback.standing(host);
    let eligible = standing
        .filter(|standing| candidates.is_eligible(host) && !standing.is_suspect(candidates.clock));
    eligible.map_or(NOBODY, |standing| {
        let chance = upper(split_mix(&mut (salt ^ u64::from(host))));
        (standing.in_progress(candidates.clock), chance, host)
    })
}
