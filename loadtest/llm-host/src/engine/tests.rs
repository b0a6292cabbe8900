// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;
use crate::prompt::{BlockId, Prompt};

const MS: Duration = Duration::from_millis(1);

/// A token is read in 1 ms and written in 10 ms; blocks of 10 tokens.
fn engine(slots: usize, capacity_blocks: usize) -> Engine {
    let settings = Settings {
        slots,
        max_queued: 3,
        capacity_blocks,
        block_tokens: 10,
        timing: Timing::new(1000.0, 10.0, 1.0),
        change_log: 100,
    };
    Engine::new(settings, 1)
}

fn sequence(blocks: &[u64], tokens: u64, output_tokens: u64) -> Sequence {
    let blocks = blocks.iter().copied().map(BlockId).collect();
    Sequence {
        prompt: Prompt {
            blocks,
            tokens,
            text: [].into(),
        },
        output_tokens,
        key: None,
        read_by: None,
    }
}

#[test]
fn a_prompt_that_another_host_has_read_is_not_read_again_and_can_be_found_here() {
    let mut engine = engine(10, 100);
    let asked = Sequence {
        read_by: Some(([127, 0, 0, 1], 1).into()),
        ..sequence(&[1, 2], 25, 4)
    };
    engine.submit(Duration::ZERO, asked).unwrap();
    let later = Duration::from_secs(1);
    engine.submit(later, sequence(&[1, 2, 3], 35, 4)).unwrap();
    let ended = engine.advance(2 * later);
    let spent = ended.iter().map(|(_, spent)| spent);
    let spent: Vec<_> = spent.map(|it| (it.hit_blocks, it.prefill)).collect();
    assert_eq!(spent, [(0, MS), (2, 15 * MS)]);
}

#[test]
fn prefills_follow_one_another_and_decodes_overlap() {
    let mut engine = engine(10, 100);
    for first in [1, 2] {
        let asked = sequence(&[first, first + 10], 25, 4);
        engine.submit(Duration::ZERO, asked).unwrap();
    }
    assert_eq!(
        (
            engine.load(Duration::ZERO).waiting,
            engine.load(Duration::ZERO).running
        ),
        (1, 1)
    );
    let ended = engine.advance(1000 * MS);
    let times: Vec<_> = ended
        .iter()
        .map(|(_, s)| (s.wait, s.prefill, s.decode))
        .collect();
    assert_eq!(
        times,
        [
            (Duration::ZERO, 25 * MS, 40 * MS),
            (25 * MS, 25 * MS, 40 * MS)
        ]
    );
}

#[test]
fn what_is_found_need_not_be_read() {
    let mut engine = engine(10, 100);
    engine
        .submit(Duration::ZERO, sequence(&[1, 2, 3], 35, 0))
        .unwrap();
    engine
        .submit(Duration::ZERO, sequence(&[1, 2, 9], 35, 0))
        .unwrap();
    let ended = engine.advance(1000 * MS);
    let found: Vec<_> = ended
        .iter()
        .map(|(_, s)| (s.hit_blocks, s.prefill))
        .collect();
    assert_eq!(found, [(0, 35 * MS), (2, 15 * MS)]);
}

#[test]
fn slots_and_room_keep_the_first_in_the_queue_waiting() {
    for (slots, capacity) in [(1, 100), (10, 5)] {
        let mut engine = engine(slots, capacity);
        for first in [1, 2] {
            // Three blocks each with the answer.
            let asked = sequence(&[first, first + 10], 20, 10);
            engine.submit(Duration::ZERO, asked).unwrap();
        }
        assert_eq!(engine.load(100 * MS).waiting, 1);
        // 20 ms of reading, 100 ms of writing.
        let waits: Vec<_> = engine
            .advance(1000 * MS)
            .iter()
            .map(|(_, s)| s.wait)
            .collect();
        assert_eq!(
            waits,
            [Duration::ZERO, 120 * MS],
            "{slots} slots, {capacity} blocks"
        );
    }
}

