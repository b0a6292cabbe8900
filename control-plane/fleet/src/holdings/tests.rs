// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;

const HOSTS: u64 = 4;
const SHARDS: u32 = 4;

#[derive(Clone, Debug)]
enum Step {
    Apply {
        host: u64,
        reset: bool,
        added: Vec<u64>,
        removed: Vec<u64>,
    },
    Assume {
        host: u64,
        key: u64,
        for_ms: u64,
    },
    Pass(u64),
    Remove(u64),
    Resize(u32),
}

/// Few keys, spread over all shards.
fn key() -> impl Strategy<Value = u64> {
    (0u64..24).prop_map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn step() -> impl Strategy<Value = Step> {
    let keys = || prop::collection::vec(key(), 0..6);
    prop_oneof![
        4 => (0..HOSTS, any::<bool>(), keys(), keys()).prop_map(|(host, reset, added, removed)| {
            let removed = if reset { vec![] } else { removed };
            let removed = removed.into_iter().filter(|key| !added.contains(key)).collect();
            Step::Apply { host, reset, added, removed }
        }),
        4 => (0..HOSTS, key(), 1u64..100).prop_map(|(host, key, for_ms)| Step::Assume { host, key, for_ms }),
        3 => (0u64..60).prop_map(Step::Pass),
        1 => (0..HOSTS).prop_map(Step::Remove),
        1 => prop::sample::select(vec![1u32, 2, 8]).prop_map(Step::Resize),
    ]
}

/// The same, the slow way: sets, looked at as a whole.
#[derive(Default)]
struct Model {
    known: BTreeSet<(u64, u64)>,
    assumed: BTreeMap<(u64, u64), u64>,
    now: u64,
}

impl Model {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Apply {
                host,
                reset,
                added,
                removed,
            } => {
                if *reset {
                    self.known.retain(|(holder, _)| holder != host);
                }
                self.known.extend(added.iter().map(|key| (*host, *key)));
                for key in removed {
                    self.known.remove(&(*host, *key));
                    self.assumed.remove(&(*host, *key));
                }
            }
            Step::Assume { host, key, for_ms } => {
                let until = self.assumed.entry((*host, *key)).or_default();
                *until = (*until).max(self.now + for_ms);
            }
            Step::Pass(ms) => {
                self.now += ms;
                self.assumed.retain(|_, until| *until > self.now);
            }
            Step::Remove(host) => {
                self.known.retain(|(holder, _)| holder != host);
                self.assumed.retain(|(holder, _), _| holder != host);
            }
            Step::Resize(_) => {}
        }
    }

    fn contents(&self) -> BTreeSet<(u64, u64, bool)> {
        let assumed = self
            .assumed
            .keys()
            .filter(|claim| !self.known.contains(claim));
        let known = self.known.iter().map(|(host, key)| (*key, *host, true));
        known
            .chain(assumed.map(|(host, key)| (*key, *host, false)))
            .collect()
    }
}

fn take(holdings: &mut Holdings, step: &Step, now: u64) {
    let hashes = |keys: &[u64]| keys.iter().copied().map(KeyHash).collect();
    match step {
        Step::Apply {
            host,
            reset,
            added,
            removed,
        } => {
            let changes = Changes {
                reset: *reset,
                added: hashes(added),
                removed: hashes(removed),
            };
            holdings.apply(HostId(*host), &changes, usize::MAX).unwrap();
        }
        Step::Assume { host, key, for_ms } => {
            holdings.assume(
                HostId(*host),
                KeyHash(*key),
                Duration::from_millis(now + for_ms),
            );
        }
        Step::Pass(_) => {
            holdings.expire(Duration::from_millis(now));
        }
        Step::Remove(host) => holdings.remove(HostId(*host)),
        Step::Resize(shards) => holdings.resize(*shards),
    }
}

fn contents(holdings: &Holdings, shard: u32) -> BTreeSet<(u64, u64, bool)> {
    let keys = holdings.contents(shard);
    keys.flat_map(|(key, claims)| {
        claims
            .iter()
            .map(move |claim| (key.0, claim.host.0, claim.known))
    })
    .collect()
}

#[test]
fn a_large_shard_rests_and_then_has_all_that_came_meanwhile() {
    let mut holdings = Holdings::new(2);
    let seconds = Duration::from_secs;
    let ms = Duration::from_millis;
    let key = |n: u64| KeyHash(n);
    holdings.take_changed(seconds(0));
    holdings.assume(HostId(1), key(1), seconds(60));
    assert_eq!(holdings.take_changed(seconds(1)), [0]);
    // Half of 1,000 bytes a second is this shard's.
    holdings.rest(0, seconds(1), 250, 1000);
    holdings.assume(HostId(1), key(2), seconds(60));
    assert!(!holdings.is_changed(ms(1499)));
    assert!(holdings.take_changed(ms(1499)).is_empty());
    holdings.assume(HostId(1), key(u64::MAX), seconds(60));
    assert_eq!(
        holdings.take_changed(ms(1499)),
        [1],
        "the other does not rest"
    );
    assert_eq!(holdings.take_changed(ms(1500)), [0]);
    assert!(!holdings.is_changed(seconds(9)));
    holdings.rest(0, seconds(9), 1 << 30, 1000);
    holdings.assume(HostId(1), key(3), seconds(60));
    assert!(!holdings.is_changed(ms(9999)));
    assert!(
        holdings.is_changed(seconds(10)),
        "nothing rests for longer than a second"
    );
}

proptest! {
    #[test]
    fn folding_changes_gives_what_a_rebuild_from_scratch_gives(steps in prop::collection::vec(step(), 0..60)) {
        let (mut holdings, mut model) = (Holdings::new(SHARDS), Model::default());
        for step in &steps {
            model.step(step);
            take(&mut holdings, step, model.now);
            let all: BTreeSet<_> = (0..holdings.shards()).flat_map(|shard| contents(&holdings, shard)).collect();
            prop_assert_eq!(all, model.contents());
            for shard in 0..holdings.shards() {
                let shards = holdings.shards();
                prop_assert!(holdings.contents(shard).all(|(key, _)| shard_of(key, shards) == shard));
            }
        }
    }

    #[test]
    fn a_shard_is_marked_exactly_if_it_looks_different(steps in prop::collection::vec(step(), 0..60)) {
        let (mut holdings, mut model) = (Holdings::new(SHARDS), Model::default());
        holdings.take_changed(Duration::from_millis(model.now));
        for step in steps.iter().filter(|step| !matches!(step, Step::Resize(_))) {
            let before: Vec<_> = (0..SHARDS).map(|shard| contents(&holdings, shard)).collect();
            model.step(step);
            take(&mut holdings, step, model.now);
            let changed = holdings.take_changed(Duration::from_millis(model.now));
            for shard in 0..SHARDS {
                let differs = before[shard as usize] != contents(&holdings, shard);
                // A reset that takes a key away and a step that gives it back are two changes.
                prop_assert!(!differs || changed.contains(&shard), "{step:?}");
                prop_assert!(differs || !changed.contains(&shard), "{step:?}");
            }
        }
    }
}
