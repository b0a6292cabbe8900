// SPDX-License-Identifier: Apache-2.0
//! What requests have cost, by key, and how fast hosts are beside each other: learned from what hosts say on
//! their answers, for the selection `estimate`.

use std::collections::HashMap;
use std::time::Duration;

use weir_policy::{Cost, HostId, KeyHash};

use crate::figures::Spell;
use crate::mean::Mean;
use crate::refetched::{Had, Refetched};

/// Keys of one generation; two are kept. What nobody has asked for since then is forgotten.
const GENERATION: usize = 262_144;
/// What a key counts, with its share of the map's free places.
const KEY_BYTES: usize = 128;
/// A mean follows as the mean of so many of the newest: what one key costs differs from request to request,
/// and its data change now and then.
const NEWEST: f64 = 16.0;
/// A key is told anew where its cost has changed by more than a quarter: less moves no choice, and each
/// telling is a push.
const WORTH_TELLING: f64 = 1.25;
/// A host counts as slower or faster than the others only by a factor: which keys it gets is no matter of
/// chance, so smaller differences are rather theirs than its own.
const SPEED_DIFFERS: f64 = 2.0;
/// The speed is the mean of so many of the newest requests for keys of known cost, and not known before: the
/// costs of one key often spread by a factor of 5, and the mean logarithm of 100 such is right to a sixth.
const SPEED_NEWEST: f64 = 100.0;
/// A host that is believed slow gets nothing, and would be believed slow for ever: after so long without an
/// answer it is given another chance.
const SPEED_LIFETIME: Duration = Duration::from_secs(5);

/// What is learned of one cluster.
#[derive(Debug, Default)]
pub struct Costs {
    young: HashMap<KeyHash, Learned>,
    old: HashMap<KeyHash, Learned>,
    fetch: Mean,
    run: Mean,
    refetched: Refetched,
    speeds: HashMap<HostId, Speed>,
    /// Of all hosts, the mean logarithm of what a request cost to what it was expected to.
    surprise: Mean,
}

#[derive(Debug, Clone, Copy, Default)]
struct Speed {
    surprise: Mean,
    /// When a request told it.
    at: Duration,
}

#[derive(Debug, Clone, Copy, Default)]
struct Learned {
    fetch: Mean,
    run: Mean,
    told: Cost,
    had: Had,
}

/// A request has cost this, as its host says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// What it was for.
    pub key: KeyHash,
    /// Who answered.
    pub host: HostId,
    /// Core time; none where the data were there.
    pub fetch: Option<Duration>,
    /// Core time.
    pub run: Duration,
}

impl Costs {
    /// What requests cost on average.
    pub fn mean(&self) -> Cost {
        let mean = |mean: Mean| Duration::try_from_secs_f64(mean.value).unwrap_or_default();
        Cost {
            fetch: mean(self.fetch),
            run: mean(self.run),
        }
    }

    /// Of what hosts fetch, the part from 0 to 1 that they had before.
    pub fn refetched(&self) -> f64 {
        self.refetched.value()
    }

    /// What sidecars are to know of a key.
    pub fn told(&self, key: KeyHash) -> Option<Cost> {
        Some(self.young.get(&key).or_else(|| self.old.get(&key))?.told)
    }

    /// How fast the host is beside the others; none where it is as fast as they are, or that is not known.
    pub fn speed(&self, host: HostId, now: Duration) -> Option<f64> {
        let Speed { surprise, at } = self.speeds.get(&host)?;
        let speed = (self.surprise.value - surprise.value).exp();
        let differs = !(1.0 / SPEED_DIFFERS..=SPEED_DIFFERS).contains(&speed);
        let known = surprise.count >= SPEED_NEWEST && now.saturating_sub(*at) <= SPEED_LIFETIME;
        (differs && known).then_some(speed)
    }

    /// Bytes that what is known of keys counts.
    pub fn bytes(&self) -> usize {
        KEY_BYTES * (self.young.len() + self.old.len())
    }

    /// Forgets all keys, and who had them; what requests cost on average stays, and how fast hosts are.
    pub fn forget_keys(&mut self) {
        (self.young, self.old) = (HashMap::new(), HashMap::new());
        self.refetched = Refetched::default();
    }

    /// Forgets a host: it is gone, or begins anew with an empty cache.
    pub fn remove(&mut self, host: HostId) {
        self.speeds.remove(&host);
        let bits = self.refetched.remove(host);
        if bits != 0 {
            let keys = self.young.values_mut().chain(self.old.values_mut());
            keys.for_each(|learned| learned.had.clear(bits));
        }
    }

