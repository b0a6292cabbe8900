// SPDX-License-Identifier: Apache-2.0
//! Envoy's own load-balancing policies at a caller, MODELLED after their documentation: nobody tells such a caller
//! anything but answers.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::SmallRng;
use weir_replay::rng::SplitMix64;

use crate::scenario::{Balancer, Zones};

/// Attempts that Envoy makes with the retries that the demo gives it, each at another host.
const TRIES: usize = 3;
/// A host may have so many times its share of a caller's requests (`hash_balance_factor`), as in the demo.
const BALANCE: f64 = 1.25;
/// Ends of keys that name a subset of hosts, as in the demo.
const CLASSES: u64 = 16;
/// Weights are renewed after so long, from what hosts have done meanwhile.
const RENEWAL: Duration = Duration::from_secs(1);

/// What hosts say of themselves on answers, to all callers.
pub(crate) type Paces = Rc<RefCell<Vec<Pace>>>;

/// A host's requests a second over its utilisation, which is what weighted round robin goes by: by Little's law one
/// over the mean time of a request in the host.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    weight: f64,
    began: Duration,
    answers: u32,
    time: Duration,
}

impl Pace {
    /// Of hosts that have answered nothing yet.
    pub(crate) fn of(hosts: usize) -> Paces {
        let new = Self {
            weight: 1.0,
            began: Duration::ZERO,
            answers: 0,
            time: Duration::ZERO,
        };
        Rc::new(RefCell::new(vec![new; hosts]))
    }

    fn answered(&mut self, took: Duration, now: Duration) {
        self.answers += 1;
        self.time += took;
        if now.saturating_sub(self.began) >= RENEWAL && !self.time.is_zero() {
            self.weight = f64::from(self.answers) / self.time.as_secs_f64();
            (self.began, self.answers, self.time) = (now, 0, Duration::ZERO);
        }
    }
}

/// Which zone a caller's requests go to, by zone-aware routing: all to its own where that has at least the part of the hosts
/// that it has of the callers, else as many as that part allows, and the rest to zones that have more hosts than
/// callers, by how many more. Percentages alone: what hosts have to do plays no part.
#[derive(Debug)]
struct Routing {
    zones: Zones,
    /// By zone; the sum is 1.
    shares: Vec<f64>,
}

impl Routing {
    fn of(zones: Zones, caller: usize, (callers, hosts): (usize, usize)) -> Self {
        let count = zones.count.max(1);
        let parts = |of: usize| {
            let mut parts = vec![0.0; count];
            (0..of).for_each(|number| parts[zones.of(number)] += 1.0 / of as f64);
            parts
        };
        let (callers, hosts) = (parts(callers), parts(hosts));
        let home = zones.of(caller);
        let stays = (hosts[home] / callers[home]).min(1.0);
        let more = |zone: usize| match zone == home {
            true => 0.0,
            false => (hosts[zone] - callers[zone]).max(0.0),
        };
        let all: f64 = (0..count).map(more).sum();
        let share = |zone: usize| match zone == home {
            true => stays,
            false => (1.0 - stays) * more(zone) / all.max(f64::MIN_POSITIVE),
        };
        let shares = (0..count).map(share).collect();
        Self { zones, shares }
    }

    /// Of these hosts those in the zone that is drawn; all of them where none is there.
    fn draw(&self, hosts: &[usize], rng: &mut SmallRng) -> Vec<usize> {
        let mut left: f64 = rng.random();
        let zone = self.shares.iter().position(|share| {
            left -= share;
            left < 0.0
        });
        let there = |host: &&usize| Some(self.zones.of(**host)) == zone;
        let found: Vec<usize> = hosts.iter().filter(there).copied().collect();
        match found.is_empty() {
            true => hosts.to_vec(),
            false => found,
        }
    }
}

