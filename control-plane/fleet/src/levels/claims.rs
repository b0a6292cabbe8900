// SPDX-License-Identifier: Apache-2.0
//! What proxies say they were asked for and sent, as far as it is confirmed.
//!
//! ```text
//!  reports ── claim ──> a window's claims by proxy ── confirm ──> demand by rank, requests by host
//! ```
//! One liar of N must not move a level by more than its share, so a proxy's weight is bounded twice:
//! - *what it sent* by what the hosts themselves counted: where all proxies together claim more, the largest claims
//!   are cut to one size until the sum is right (max-min fair shares: Bertsekas and Gallager, *Data Networks*, 6.5.2),
//!   which leaves the liar what it really sent; where hosts count nothing, by what the other proxies sent on average,
//!   chance allowed for;
//! - *what it wanted and did not get*, which no host can confirm, by what the others wanted on average or by what it
//!   once had confirmed, whichever is more.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_policy::{HostId, Level, Rank};

use super::Counts;
use crate::ledger::News;

/// Hosts and proxies count at different moments: claims up to so many times the hosts' own counts are no lie.
const SLACK: f64 = 1.1;
/// Standard deviations by which a proxy's requests may exceed the others' mean by chance.
const CHANCE: f64 = 3.0;
/// Time in which half of what a proxy once had confirmed is forgotten: longer than most overloads, in which it cannot
/// be confirmed again.
const EARNED_HALF_LIFE: Duration = Duration::from_secs(600);
/// Requests a second that are not worth remembering.
const FORGOTTEN: f64 = 1e-3;

/// The claims of a window, and what proxies have earned before.
#[derive(Debug, Default)]
pub struct Claims {
    proxies: BTreeMap<String, Claimed>,
    /// Requests a second that were confirmed, at most; halves with time.
    earned: BTreeMap<String, f64>,
}

/// One proxy's claims: summed up, or a window that does not end would take all memory.
#[derive(Debug, Default)]
struct Claimed {
    offered: BTreeMap<Rank, f64>,
    sent: BTreeMap<(HostId, Rank), f64>,
    refused: BTreeMap<HostId, f64>,
}

/// What of a window's claims is believed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Confirmed {
    /// Requests that asked for a host.
    pub offered: Counts,
    /// Requests that hosts got.
    pub sent: BTreeMap<HostId, Counts>,
    /// Of these, how many were not taken.
    pub refused: BTreeMap<HostId, f64>,
}

fn sum<'a>(counts: impl IntoIterator<Item = &'a f64>) -> f64 {
    counts.into_iter().sum()
}

impl Claimed {
    fn all_sent(&self) -> f64 {
        sum(self.sent.values())
    }

    /// Offered at ranks that `level` admits, and at others.
    fn all_offered(&self, level: Level) -> (f64, f64) {
        self.offered
            .iter()
            .fold((0.0, 0.0), |(open, shut), (rank, count)| {
                match level.admits(*rank) {
                    true => (open + count, shut),
                    false => (open, shut + count),
                }
            })
    }
}

/// The mean of all but one, and what chance makes of it.
fn usual(all: f64, own: f64, proxies: usize) -> f64 {
    match proxies {
        0 | 1 => f64::INFINITY,
        _ => {
            let mean = (all - own) / (proxies - 1) as f64;
            mean + CHANCE * mean.sqrt() + CHANCE
        }
    }
}

/// The size to which the largest are cut for their sum to be `all`.
fn fair_size(mut sizes: Vec<f64>, all: f64) -> f64 {
    sizes.sort_unstable_by(f64::total_cmp);
    let (mut left, mut sharers) = (all, sizes.len());
    for size in sizes {
        let share = left / sharers as f64;
        if size > share {
            return share;
        }
        (left, sharers) = (left - size, sharers - 1);
    }
    f64::INFINITY
}

/// What is left of a part of a claim.
fn part(allowed: f64, claimed: f64) -> f64 {
    match claimed > allowed {
        true => allowed / claimed,
        false => 1.0,
    }
}

impl Claims {
    /// Takes in a report. `host` says which host an address is of, none where it is nobody's.
    pub fn claim(&mut self, proxy: &str, news: &News, host: impl Fn(&str) -> Option<HostId>) {
        let claimed = match self.proxies.get_mut(proxy) {
            Some(claimed) => claimed,
            None => self.proxies.entry(proxy.to_owned()).or_default(),
        };
        for (rank, count) in &news.offered {
            *claimed.offered.entry(*rank).or_default() += *count as f64;
        }
        for (address, counts) in &news.admitted {
            let Some(host) = host(address) else {
                continue;
            };
            for (rank, count) in counts {
                *claimed.sent.entry((host, *rank)).or_default() += *count as f64;
            }
        }
        for (address, count) in &news.unconnected {
            if let Some(host) = host(address) {
                *claimed.refused.entry(host).or_default() += *count as f64;
            }
        }
    }

