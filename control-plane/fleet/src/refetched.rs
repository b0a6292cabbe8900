// SPDX-License-Identifier: Apache-2.0
//! Of what hosts fetch, the part that they had before: they have evicted it meanwhile, or it was replaced.
//!
//! ```text
//!  an answer ─> Had of its key: had this host it for longer than answers may be late? ─┬─> mean of all ────────────────┬─> least
//!                                                                                      └─> means by host: twice the middle ─┘
//! ```
//! The mean of all follows soonest. A host whose cache is broken, or that says so, fetches so much that it would be most of it:
//! so no more counts than twice what the middle host does.

use std::time::Duration;

use weir_policy::HostId;

use crate::mean::Mean;
use crate::planner::TOLD_WITHIN;

/// Hosts that are watched; of a larger fleet those that answered first.
const PLACES: usize = u64::BITS as usize;
/// Means are of so many of the newest fetches, of all and of a host; requests that find their data count as one that was the
/// first, so many together, so that it is forgotten where hardly anything is fetched.
const NEWEST: f64 = 256.0;
const NEWEST_OF_HOST: f64 = 32.0;
const FOUND_FOR_A_FETCH: f64 = 50.0;
/// In honest fleets hosts differ by less.
const ABOVE_THE_MIDDLE: f64 = 2.0;

/// Of one cluster.
#[derive(Debug, Default)]
pub(crate) struct Refetched {
    all: Mean,
    places: Vec<Option<Place>>,
}

/// A host that is watched.
#[derive(Debug, Clone, Copy)]
struct Place {
    host: HostId,
    mean: Mean,
}

/// Who has had a key: a bit for each place.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Had {
    bits: u64,
    /// When the newest of them came, in seconds.
    since: u32,
}

impl Had {
    /// Who is at these places is forgotten.
    pub(crate) fn clear(&mut self, bits: u64) {
        self.bits &= !bits;
    }

    /// The host has it from now on. Whether it had it before this and what is told with it: answers are told in no order, so
    /// that one that found the key may come before the fetch.
    fn takes(&mut self, bit: u64, now: Duration) -> bool {
        let now = now.as_secs() as u32;
        if self.bits & bit != 0 {
            return u64::from(now.saturating_sub(self.since)) > TOLD_WITHIN.as_secs();
        }
        (self.bits, self.since) = (self.bits | bit, now);
        false
    }
}

impl Refetched {
    /// The part, from 0 to 1.
    pub(crate) fn value(&self) -> f64 {
        let told = |place: &&Place| place.mean.count >= 1.0;
        let places = self.places.iter().flatten().filter(told);
        let mut means: Vec<f64> = places.map(|place| place.mean.value).collect();
        means.sort_by(f64::total_cmp);
        let middle = means.len().saturating_sub(1) / 2;
        let middle = means.get(middle).copied().unwrap_or_default();
        self.all.value.min(ABOVE_THE_MIDDLE * middle)
    }

    /// The host has answered a request for a key that these have had, and fetched its data for it or found them.
    pub(crate) fn learn(&mut self, had: &mut Had, host: HostId, fetched: bool, now: Duration) {
        let Some(place) = self.place(host) else {
            return;
        };
        let again = had.takes(1 << place, now);
        let Some(Place { mean, .. }) = self.places.get_mut(place).and_then(Option::as_mut) else {
            return;
        };
        for (mean, newest) in [(mean, NEWEST_OF_HOST), (&mut self.all, NEWEST)] {
            match fetched {
                true => mean.add(f64::from(u8::from(again)), newest),
                false => mean.add_many(0.0, 1.0 / FOUND_FOR_A_FETCH, newest),
            }
        }
    }

    /// The host is gone, or begins with an empty cache. The bits of [`Had`] that were its.
    pub(crate) fn remove(&mut self, host: HostId) -> u64 {
        match self.place_of(host) {
            Some(at) => {
                self.places[at] = None;
                1 << at
            }
            None => 0,
        }
    }

    fn place_of(&self, host: HostId) -> Option<usize> {
        let is_its = |place: &Option<Place>| place.is_some_and(|place| place.host == host);
        self.places.iter().position(is_its)
    }

    /// The host's place, if there is one for it.
    fn place(&mut self, host: HostId) -> Option<usize> {
        if let Some(at) = self.place_of(host) {
            return Some(at);
        }
        let mean = Mean::default();
        let new = Some(Place { host, mean });
        if let Some(at) = self.places.iter().position(Option::is_none) {
            self.places[at] = new;
            return Some(at);
        }
        (self.places.len() < PLACES).then(|| {
            self.places.push(new);
            self.places.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Later than all that is told of one fetch.
    const LATER: Duration = Duration::from_secs(10);

    /// One key, and the time.
    #[derive(Default)]
    struct Watched {
        refetched: Refetched,
        had: Had,
        now: Duration,
    }

    impl Watched {
        fn told(&mut self, host: u64, fetched: bool) -> f64 {
            let (refetched, had) = (&mut self.refetched, &mut self.had);
            refetched.learn(had, HostId(host), fetched, self.now);
            refetched.value()
        }

        /// Some time later.
        fn fetches(&mut self, host: u64) -> f64 {
            self.now += LATER;
            self.told(host, true)
        }
    }

    #[test]
    fn a_fetch_that_is_told_after_a_request_that_found_its_data_is_the_first() {
        let mut watched = Watched::default();
        assert_eq!(watched.told(1, false), 0.0);
        assert_eq!(watched.told(1, true), 0.0);
        assert_eq!(watched.told(1, true), 0.0, "told twice");
        assert!(watched.fetches(1) > 0.0);
    }

    #[test]
    fn hosts_of_a_large_fleet_that_fetch_a_key_once_each_are_not_taken_for_each_other() {
        let mut watched = Watched::default();
        for host in 0..200_u64 {
            let host = HostId::of(host.to_string().as_bytes()).0;
            assert_eq!(watched.fetches(host), 0.0);
        }
    }

    #[test]
    fn a_host_that_comes_back_empty_has_had_nothing() {
        let mut watched = Watched::default();
        for host in 0..8 {
            watched.fetches(host);
        }
        for host in 0..8 {
            let bits = watched.refetched.remove(HostId(host));
            watched.had.clear(bits);
            assert_eq!(watched.fetches(host), 0.0);
        }
        assert_eq!(watched.had.bits.count_ones(), 8);
        assert_eq!(watched.refetched.remove(HostId(99)), 0);
    }

    #[test]
    fn hosts_that_come_take_the_places_of_those_that_left() {
        let mut watched = Watched::default();
        for host in 0..1000 {
            watched.fetches(host);
            let bits = watched.refetched.remove(HostId(host));
            watched.had.clear(bits);
        }
        watched.fetches(1000);
        assert!(watched.fetches(1000) > 0.0, "it is watched");
    }

    #[test]
    fn what_one_host_says_is_not_what_all_do() {
        let mut watched = Watched::default();
        for _ in 0..100 {
            watched.fetches(1);
            for host in 2..=4 {
                (0..50).for_each(|_| _ = watched.told(host, false));
            }
        }
        assert!(watched.refetched.all.value > 0.2, "it is much of the mean");
        assert_eq!(watched.refetched.value(), 0.0);
        for _ in 0..500 {
            for host in 2..=4 {
                watched.fetches(host);
            }
        }
        assert!(watched.refetched.value() > 0.9);
    }
}
