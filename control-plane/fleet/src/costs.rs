// SPDX-License-Identifier: Apache-2.0
//! What requests have cost, by key, and how fast hosts are beside each other: learned from what hosts say on
//! their answers, for the selection `estimate`.

use std::collections::HashMap;
use std::time::Duration;

use weir_policy::{Cost, HostId, KeyHash};

use crate::figures::Spell;

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
/// What is fetched again is the mean of so many of the newest fetches; requests that find their data count as one that was not,
/// so many together, so that it is forgotten where hardly anything is fetched.
const FETCHES_NEWEST: f64 = 256.0;
const FOUND_FOR_A_FETCH: f64 = 50.0;
/// Hosts that have had a key are a bit each, by their identity. Where more of the 64 are set a host of a large fleet that
/// fetches it for the first time would too often be taken for another, and its fetch says nothing.
const MOST_HAD: u32 = 32;
/// The speed is the mean of so many of the newest requests for keys of known cost, and not known before: the
/// costs of one key often spread by a factor of 5, and the mean logarithm of 100 such is right to a sixth.
const SPEED_NEWEST: f64 = 100.0;
/// A host that is believed slow gets nothing, and would be believed slow for ever: after so long without an
/// answer it is given another chance.
const SPEED_LIFETIME: Duration = Duration::from_secs(5);

/// Of the prompts that a host has read or answered between two polls no more count, so that no host alone says what all take.
const MOST_PROMPTS: f64 = 64.0;
/// No prompt takes longer to be read, and no answer to be written, in seconds.
const LONGEST_S: f64 = 600.0;

/// What is learned of one cluster.
#[derive(Debug, Default)]
pub struct Costs {
    young: HashMap<KeyHash, Learned>,
    old: HashMap<KeyHash, Learned>,
    fetch: Mean,
    run: Mean,
    /// Of what hosts fetch, the part that they had before.
    refetched: Mean,
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
    /// Hosts that have had it, by the last bits of their identities.
    had: u64,
}

impl Learned {
    /// The host has it from now on. Whether it had it before; none where too many have to know.
    fn takes(&mut self, host: HostId) -> Option<bool> {
        let (had, bit) = (self.had, 1 << (host.0 % 64));
        self.had |= bit;
        (had.count_ones() <= MOST_HAD).then_some(had & bit != 0)
    }
}

/// Of the newest values.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    value: f64,
    count: f64,
}

impl Mean {
    fn add(&mut self, value: f64, newest: f64) {
        self.add_many(value, 1.0, newest);
    }

    /// So many of the same.
    fn add_many(&mut self, value: f64, many: f64, newest: f64) {
        self.count = (self.count + many).min(newest);
        self.value += (value - self.value) * (many / self.count).min(1.0);
    }

    fn add_spell(&mut self, spell: Spell) {
        let mean = (spell.seconds / spell.prompts).min(LONGEST_S);
        self.add_many(mean, spell.prompts.min(MOST_PROMPTS), 1024.0);
    }

    /// As if one more value, the mean of all keys, had been seen: an only request says little.
    fn beside(self, all: Self) -> Duration {
        let mean = (self.value * self.count + all.value) / (self.count + 1.0);
        Duration::try_from_secs_f64(mean).unwrap_or_default()
    }
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

    /// Of what hosts fetch, the part from 0 to 1 that they had before: they have evicted it meanwhile, or it was replaced.
    pub fn refetched(&self) -> f64 {
        self.refetched.value
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

    /// Forgets all keys; what requests cost on average stays, and how fast hosts are.
    pub fn forget_keys(&mut self) {
        (self.young, self.old) = (HashMap::new(), HashMap::new());
    }

    /// Forgets a host.
    pub fn remove(&mut self, host: HostId) {
        self.speeds.remove(&host);
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
        let fetch = spent.fetch.map(|fetch| fetch.as_secs_f64() * speed);
        self.run.add(run, 1024.0);
        if let Some(fetch) = fetch {
            self.fetch.add(fetch, 1024.0);
        }
        let (all_run, all_fetch) = (self.run, self.fetch);
        let learned = self.learned(spent.key);
        let expected = learned.run;
        let again = learned.takes(spent.host);
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
        let refetched = &mut self.refetched;
        match (fetch, again) {
            (Some(_), Some(again)) => refetched.add(f64::from(u8::from(again)), FETCHES_NEWEST),
            (Some(_), None) => {}
            (None, _) => refetched.add_many(0.0, 1.0 / FOUND_FOR_A_FETCH, FETCHES_NEWEST),
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

    fn learned(&mut self, key: KeyHash) -> &mut Learned {
        if !self.young.contains_key(&key) {
            if self.young.len() >= GENERATION {
                self.old = std::mem::take(&mut self.young);
            }
            let kept = self.old.get(&key).copied().unwrap_or_default();
            self.young.insert(key, kept);
        }
        self.young.entry(key).or_default()
    }
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
        let mut fetch = |key, host| {
            costs.learn(&fetched(key, host), NOW);
            costs.refetched()
        };
        for key in 0..40 {
            assert_eq!(fetch(key, 1), 0.0, "the first time");
            assert_eq!(fetch(key, 2), 0.0, "a copy elsewhere");
        }
        for key in 0..40 {
            fetch(key, 1);
        }
        let third = fetch(0, 2);
        assert!((0.3..0.4).contains(&third), "{third}");
        let all = (0..1000).map(|at| fetch(at % 40, 1)).last();
        assert!(all.unwrap() > 0.9, "{all:?}");
        for at in 0..100_000 {
            costs.learn(&spent(at % 40, 1, 10), NOW);
        }
        assert!(costs.refetched() < 0.01, "{}", costs.refetched());
    }

    #[test]
    fn hosts_of_a_large_fleet_that_fetch_a_key_once_each_are_not_taken_for_each_other() {
        let mut costs = Costs::default();
        for host in 0..200 {
            costs.learn(&fetched(1, host), NOW);
        }
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