    /// Takes in how long prompts took to be read: their fetch.
    pub fn read(&mut self, read: Spell) {
        self.fetch.add_spell(read);
    }

    /// Takes in how long answers took to be written: their run. Not while no reading is known: sidecars take a cost of which
    /// only one part is told to have no other.
    pub fn wrote(&mut self, wrote: Spell) {
        if self.fetch.count > 0.0 {
            self.run.add_spell(wrote);
        }
    }

    /// Takes in what a request has cost. True if sidecars know the key to cost something else.
    pub fn learn(&mut self, spent: &Spent, now: Duration) -> bool {
        let speed = self.speed(spent.host, now).unwrap_or(1.0);
        let run = spent.run.as_secs_f64() * speed;
        // A host that fetches in no time has found the data.
        let fetch = spent.fetch.filter(|fetch| !fetch.is_zero());
        let fetch = fetch.map(|fetch| fetch.as_secs_f64() * speed);
        self.run.add(run, 1024.0);
        if let Some(fetch) = fetch {
            self.fetch.add(fetch, 1024.0);
        }
        let (all_run, all_fetch) = (self.run, self.fetch);
        let learned = learned(&mut self.young, &mut self.old, spent.key);
        let expected = learned.run;
        let had = &mut learned.had;
        self.refetched.learn(had, spent.host, fetch.is_some(), now);
        learned.run.add(run, NEWEST);
        if let Some(fetch) = fetch {
            learned.fetch.add(fetch, NEWEST);
        }
        let cost = Cost {
            fetch: learned.fetch.beside(all_fetch),
            run: learned.run.beside(all_run),
        };
        let told = learned.told;
        let changed = differs(cost.run, told.run) || differs(cost.fetch, told.fetch);
        if changed {
            learned.told = cost;
        }
        if expected.count >= 4.0 && expected.value > 0.0 && !spent.run.is_zero() {
            let surprise = (spent.run.as_secs_f64() / expected.value).ln();
            self.surprise.add(surprise, 20.0 * SPEED_NEWEST);
            let of_host = self.speeds.entry(spent.host).or_default();
            of_host.surprise.add(surprise, SPEED_NEWEST);
            of_host.at = now;
        }
        changed
    }
}

/// What is known of the key, which is young from now on.
fn learned<'a>(
    young: &'a mut HashMap<KeyHash, Learned>,
    old: &mut HashMap<KeyHash, Learned>,
    key: KeyHash,
) -> &'a mut Learned {
    if !young.contains_key(&key) {
        if young.len() >= GENERATION {
            *old = std::mem::take(young);
        }
        let kept = old.get(&key).copied().unwrap_or_default();
        young.insert(key, kept);
    }
    young.entry(key).or_default()
}