#[test]
fn what_can_never_fit_and_a_full_queue_are_refused() {
    let mut engine = engine(1, 3);
    let refused = engine.submit(Duration::ZERO, sequence(&[1, 2], 25, 6));
    let too_long = Refused::TooLong {
        needed: 4,
        capacity: 3,
    };
    assert_eq!(refused.unwrap_err(), too_long);
    for n in 0..4 {
        engine
            .submit(Duration::ZERO, sequence(&[n], 10, 10))
            .unwrap();
    }
    let refused = engine.submit(Duration::ZERO, sequence(&[9], 10, 10));
    assert_eq!(refused.unwrap_err(), Refused::Full(3));
}

#[test]
fn who_leaves_makes_room_for_the_next_and_leaves_no_half_read_prompt() {
    let mut engine = engine(1, 100);
    let first = engine
        .submit(Duration::ZERO, sequence(&[1, 2], 20, 10))
        .unwrap();
    engine
        .submit(Duration::ZERO, sequence(&[1, 3], 20, 10))
        .unwrap();
    engine.cancel(5 * MS, first);
    let ended = engine.advance(1000 * MS);
    assert_eq!(ended.len(), 1);
    assert_eq!((ended[0].1.wait, ended[0].1.hit_blocks), (5 * MS, 0));
    assert_eq!(engine.load(1000 * MS).kv_usage, 0.0);
}

#[derive(Debug, Clone)]
enum Act {
    Submit(Vec<u64>, u64, u64),
    Cancel(usize),
    Wait(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let submit = (prop::collection::vec(0u64..3, 0..5), 1u64..10, 0u64..30);
    let act = prop_oneof![
        4 => submit.prop_map(|(turns, rest, output)| Act::Submit(turns, rest, output)),
        1 => any::<usize>().prop_map(Act::Cancel),
        4 => (0u64..200).prop_map(Act::Wait),
    ];
    prop::collection::vec(act, 1..80)
}

proptest! {
    #[test]
    fn everybody_is_answered_in_the_end_and_nothing_is_held(
        acts in acts(), slots in 1usize..4, capacity in 8usize..20,
    ) {
        let mut engine = engine(slots, capacity);
        let mut now = Duration::ZERO;
        let (mut open, mut accepted, mut left, mut ended) = (Vec::new(), 0, 0, Vec::new());
        for act in acts {
            match act {
                Act::Submit(turns, rest, output) => {
                    let blocks: Vec<_> = turns.iter().scan(1u64, |before, turn| {
                        *before = *before * 4 + turn;
                        Some(*before)
                    }).collect();
                    let tokens = blocks.len() as u64 * 10 + rest;
                    if let Ok(id) = engine.submit(now, sequence(&blocks, tokens, output)) {
                        open.push(id);
                        accepted += 1;
                    }
                }
                Act::Cancel(n) if !open.is_empty() => {
                    let id = open.swap_remove(n % open.len());
                    ended.extend(engine.advance(now));
                    if !ended.iter().any(|(done, _)| *done == id) {
                        engine.cancel(now, id);
                        left += 1;
                    }
                }
                Act::Cancel(_) => {}
                Act::Wait(ms) => now += u32::try_from(ms).unwrap() * MS,
            }
            let load = engine.load(now);
            prop_assert!(load.running <= slots && load.kv_usage <= 1.0);
            prop_assert!(load.cached_blocks <= capacity);
            prop_assert!(engine.next_due().is_none_or(|due| due > now));
        }
        ended.extend(engine.advance(now));
        while let Some(due) = engine.next_due() {
            now = due;
            ended.extend(engine.advance(now));
        }
        prop_assert_eq!(ended.len() + left, accepted);
        let load = engine.load(now);
        prop_assert_eq!((load.waiting, load.running, load.kv_usage), (0, 0, 0.0));
        // Prefills do not overlap, and begin in the order of arrival.
        ended.sort_by_key(|(id, _)| *id);
        for pair in ended.windows(2) {
            let [(_, one), (_, next)] = pair else { unreachable!() };
            prop_assert!(one.begun + one.prefill <= next.begun);
        }
    }
}
