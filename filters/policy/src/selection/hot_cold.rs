// SPDX-License-Identifier: Apache-2.0
//! The hot-cold rule of Prequal (Wydrowski et al., *Load is not what you should balance*, NSDI 2024): a host with
//! more requests in flight than a quantile of all hosts' is hot. Among cold hosts the least latency wins; where
//! all are hot, the fewest requests in flight.
//!
//! Caches play no part: the rule stands for balancers that know nothing of them.
//!
//! Prequal asks hosts for the median of the latencies that they saw lately with about as many requests in flight.
//! Hosts here do not tell that. Run times of a host's last jobs would say more of the jobs than of the host, so
//! what stands in is the part of the latency that is the host's: its mean queuing delay, times the jobs in
//! progress now over those when it told. Where no fresh delay is known it counts as none, and the fewest jobs in
//! progress win, as among all that are idle.

use rand::Rng;

use super::Candidates;
use crate::key::{scale, split_mix, upper};
use crate::standing::nanos;
use crate::{Ranked, Reason};

/// The paper's quantile, 2^-0.25, in thousandths.
pub const QUANTILE_PERMILLE: u16 = 841;

/// As many as Prequal's pool of probes; fleets up to this size are seen whole.
const SAMPLE: usize = 16;

pub(super) fn select(
    candidates: &Candidates<'_>,
    permille: u16,
    rng: &mut impl Rng,
) -> (Ranked, Reason) {
    let most = most_of_the_cold(candidates, permille, rng);
    let salt = rng.next_u64();
    let mut scores = [Score::NOBODY; SAMPLE];
    for (place, host) in scores
        .iter_mut()
        .zip(sample(candidates.eligible, rng.next_u64()))
    {
        *place = score(candidates, host, most, salt);
    }
    scores.sort_unstable();
    let mut ranked = Ranked::default();
    for score in scores.iter().filter(|score| **score != Score::NOBODY) {
        ranked.push_up_to(candidates.limit(), score.host);
    }
    let [first, ..] = scores;
    let reason = match (candidates.request.keys.last(), first.is_hot) {
        (None, _) => Reason::NoKey,
        (_, false) => Reason::Cold,
        (_, true) => Reason::Hot,
    };
    (ranked, reason)
}

/// Smaller is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Score {
    is_suspect: bool,
    is_hot: bool,
    /// Expected, in nanoseconds; of a hot host it does not count.
    delay: u64,
    in_progress: u32,
    chance: u32,
    host: u32,
}

impl Score {
    /// Worse than every host.
    const NOBODY: Self = Self {
        is_suspect: true,
        is_hot: true,
        delay: u64::MAX,
        in_progress: u32::MAX,
        chance: u32::MAX,
        host: u32::MAX,
    };
}

fn score(candidates: &Candidates<'_>, host: u32, most: u32, salt: u64) -> Score {
    let Some(standing) = candidates.cluster.feedback.standing(host) else {
        return Score::NOBODY;
    };
    let in_progress = standing.in_progress(candidates.clock);
    let is_hot = in_progress > most;
    Score {
        is_suspect: standing.is_suspect(candidates.clock),
        is_hot,
        delay: if is_hot {
            0
        } else {
            delay(candidates, host, in_progress)
        },
        in_progress,
        // A function of the host, so that a host drawn twice scores the same.
        chance: upper(split_mix(&mut (salt ^ u64::from(host)))),
        host,
    }
}

fn delay(candidates: &Candidates<'_>, host: u32, in_progress: u32) -> u64 {
    let limit = candidates.table.policy().stale_after;
    let load = candidates.cluster.load(host);
    let fresh = load.filter(|load| !load.is_stale(candidates.now, limit));
    let told = fresh.and_then(|load| Some((load.queuing_delay?, load.in_progress)));
    told.map_or(0, |(delay, then)| {
        let now = nanos(delay).saturating_mul(u64::from(in_progress) + 1);
        now / (u64::from(then) + 1)
    })
}

/// The quantile (by nearest rank) of the jobs in progress at the hosts that are up, whoever admits the request.
fn most_of_the_cold(candidates: &Candidates<'_>, permille: u16, rng: &mut impl Rng) -> u32 {
    let mut jobs = [0; SAMPLE];
    let mut len = 0;
    let up = candidates.cluster.admission.up();
    for (place, host) in jobs.iter_mut().zip(sample(up, rng.next_u64())) {
        let standing = candidates.cluster.feedback.standing(host);
        *place = standing.map_or(0, |standing| standing.in_progress(candidates.clock));
        len += 1;
    }
    let Some(jobs) = jobs.get_mut(..len) else {
        return u32::MAX;
    };
    jobs.sort_unstable();
    let rank = (len * usize::from(permille)).div_ceil(1000);
    jobs.get(rank.saturating_sub(1))
        .copied()
        .unwrap_or(u32::MAX)
}

/// All hosts of a list, or some drawn from it.
fn sample(hosts: &[u32], mut state: u64) -> impl Iterator<Item = u32> + '_ {
    let whole = hosts.len() <= SAMPLE;
    (0..hosts.len().min(SAMPLE)).filter_map(move |place| {
        let drawn = match whole {
            true => place,
            false => scale(upper(split_mix(&mut state)), hosts.len()),
        };
        hosts.get(drawn).copied()
    })
}