/// One caller's state.
#[derive(Debug)]
pub(crate) struct Stock {
    balancer: Balancer,
    routing: Routing,
    /// The caller's own requests, by host.
    in_flight: Vec<u32>,
    paces: Paces,
    /// By host: the smallest is the next of weighted round robin.
    turns: Vec<f64>,
}

impl Stock {
    /// That of one of so many callers.
    pub(crate) fn new(
        balancer: Balancer,
        zones: Zones,
        (caller, callers): (usize, usize),
        paces: Paces,
        rng: &mut SmallRng,
    ) -> Self {
        let hosts = paces.borrow().len();
        Self {
            balancer,
            routing: Routing::of(zones, caller, (callers, hosts)),
            in_flight: vec![0; hosts],
            paces,
            // No two callers go around in step.
            turns: (0..hosts).map(|_| rng.random()).collect(),
        }
    }

    pub(crate) fn sent(&mut self, host: usize) {
        self.in_flight[host] += 1;
    }

    /// The host has the request no more; it took so long if it answered.
    pub(crate) fn ended(&mut self, host: usize, took: Option<Duration>, now: Duration) {
        self.in_flight[host] = self.in_flight[host].saturating_sub(1);
        if let Some(took) = took {
            self.paces.borrow_mut()[host].answered(took, now);
        }
    }

    /// Hosts to try, in order; no two are the same.
    pub(crate) fn choose(&mut self, key: Option<u64>, rng: &mut SmallRng) -> Vec<usize> {
        let key = key.unwrap_or_else(|| rng.random());
        let mut chosen = Vec::new();
        while chosen.len() < TRIES.min(self.in_flight.len()) {
            let host = self.next(key, &chosen, rng);
            chosen.push(host);
        }
        chosen
    }

    fn next(&mut self, key: u64, tried: &[usize], rng: &mut SmallRng) -> usize {
        let hosts = self.in_flight.len();
        let untried = |host: &usize| !tried.contains(host);
        let all: Vec<usize> = (0..hosts).filter(untried).collect();
        match self.balancer {
            Balancer::LeastRequest => self.least_of_two(&all, rng),
            Balancer::ZoneAware => self.least_of_two(&self.routing.draw(&all, rng), rng),
            Balancer::Hashing => in_order(key, all)[0],
            Balancer::BoundedHashing => self.bounded(&in_order(key, all)),
            Balancer::Weighted => self.next_turn(&all, tried.is_empty()),
            Balancer::Subset => {
                let first = (key % CLASSES) as usize;
                let subset = (first..first + hosts.div_ceil(2)).map(|host| host % hosts);
                let subset: Vec<usize> = subset.filter(untried).collect();
                // Any host, where all of the subset have failed.
                self.least_of_two(if subset.is_empty() { &all } else { &subset }, rng)
            }
        }
    }

    fn least_of_two(&self, hosts: &[usize], rng: &mut SmallRng) -> usize {
        let mut drawn = || hosts[rng.random_range(0..hosts.len())];
        let (one, other) = (drawn(), drawn());
        match self.in_flight[other] < self.in_flight[one] {
            true => other,
            false => one,
        }
    }

    /// The first host that has not more than its share, else the one that has least.
    fn bounded(&self, hosts: &[usize]) -> usize {
        let all = f64::from(self.in_flight.iter().sum::<u32>() + 1);
        let slots = (BALANCE * all / self.in_flight.len() as f64).ceil();
        let room = |host: &&usize| f64::from(self.in_flight[**host]) <= slots;
        let least = || hosts.iter().min_by_key(|host| self.in_flight[**host]);
        hosts.iter().find(room).or_else(least).copied().unwrap_or(0)
    }

    /// Earliest deadline first: a host of twice the weight has twice as many turns.
    fn next_turn(&mut self, hosts: &[usize], takes: bool) -> usize {
        let turn = |host: &&usize| self.turns[**host];
        let next = hosts.iter().min_by(|a, b| turn(a).total_cmp(&turn(b)));
        let next = next.copied().unwrap_or(0);
        if takes {
            let paces = self.paces.borrow();
            let mean = paces.iter().map(|pace| pace.weight).sum::<f64>() / paces.len() as f64;
            self.turns[next] += mean / paces[next].weight;
        }
        next
    }
}

