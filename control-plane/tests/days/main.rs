// SPDX-License-Identifier: Apache-2.0
//! SIMULATED: hours and days of the whole control loop in virtual time, by seed, with faults at random.
//!
//! ```text
//!  Host (simulated queue) ── page ──> scrape::read ──> State ── Snapshot ──> xds::Session ──┐  net: late, cut,
//!    ^  └── answer, load header ─┐                       ^                                  │  told twice
//!    │                           v                       └──── reports ── streams ──────────┤
//!    └────────────────────── Sidecar: weir_filter::Root of each VM <────────────────────────┘
//! ```
//! Hosts, the network, Envoy and the lock are simulated. All that decides is the product's: the filter with its lease,
//! shared data, streams and records, the reading of pages, weir-control's state, tables and the streams' protocol. It
//! is here because weir-control depends on the filter, so that no arrow points up.
//!
//! [`laws`] hold after every step. A failing seed is printed with the command that plays it again.
//!
//! | variable | |
//! |---|---|
//! | `WEIR_DAYS_SEED` | only this seed |
//! | `WEIR_DAYS_MINUTES` | virtual minutes of faults a seed |
//! | `WEIR_NIGHTLY` | more seeds for longer: four virtual hours |
//! | `WEIR_RUNS` | so many seeds, half an hour each: with the 100 of `cargo xtask test --long` two virtual days |

mod control;
mod faults;
mod host;
mod laws;
mod request;
mod sidecar;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use world::World;

/// Seeds that are played for every change, an odd one with two replicas, and virtual minutes of each.
const SEEDS: u64 = 4;
const MINUTES: u64 = 5;
/// And each night.
const NIGHTLY_SEEDS: u64 = 12;
const NIGHTLY_MINUTES: u64 = 20;
/// With `cargo xtask test --long`, which sets how often: two virtual days.
const RUNS: &str = "WEIR_RUNS";
const LONG_MINUTES: u64 = 30;

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is no number")),
    )
}

fn play(seed: u64, minutes: u64) -> World {
    let mut world = World::new(seed);
    let played = catch_unwind(AssertUnwindSafe(|| {
        world.run(Duration::from_secs(60 * minutes));
        world.calm_down();
    }));
    if let Err(panic) = played {
        let at = world.now().as_secs_f64();
        println!(
            "seed {seed} failed at {at} s of virtual time. Again: WEIR_DAYS_SEED={seed} WEIR_DAYS_MINUTES={minutes} \
             cargo test -p weir-control --test days -- --nocapture"
        );
        resume_unwind(panic);
    }
    world
}

#[test]
fn the_laws_hold_at_every_step_whatever_fails_and_all_is_admitted_again_when_nothing_does() {
    let (seeds, minutes) = match variable(RUNS) {
        Some(runs) => (runs, LONG_MINUTES),
        None if weir_needs::is_nightly() => (NIGHTLY_SEEDS, NIGHTLY_MINUTES),
        None => (SEEDS, MINUTES),
    };
    let minutes = variable("WEIR_DAYS_MINUTES").unwrap_or(minutes);
    let seeds = match variable("WEIR_DAYS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..seeds,
    };
    let of_seed = |seed| {
        let began = Instant::now();
        let world = play(seed, minutes);
        println!("seed {seed}: {}, {:?}", world.tally, began.elapsed());
        world.tally.assert_telling();
        world.tally.shed
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (seeds, mut shed): (Vec<u64>, _) = (seeds.collect(), Vec::new());
    for side_by_side in seeds.chunks(cores) {
        std::thread::scope(|scope| {
            let play = |seed: &u64| {
                let seed = *seed;
                scope.spawn(move || of_seed(seed))
            };
            let played: Vec<_> = side_by_side.iter().map(play).collect();
            let ended = played.into_iter().map(|thread| thread.join());
            shed.extend(ended.map(|shed| shed.unwrap_or_else(|panic| resume_unwind(panic))));
        });
    }
    let telling = shed.len() < SEEDS as usize || shed.iter().any(|shed| *shed > 100);
    assert!(telling, "there was no overload: {shed:?}");
}

#[test]
fn a_seed_plays_the_same_again() {
    let [first, second] = [0, 0].map(|_| play(9, 2).tally);
    assert_eq!(first, second);
}