    /// Nobody asks for the window's claims.
    pub fn drop_window(&mut self) {
        self.proxies.clear();
    }

    /// Ends a window of this length. `level` is the highest of the cluster's levels, `counted` the requests that its
    /// hosts counted themselves, where all of them do.
    pub fn confirm(&mut self, level: Level, counted: Option<f64>, length: Duration) -> Confirmed {
        let mut confirmed = Confirmed::default();
        let seconds = length.as_secs_f64().max(1e-3);
        let kept = 0.5f64.powf(seconds / EARNED_HALF_LIFE.as_secs_f64());
        self.earned.retain(|_, rate| {
            *rate *= kept;
            *rate > FORGOTTEN
        });
        let proxies = std::mem::take(&mut self.proxies);
        let sizes: Vec<f64> = proxies.values().map(Claimed::all_sent).collect();
        let (all_sent, number) = (sum(&sizes), sizes.len());
        let shut = |claimed: &Claimed| claimed.all_offered(level).1;
        let all_shut: f64 = proxies.values().map(shut).sum();
        let fair = counted.map(|counted| {
            let credible = counted * SLACK + CHANCE * counted.sqrt();
            match all_sent > credible {
                true => fair_size(sizes, credible),
                false => f64::INFINITY,
            }
        });
        for (proxy, claimed) in proxies {
            let sent = claimed.all_sent();
            let believed = sent.min(fair.unwrap_or_else(|| usual(all_sent, sent, number)));
            let earned = self.earned.get(&proxy).copied().unwrap_or(0.0);
            let (open, shut) = claimed.all_offered(level);
            let wanted = usual(all_shut, shut, number).max(earned * seconds);
            // What is admitted is sent.
            let (open, shut) = (part(believed, open), part(wanted, shut));
            for (rank, count) in claimed.offered {
                let part = if level.admits(rank) { open } else { shut };
                *confirmed.offered.entry(rank).or_default() += count * part;
            }
            let taken = part(believed, sent);
            for ((host, rank), count) in claimed.sent {
                let counts = confirmed.sent.entry(host).or_default();
                *counts.entry(rank).or_default() += count * taken;
            }
            let refused = sum(claimed.refused.values());
            let refused = part(believed, refused);
            for (host, count) in claimed.refused {
                *confirmed.refused.entry(host).or_default() += count * refused;
            }
            self.earned.insert(proxy, earned.max(believed / seconds));
        }
        confirmed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rank(class: u8) -> Rank {
        Rank::new(class, 0)
    }

    /// So many requests of a class, all sent to one host, and so many more that the level refused.
    fn news(class: u8, sent: u64, refused_class: u8, refused: u64) -> News {
        let mut offered = BTreeMap::from([(rank(class), sent)]);
        *offered.entry(rank(refused_class)).or_default() += refused;
        News {
            offered,
            admitted: BTreeMap::from([("h".to_owned(), BTreeMap::from([(rank(class), sent)]))]),
            ..News::default()
        }
    }

    fn id(address: &str) -> Option<HostId> {
        Some(HostId::of(address))
    }

    fn weight(counts: &Counts) -> f64 {
        counts.values().sum()
    }

    #[test]
    fn honest_proxies_that_hosts_confirm_are_believed_to_the_letter_however_unequal() {
        let mut claims = Claims::default();
        claims.claim("gateway", &news(9, 9000, 9, 0), id);
        claims.claim("a", &news(1, 10, 1, 0), id);
        claims.claim("b", &news(2, 10, 2, 0), id);
        let confirmed = claims.confirm(Level::ALL, Some(9020.0), SECOND);
        assert_eq!(confirmed.offered[&rank(9)], 9000.0);
        assert_eq!(confirmed.offered[&rank(1)], 10.0);
        assert_eq!(confirmed.sent[&HostId::of("h")][&rank(9)], 9000.0);
    }

    #[test]
    fn a_claim_beyond_what_hosts_counted_is_cut_to_what_the_others_leave() {
        let mut claims = Claims::default();
        for proxy in ["a", "b", "c"] {
            claims.claim(proxy, &news(3, 1000, 3, 0), id);
        }
        claims.claim("liar", &news(0, 1_000_000, 0, 0), id);
        let confirmed = claims.confirm(Level::ALL, Some(4000.0), SECOND);
        let liars = confirmed.offered[&rank(0)];
        assert!((1000.0..1700.0).contains(&liars), "{liars}");
        assert_eq!(confirmed.offered[&rank(3)], 3000.0);
    }

    #[test]
    fn claims_of_two_liars_are_cut_to_one_size() {
        let mut claims = Claims::default();
        for proxy in ["a", "b", "c"] {
            claims.claim(proxy, &news(3, 1000, 3, 0), id);
        }
        claims.claim("liar", &news(0, 1_000_000, 0, 0), id);
        claims.claim("another", &news(1, 2_000_000, 1, 0), id);
        let confirmed = claims.confirm(Level::ALL, Some(5000.0), SECOND);
        let liars = [rank(0), rank(1)].map(|rank| confirmed.offered[&rank]);
        assert!((liars[0] - liars[1]).abs() < 1.0, "{liars:?}");
        assert!((1000.0..1700.0).contains(&liars[0]), "{liars:?}");
        assert_eq!(confirmed.offered[&rank(3)], 3000.0);
    }

    #[test]
    fn what_was_wanted_in_vain_counts_as_much_as_was_confirmed_before() {
        let mut claims = Claims::default();
        let open = |claims: &mut Claims| {
            claims.claim("gateway", &news(9, 1000, 9, 0), id);
            claims.claim("a", &news(1, 10, 1, 0), id);
            claims.confirm(Level::ALL, Some(1010.0), SECOND);
        };
        open(&mut claims);
        let level = Level::just_refusing(Rank::new(9, 0));
        claims.claim("gateway", &news(9, 0, 9, 1000), id);
        claims.claim("a", &news(1, 10, 1, 0), id);
        let confirmed = claims.confirm(level, Some(10.0), SECOND);
        assert!(confirmed.offered[&rank(9)] > 990.0, "{confirmed:?}");
        // Somebody who was never heard of wants a million.
        claims.claim("liar", &news(9, 0, 9, 1_000_000), id);
        claims.claim("gateway", &news(9, 0, 9, 1000), id);
        claims.claim("a", &news(1, 10, 1, 0), id);
        let confirmed = claims.confirm(level, Some(10.0), SECOND);
        assert!(confirmed.offered[&rank(9)] < 2000.0, "{confirmed:?}");
    }

    #[test]
    fn a_window_that_does_not_end_takes_no_more_than_a_row_for_each_rank_and_host() {
        let mut claims = Claims::default();
        for _ in 0..1000 {
            claims.claim("a", &news(3, 10, 5, 10), id);
        }
        let claimed = &claims.proxies["a"];
        assert_eq!((claimed.offered.len(), claimed.sent.len()), (2, 1));
        assert_eq!(claimed.all_sent(), 10_000.0);
        claims.drop_window();
        assert_eq!(
            claims.confirm(Level::ALL, None, SECOND),
            Confirmed::default()
        );
    }

    #[test]
    fn more_refusals_than_requests_are_not_believed() {
        let mut claims = Claims::default();
        let mut lie = news(3, 10, 3, 0);
        lie.unconnected.insert("h".to_owned(), 1_000_000);
        claims.claim("liar", &lie, id);
        let confirmed = claims.confirm(Level::ALL, Some(10.0), SECOND);
        assert_eq!(confirmed.refused[&HostId::of("h")], 10.0);
    }

    proptest! {
        #[test]
        fn one_liar_of_n_has_no_more_weight_than_another(
            honest in 1usize..40, each in 50u64..1000, sent in any::<u32>(), wanted in any::<u32>(),
            class in 0u8..32, counts in any::<bool>(), windows in 1usize..5,
        ) {
            let mut claims = Claims::default();
            let level = Level::just_refusing(Rank::new(20, 0));
            for _ in 0..windows {
                for proxy in 0..honest {
                    claims.claim(&format!("p{proxy}"), &news(5, each, 25, each), id);
                }
                claims.claim("liar", &news(class, sent.into(), class, wanted.into()), id);
                let truth = (each * (honest as u64 + 1)) as f64;
                let confirmed = claims.confirm(level, counts.then_some(truth), SECOND);
                let all = weight(&confirmed.offered);
                let honest_ones = (each * honest as u64 * 2) as f64;
                let liars = all - honest_ones;
                // What it may be off by: the slack of counting, and chance.
                let share = 2.0 * each as f64;
                let slack = 0.1 * truth + 4.0 * CHANCE * (truth.sqrt() + 1.0);
                prop_assert!(liars <= share + slack, "{liars} of {all}");
            }
        }
    }
}
