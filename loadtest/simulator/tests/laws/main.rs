// SPDX-License-Identifier: Apache-2.0
//! What holds of every simulation.

mod bounces;
mod bounds;
mod callers;
mod capture;
mod cell;
mod conservation;
mod determinism;
mod fleet;
mod full_caches;
mod node;
mod overload;
mod prompts;
mod queueing;
mod refusals;
mod told;
mod zones;

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use weir_executor::{Eviction, Order, Settings, Timing};
use weir_fleet::settings::Dagor;
use weir_policy::overload::{breakwater, dynamic_breaker};
use weir_policy::{Overload, Policy, Selection};
use weir_replay::backoff::Backoff;
use weir_sim::scenario::{Accept, Placement, Timeouts, Zones};
use weir_sim::workload::{HIGH, Job, Key, LOW, Work};
use weir_sim::{Ended, Scenario, simulate};

const SECOND: Duration = Duration::from_secs(1);

/// Small, quick and without trouble.
fn scenario() -> Scenario {
    Scenario {
        hosts: 4,
        host: Settings {
            cores: 2,
            cache_bytes: 50_000_000,
            max_queued: 10_000,
            change_log: 1024,
            order: Order::Priority,
            eviction: Eviction::default(),
        },
        language_model: None,
        timing: Timing {
            fetch_base: Duration::from_millis(5),
            fetch_bytes_per_second: 100_000_000,
        },
        accept: Accept::AT_ONCE,
        plan: None,
        planner: None,
        preemption: None,
        troubles: Vec::new(),
        callers: 2,
        heavy_caller: None,
        placement: Placement::Callers,
        policy: Policy::default(),
        dagor: Dagor::default(),
        cache_shards: 4,
        poll: SECOND,
        publish: Duration::from_millis(100),
        report: SECOND,
        breakwater: breakwater::Params::default(),
        signal: weir_sim::scenario::Signal::Jobs,
        orca: true,
        gives_back: false,
        ejects: true,
        network: Duration::from_micros(250),
        zones: Zones::default(),
        backoff: Backoff {
            base: Duration::from_millis(100),
            cap: 10 * SECOND,
        },
        attempts: u32::MAX,
        timeouts: Timeouts {
            deadline: 15 * SECOND,
            connect: None,
            read: None,
            queue: None,
        },
        seed: 1,
    }
}

fn policy(selection: Selection, overload: Overload) -> Policy {
    Policy {
        selection,
        overload,
        ..Policy::default()
    }
}

/// Every overload policy, with breakers that close here.
fn overloads() -> [Overload; Overload::ALL.len()] {
    Overload::ALL.map(|overload| match overload {
        Overload::Breaker { .. } => Overload::Breaker { queued_jobs: 3 },
        Overload::DynamicBreaker(params) => Overload::DynamicBreaker(dynamic_breaker::Params {
            queued_jobs: 3,
            least_queued_jobs: 1,
            ..params
        }),
        Overload::None | Overload::Dagor | Overload::Breakwater | Overload::Slots => overload,
    })
}

fn exponential(rng: &mut SmallRng, mean: Duration) -> Duration {
    mean.mul_f64(-(1.0 - rng.random::<f64>()).ln())
}

fn keys(n: usize) -> Vec<Key> {
    (0..n)
        .map(|key| Key::new(&format!("project-{key}")))
        .collect()
}

/// Poisson arrivals of exponential runs on `n` keys, a third of them of priority high, every fifth
/// followed by another.
fn jobs(n: usize, keys: u32, between: Duration, run: Duration, seed: u64) -> Vec<Job> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut at = Duration::ZERO;
    let mut job = |number: usize| {
        at += exponential(&mut rng, between);
        let high = rng.random_ratio(1, 3);
        let job = |at, work| Job {
            at,
            key: (keys > 0).then(|| number as u32 * 7919 % keys),
            version: 0,
            class: if high { HIGH } else { LOW },
            user: None,
            sender: None,
            bytes: 1_000_000,
            work,
            then: None,
        };
        let then = job(run, Work::Whole(run));
        Job {
            then: number.is_multiple_of(5).then(|| Box::new(then)),
            ..job(at, Work::Whole(exponential(&mut rng, run)))
        }
    };
    (0..n).map(&mut job).collect()
}

fn play(scenario: &Scenario, keys: &[Key], jobs: Vec<Job>) -> Vec<Ended> {
    let mut all = Vec::new();
    simulate(scenario, keys, jobs, |ended| all.push(ended)).unwrap();
    all
}
