// SPDX-License-Identifier: Apache-2.0
use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;
use weir_policy::KeyHash;

use super::*;

/// An engine's process: it holds blocks, and keeps the last batches.
#[derive(Clone, Default)]
struct Engine {
    held: BTreeSet<u8>,
    next: u64,
    kept: VecDeque<(u64, Vec<u8>)>,
    keeps: usize,
    /// When it was started.
    began: f64,
}

impl Engine {
    fn new(keeps: usize) -> Self {
        Self {
            keeps,
            ..Self::default()
        }
    }

    /// Another process in its place, some time later.
    fn restart(&mut self) {
        let began = self.began + 1000.0;
        *self = Self {
            began,
            ..Self::new(self.keeps)
        };
    }

    /// Stores the block, or removes it where it is there.
    fn toggle(&mut self, block: u8) -> (u64, Vec<u8>) {
        let (kind, rest): (&[u8], &[u8]) = match self.held.remove(&block) {
            true => (b"\x92\xacBlockRemoved\x91", b""),
            false => {
                self.held.insert(block);
                (b"\x95\xabBlockStored\x91", b"\xc0\x90\x01")
            }
        };
        let hash = [0xcc, block];
        let event = [kind, &hash, rest].concat();
        let payload = [
            &b"\x92\xcb"[..],
            &(self.began + self.next as f64).to_be_bytes(),
            b"\x91",
            &event,
        ]
        .concat();
        let batch = (self.next, payload);
        self.next += 1;
        self.kept.push_back(batch.clone());
        while self.kept.len() > self.keeps {
            self.kept.pop_front();
        }
        batch
    }
}

fn host() -> Host {
    Host::new(Naming::Hash(None), 1000)
}

/// Does what the host asks for. Without an engine that can be asked there is no answer.
fn satisfy(host: &mut Host, mut next: Next, engine: &Engine, can_be_asked: bool) {
    let mut asked = 0;
    while next == Next::Replay {
        asked += 1;
        assert!(asked < 10, "asks for ever");
        if !can_be_asked {
            host.no_replay();
            return;
        }
        let from = host.ask();
        next = Next::Go;
        for (number, payload) in engine.kept.iter().filter(|(number, _)| *number >= from) {
            next = host.replayed(*number, payload);
            if next != Next::Go {
                break;
            }
        }
        if next == Next::Go {
            next = host.replay_ended();
        }
    }
}

fn names(host: &mut Host) -> BTreeSet<KeyHash> {
    host.tree().names().collect()
}

fn named(blocks: &BTreeSet<u8>) -> BTreeSet<KeyHash> {
    let name = |block: &u8| KeyHash::of(block.to_string().as_bytes());
    blocks.iter().map(name).collect()
}

#[derive(Clone, Copy, Debug)]
enum Doing {
    Toggle(u8),
    /// The same, and the batch does not arrive.
    Lose(u8),
    Reconnect,
    Restart,
}

fn doings() -> impl Strategy<Value = Vec<Doing>> {
    let block = 0u8..12;
    let one = prop_oneof![
        6 => block.clone().prop_map(Doing::Toggle),
        1 => block.prop_map(Doing::Lose),
        1 => Just(Doing::Reconnect),
        1 => Just(Doing::Restart),
    ];
    prop::collection::vec(one, 0..60)
}