/// The hosts as the key meets them. A ring with many points and a Maglev table are as even as this.
fn in_order(key: u64, mut hosts: Vec<usize>) -> Vec<usize> {
    let place =
        |host: &usize| SplitMix64::new(key ^ SplitMix64::new(*host as u64).next_u64()).next_u64();
    hosts.sort_by_key(place);
    hosts
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    const HOSTS: usize = 6;

    fn stock(balancer: Balancer) -> (Stock, SmallRng) {
        let mut rng = SmallRng::seed_from_u64(1);
        let zones = Zones {
            count: 2,
            distance: Duration::ZERO,
        };
        let stock = Stock::new(balancer, zones, (0, 3), Pace::of(HOSTS), &mut rng);
        (stock, rng)
    }

    /// How often each host is first, where nobody answers.
    fn shares(balancer: Balancer, requests: u64, key: impl Fn(u64) -> u64) -> Vec<u32> {
        let (mut stock, mut rng) = stock(balancer);
        for n in 0..requests {
            let host = stock.choose(Some(key(n)), &mut rng)[0];
            stock.sent(host);
        }
        stock.in_flight
    }

    #[test]
    fn no_host_is_tried_twice() {
        for balancer in Balancer::ALL {
            let (mut stock, mut rng) = stock(balancer);
            for key in 0..100 {
                let mut hosts = stock.choose(Some(key), &mut rng);
                hosts.sort_unstable();
                hosts.dedup();
                assert_eq!(hosts.len(), TRIES, "{balancer:?}");
            }
        }
    }

    #[test]
    fn hosts_of_one_key_are_as_many_as_the_policy_says() {
        let hosts = |balancer| {
            let shares = shares(balancer, 600, |_| 7);
            shares.iter().filter(|share| **share > 0).count()
        };
        assert_eq!(hosts(Balancer::Hashing), 1);
        assert_eq!(hosts(Balancer::Subset), HOSTS / 2);
        // Five with a quarter more than their share have everything.
        assert_eq!(hosts(Balancer::BoundedHashing), 5);
        for spread in [Balancer::LeastRequest, Balancer::Weighted] {
            assert_eq!(hosts(spread), HOSTS, "{spread:?}");
        }
    }

    #[test]
    fn a_zone_with_more_callers_than_hosts_keeps_as_much_as_its_hosts_are_a_part() {
        // Two of three callers are in the first zone, and half of the hosts.
        let shares = shares(Balancer::ZoneAware, 4000, |key| key);
        let first: u32 = (0..HOSTS).step_by(2).map(|host| shares[host]).sum();
        assert!((2900..3100).contains(&first), "{shares:?}");
        let zones = Zones {
            count: 3,
            distance: Duration::ZERO,
        };
        let routing = Routing::of(zones, 1, (3, HOSTS));
        assert_eq!(routing.shares, [0.0, 1.0, 0.0], "as many of both");
    }

    #[test]
    fn a_bound_is_kept() {
        let shares = shares(Balancer::BoundedHashing, 600, |_| 7);
        let most = shares.iter().max().copied();
        assert!(most.is_some_and(|most| most <= 127), "{shares:?}");
    }

    #[test]
    fn a_host_that_answers_twice_as_fast_has_twice_as_many_turns() {
        let (mut stock, mut rng) = stock(Balancer::Weighted);
        let second = Duration::from_secs(1);
        for host in 0..HOSTS {
            let took = if host == 0 { second / 2 } else { second };
            stock.ended(host, Some(took), 2 * second);
        }
        let mut turns = [0; HOSTS];
        for _ in 0..700 {
            turns[stock.choose(None, &mut rng)[0]] += 1;
        }
        assert!((198..=202).contains(&turns[0]), "{turns:?}");
    }
}
