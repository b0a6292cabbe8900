// SPDX-License-Identifier: Apache-2.0
//! A counter that is finite, and two ways in which it can be broken.

use weir_explorer::{Explored, Model, Sight, explore};

/// Counts around a circle of `0..size`. Calm leads to 0 unless it is at `trap`.
struct Circle {
    size: u32,
    forbidden: Option<u32>,
    trap: Option<u32>,
}

#[derive(Debug)]
enum Move {
    On,
    Twice,
}

impl Model for Circle {
    type State = u32;
    type Action = Move;

    fn start(&self) -> u32 {
        0
    }

    fn steps(&self, state: &u32) -> Vec<(Move, u32)> {
        let size = self.size;
        vec![
            (Move::On, (state + 1) % size),
            (Move::Twice, (state + 2) % size),
        ]
    }

    fn broken(&self, state: &u32) -> Option<String> {
        (Some(*state) == self.forbidden).then(|| format!("at {state}"))
    }

    fn calm(&self, state: &u32) -> u32 {
        match Some(*state) == self.trap {
            true => *state,
            false => state.saturating_sub(1),
        }
    }

    fn is_settled(&self, state: &u32) -> bool {
        *state == 0
    }

    fn sights(&self) -> Vec<Sight<u32>> {
        vec![("three", |state| *state == 3)]
    }
}

const SOUND: Circle = Circle {
    size: 8,
    forbidden: None,
    trap: None,
};

#[test]
fn every_state_is_visited_once_and_a_cycle_ends() {
    let explored = explore(&SOUND, 7).unwrap();
    let expected = Explored {
        states: 8,
        steps: 16,
        depth: 4,
        calm: 7,
    };
    assert_eq!(explored, expected);
}

#[test]
fn a_broken_state_comes_with_the_shortest_way_there() {
    let forbidden = Some(5);
    let broken = explore(&Circle { forbidden, ..SOUND }, 7).unwrap_err();
    assert_eq!(broken.trace, ["On", "Twice", "Twice"]);
    assert_eq!((broken.what.as_str(), broken.state.as_str()), ("at 5", "5"));
}

#[test]
fn a_state_that_never_settles_is_found_on_a_cycle_too() {
    let broken = explore(
        &Circle {
            trap: Some(2),
            ..SOUND
        },
        7,
    )
    .unwrap_err();
    assert_eq!(broken.trace, ["Twice"]);
}

#[test]
#[should_panic(expected = "three")]
fn a_sight_that_is_never_reached_fails_the_model() {
    let _ = explore(&Circle { size: 3, ..SOUND }, 7);
}