proptest! {
    /// With an engine that can be asked nothing wrong stays behind the next batch, and nothing is missing where the engine still
    /// has all of its batches.
    #[test]
    fn what_is_held_is_what_the_engine_holds(doings in doings(), keeps in 1usize..20) {
        let mut engine = Engine::new(keeps);
        let mut host = host();
        let next = host.connected();
        satisfy(&mut host, next, &engine, true);
        let mut is_whole = true;
        for doing in doings {
            match doing {
                Doing::Toggle(block) => {
                    let (number, payload) = engine.toggle(block);
                    let next = host.live(number, &payload);
                    satisfy(&mut host, next, &engine, true);
                }
                Doing::Lose(block) => {
                    engine.toggle(block);
                    continue;
                }
                Doing::Reconnect => {
                    let next = host.connected();
                    satisfy(&mut host, next, &engine, true);
                }
                Doing::Restart => {
                    // It has counted on before anybody has noticed.
                    engine.restart();
                    (0..5).for_each(|block| { engine.toggle(block); });
                    let next = host.connected();
                    satisfy(&mut host, next, &engine, true);
                }
            }
            let (held, actual) = (names(&mut host), named(&engine.held));
            prop_assert!(held.is_subset(&actual), "{held:?} {actual:?}");
            is_whole &= host.gaps.lost == 0 && engine.next as usize <= keeps;
            if is_whole {
                prop_assert_eq!(held, actual);
            }
        }
    }

    /// With an engine that cannot be asked, nothing wrong stays behind a gap.
    #[test]
    fn without_a_replay_a_gap_forgets_all(doings in doings()) {
        let mut engine = Engine::new(0);
        let mut host = host();
        let next = host.connected();
        satisfy(&mut host, next, &engine, false);
        let mut lost = false;
        for doing in doings {
            match doing {
                Doing::Toggle(block) => {
                    let (number, payload) = engine.toggle(block);
                    let next = host.live(number, &payload);
                    satisfy(&mut host, next, &engine, false);
                    lost = false;
                }
                Doing::Lose(block) => {
                    engine.toggle(block);
                    lost = true;
                }
                Doing::Reconnect => {
                    let next = host.connected();
                    satisfy(&mut host, next, &engine, false);
                }
                // Told apart by its numbers alone, which begin anew: by its first batch, which comes after the connection.
                Doing::Restart => {
                    engine.restart();
                    let next = host.connected();
                    satisfy(&mut host, next, &engine, false);
                    let (number, payload) = engine.toggle(0);
                    let next = host.live(number, &payload);
                    satisfy(&mut host, next, &engine, false);
                    lost = false;
                }
            }
            if !lost {
                prop_assert!(names(&mut host).is_subset(&named(&engine.held)));
            }
        }
    }
}

#[test]
fn gaps_are_counted_by_what_came_of_them() {
    let mut engine = Engine::new(3);
    let mut host = host();
    let next = host.connected();
    satisfy(&mut host, next, &engine, true);
    let live = |host: &mut Host, engine: &mut Engine, skips: u8| {
        (0..skips).for_each(|block| drop(engine.toggle(block)));
        let (number, payload) = engine.toggle(100);
        let next = host.live(number, &payload);
        satisfy(host, next, engine, true);
        host.gaps
    };
    assert_eq!(live(&mut host, &mut engine, 0), Gaps::default());
    let mut expected = Gaps {
        replayed: 1,
        ..Gaps::default()
    };
    assert_eq!(live(&mut host, &mut engine, 1), expected);
    let gaps = live(&mut host, &mut engine, 9);
    assert_eq!(gaps.lost, 1, "{gaps:?}");
    expected = gaps;
    engine.restart();
    let next = host.connected();
    satisfy(&mut host, next, &engine, true);
    expected.restarted += 1;
    assert_eq!(host.gaps, expected);
    assert!(names(&mut host).is_empty());
    assert_eq!(host.live(0, b"\x92\x01\x91\xc0"), Next::Go);
    expected.unreadable += 1;
    assert_eq!(host.gaps, expected);
    assert!(host.take_malformed().is_some());
}

#[test]
fn a_batch_is_the_newest_once() {
    let mut engine = Engine::new(3);
    let mut host = host();
    let next = host.connected();
    satisfy(&mut host, next, &engine, true);
    assert_eq!(host.take_newest(), None);
    let (number, payload) = engine.toggle(1);
    host.live(number, &payload);
    assert_eq!(host.take_newest(), Some(0.0));
    // An engine that is idle: it still has that one, which is known.
    let next = host.check();
    satisfy(&mut host, next, &engine, true);
    assert_eq!(host.take_newest(), None, "is older each time");
}