fn differs(now: Duration, told: Duration) -> bool {
    let (now, told) = (now.as_secs_f64(), told.as_secs_f64());
    now > told * WORTH_TELLING || told > now * WORTH_TELLING
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn spent(key: u64, host: u64, millis: u64) -> Spent {
        Spent {
            key: KeyHash(key),
            host: HostId(host),
            fetch: None,
            run: Duration::from_millis(millis),
        }
    }

    fn fetched(key: u64, host: u64) -> Spent {
        Spent {
            fetch: Some(Duration::from_millis(10)),
            ..spent(key, host, 10)
        }
    }

    #[test]
    fn a_key_is_told_again_only_when_its_cost_has_changed_by_a_quarter() {
        let mut costs = Costs::default();
        assert!(costs.learn(&spent(1, 1, 100), NOW));
        let told = (0..50)
            .filter(|_| costs.learn(&spent(1, 1, 100), NOW))
            .count();
        assert_eq!(told, 0);
        let told = (0..50)
            .filter(|_| costs.learn(&spent(1, 1, 200), NOW))
            .count();
        assert!((1..=4).contains(&told), "{told}");
        let now = costs.told(KeyHash(1)).unwrap().run.as_millis();
        assert!((150..=200).contains(&now), "within a quarter: {now}");
        assert_eq!(costs.told(KeyHash(2)), None);
    }

    #[test]
    fn a_host_that_takes_three_times_as_long_is_found_out_and_its_keys_do_not_seem_dear() {
        let mut costs = Costs::default();
        for round in 0..2000 {
            let (key, host) = (round % 7, round % 5);
            let slow = if host == 0 { 3 } else { 1 };
            costs.learn(&spent(key, host, (key + 1) * 20 * slow), NOW);
        }
        let speed = costs.speed(HostId(0), NOW).unwrap();
        assert!((0.25..0.45).contains(&speed), "{speed}");
        assert_eq!(costs.speed(HostId(1), NOW), None);
        let later = NOW + 2 * SPEED_LIFETIME;
        assert_eq!(costs.speed(HostId(0), later), None, "another chance");
        let run = costs.told(KeyHash(6)).unwrap().run.as_millis();
        assert!((110..=190).contains(&run), "{run}");
    }

    #[test]
    fn what_prompts_take_to_be_read_is_their_mean_and_no_host_says_it_alone() {
        let mut costs = Costs::default();
        let alone = Spell {
            prompts: 1.0,
            seconds: 8.0,
        };
        costs.wrote(alone);
        assert_eq!(costs.mean(), Cost::default(), "no reading is known");
        let read = |prompts: f64, each: f64| Spell {
            prompts,
            seconds: prompts * each,
        };
        costs.read(read(10.0, 1.0));
        costs.read(read(10.0, 2.0));
        let mean = costs.mean();
        assert_eq!(
            (mean.fetch, mean.run),
            (Duration::from_millis(1500), Duration::ZERO)
        );
        costs.wrote(read(10.0, 8.0));
        let mean = costs.mean();
        assert_eq!(
            (mean.fetch, mean.run),
            (Duration::from_millis(1500), Duration::from_secs(8))
        );
        for _ in 0..100 {
            costs.read(read(10.0, 1.0));
        }
        costs.read(read(1e15, 1e15));
        let mean = costs.mean().fetch.as_secs();
        assert!(
            (30..50).contains(&mean),
            "{mean}: 64 of 1,024, at most ten minutes each"
        );
    }

    #[test]
    fn what_a_host_fetches_that_it_had_is_fetched_again_until_all_is_found() {
        let mut costs = Costs::default();
        let mut now = NOW;
        let mut fetch = |key, host| {
            now += Duration::from_secs(10);
            costs.learn(&fetched(key, host), now);
            costs.refetched()
        };
        for key in 0..40 {
            assert_eq!(fetch(key, 1), 0.0, "the first time");
            assert_eq!(fetch(key, 2), 0.0, "a copy elsewhere");
        }
        let half = (0..80).map(|at| fetch(at % 40, 1 + at % 2)).last().unwrap();
        assert!((0.4..0.6).contains(&half), "{half}");
        let all = (0..1000).map(|at| fetch(at % 40, 1 + at % 2)).last();
        assert!(all.unwrap() > 0.9, "{all:?}");
        for at in 0..100_000 {
            costs.learn(&spent(at % 40, 1, 10), NOW);
        }
        assert!(costs.refetched() < 0.01, "{}", costs.refetched());
    }

    #[test]
    fn what_a_removed_host_had_is_nobodys_and_a_fetch_of_no_time_is_none() {
        let mut costs = Costs::default();
        let mut now = NOW;
        for key in 0..100 {
            costs.learn(&fetched(key, 1), now);
        }
        for host in [2, 3, 4] {
            costs.remove(HostId(host - 1));
            now += Duration::from_secs(10);
            for key in 0..100 {
                costs.learn(&fetched(key, host), now);
            }
            assert_eq!(costs.refetched(), 0.0, "its place was another's");
        }
        now += Duration::from_secs(10);
        for key in 0..100 {
            let nothing = Some(Duration::ZERO);
            costs.learn(
                &Spent {
                    fetch: nothing,
                    ..fetched(key, 4)
                },
                now,
            );
        }
        assert_eq!(costs.refetched(), 0.0);
        for key in 0..100 {
            costs.learn(&fetched(key, 4), now);
        }
        assert!(costs.refetched() > 0.2);
        costs.forget_keys();
        assert_eq!(costs.refetched(), 0.0);
    }

    #[test]
    fn keys_that_nobody_asks_for_are_forgotten() {
        let mut costs = Costs::default();
        for key in 0..3 * GENERATION as u64 {
            costs.learn(&spent(key, 1, 10), NOW);
        }
        assert!(costs.young.len() + costs.old.len() <= 2 * GENERATION);
        assert_eq!(costs.told(KeyHash(0)), None);
    }
}
