// SPDX-License-Identifier: Apache-2.0
//! How long it takes from a signal that crosses its threshold to the service's core:
//!
//! `cargo test --release -p weir-governor --test governor reaction -- --ignored --nocapture`

use std::time::{Duration, Instant};

use crate::processes::Numbers;
use crate::shares::{BOTH, JOB, Node, RESERVED};

const TICK: Duration = Duration::from_millis(50);
const TIMES: u32 = 500;

/// The signal is the service's CPU use, and the threshold 50 µs of work in a tick: crossed as soon as it works.
#[test]
#[ignore = "a measurement"]
fn from_the_first_work_of_the_service_to_its_second_core() {
    let Some(node) = Node::new(&[("endless", JOB)]) else {
        return;
    };
    let tick = format!("tick: {}ms\n", TICK.as_millis());
    node.configure_as(
        "blocks: { reserved: 0, small: 1, large: none, large_above: 0.001, small_below: 0.0005 }",
        "  - { name: endless, command: [/bin/sh, -c, 'while :; do :; done'] }\n",
        &tick,
    );
    let _governor = node.start();
    let mut numbers = Numbers(1);
    let mut took = Vec::new();
    for _ in 0..TIMES {
        node.service_works(false);
        node.wait("one core", || node.service_has(&RESERVED));
        // At any moment of a tick.
        std::thread::sleep(Duration::from_micros(100_000 + numbers.below(50_000)));
        let crossed = Instant::now();
        node.service_works(true);
        while !node.service_has(&BOTH) {
            assert!(crossed.elapsed() < Duration::from_secs(5), "never");
        }
        took.push(crossed.elapsed());
    }
    took.sort_unstable();
    let at = |permille: usize| took[(took.len() - 1) * permille / 1000];
    println!(
        "{TIMES} times at a tick of {TICK:?}: p50 {:?}, p99 {:?}, most {:?}; a tick and 5 ms are {:?}",
        at(500),
        at(990),
        at(1000),
        TICK + Duration::from_millis(5)
    );
}