/// Answers with these of the engine's batches, until something else is to be done.
fn answer(host: &mut Host, engine: &Engine, numbers: &[usize]) -> Next {
    for number in numbers {
        let (number, payload) = &engine.kept[*number];
        match host.replayed(*number, payload) {
            Next::Go => {}
            next => return next,
        }
    }
    Next::Go
}

#[test]
fn a_hole_in_a_replay_is_asked_for_again_and_is_lost_only_where_nothing_new_came() {
    let mut engine = Engine::new(10);
    (0..6).for_each(|block| drop(engine.toggle(block)));
    let mut host = host();
    assert_eq!(host.connected(), Next::Replay);
    assert_eq!(host.ask(), 0);
    assert_eq!(answer(&mut host, &engine, &[0, 1, 3]), Next::Replay);
    assert_eq!((host.ask(), host.gaps), (1, Gaps::default()));
    assert_eq!(answer(&mut host, &engine, &[1, 2, 3]), Next::Go);
    assert_eq!(host.replay_broke(), Next::Replay);
    assert_eq!(host.ask(), 3);
    assert_eq!(answer(&mut host, &engine, &[3, 5]), Next::Go);
    assert_eq!((host.gaps.lost, host.replay_ended()), (1, Next::Go));
    assert_eq!(names(&mut host), named(&[5].into()));
    host.check();
    host.ask();
    assert_eq!(host.replay_broke(), Next::Leave, "has brought nothing new");
    assert_eq!(names(&mut host), named(&[5].into()));
}

#[test]
fn an_engine_that_never_tells_all_is_left() {
    let mut engine = Engine::new(100);
    (0..100).for_each(|block| drop(engine.toggle(block)));
    let mut broken = host();
    broken.connected();
    let mut asked = 0;
    loop {
        asked += 1;
        let from = broken.ask() as usize;
        assert_eq!(answer(&mut broken, &engine, &[from, from + 1]), Next::Go);
        if broken.replay_broke() == Next::Leave {
            break;
        }
    }
    assert_eq!(asked, MOST_PARTS);
    assert_eq!(names(&mut broken).len(), 17);
    let mut contradicted = host();
    contradicted.connected();
    contradicted.ask();
    assert_eq!(answer(&mut contradicted, &engine, &[0]), Next::Go);
    contradicted.check();
    contradicted.ask();
    assert_eq!(contradicted.replayed(50, b""), Next::Replay);
    contradicted.ask();
    assert_eq!(answer(&mut contradicted, &engine, &[0]), Next::Go);
    contradicted.ask();
    assert_eq!(contradicted.replayed(50, b""), Next::Leave);
    assert!(names(&mut contradicted).is_empty());
}

/// The engine's socket drops what a slow reader does not take in time, and the end of the answer may find room.
#[test]
fn an_answer_whose_last_batches_are_lost_is_asked_for_again() {
    let mut engine = Engine::new(10);
    let mut host = host();
    let first = engine.toggle(0);
    let next = host.live(first.0, &first.1);
    satisfy(&mut host, next, &engine, true);
    let rest = (1..6).map(|block| engine.toggle(block));
    let batches: Vec<_> = std::iter::once(first).chain(rest).collect();
    let (number, payload) = &batches[5];
    assert_eq!(host.live(*number, payload), Next::Replay);
    host.ask();
    for (number, payload) in &batches[..3] {
        assert_eq!(host.replayed(*number, payload), Next::Go);
    }
    let next = host.replay_ended();
    assert_eq!(next, Next::Replay);
    satisfy(&mut host, next, &engine, true);
    assert_eq!(host.counts().1.lost, 0);
    assert_eq!(names(&mut host), named(&engine.held));
    // An engine that says no more than that does not have them.
    let last = engine.toggle(6);
    let (number, payload) = engine.toggle(7);
    assert_eq!(host.live(number, &payload), Next::Replay);
    host.ask();
    assert_eq!(host.replayed(batches[5].0, &batches[5].1), Next::Go);
    assert_eq!(host.replay_ended(), Next::Go, "{last:?}");
    assert_eq!(host.counts().1.lost, 1);
}
