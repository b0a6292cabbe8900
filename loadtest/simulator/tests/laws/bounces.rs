// SPDX-License-Identifier: Apache-2.0
//! Hosts that give requests back.

use std::time::Duration;

use weir_replay::record::Outcome;
use weir_sim::{Ended, Scenario};

use crate::{SECOND, jobs, keys, play, scenario};

/// Many callers, of whom each sees little.
fn crowd(gives_back: bool, seed: u64) -> Scenario {
    Scenario {
        callers: 32,
        gives_back,
        seed,
        ..scenario()
    }
}

/// At four fifths of what eight cores do: every fifth request has another one after it.
fn played(gives_back: bool, seed: u64) -> Vec<Ended> {
    let run = SECOND / 10;
    let all = jobs(3000, 40, run * 3 / 2 / 8, run, seed);
    play(&crowd(gives_back, seed), &keys(40), all)
}

fn mean_wait(ended: &[Ended]) -> Duration {
    let waits = ended.iter().filter_map(|ended| ended.spent.as_ref());
    let sum: Duration = waits.clone().map(|spent| spent.wait).sum();
    sum / waits.count() as u32
}

#[test]
fn many_callers_wait_less_where_hosts_give_back_what_would_wait() {
    for seed in 1..=5 {
        let [without, with] = [false, true].map(|gives_back| played(gives_back, seed));
        assert_eq!(without.iter().map(|ended| ended.bounces).sum::<u32>(), 0);
        assert!(with.iter().any(|ended| ended.bounces > 0));
        let [without, with] = [without, with].map(|ended| mean_wait(&ended));
        assert!(with * 4 < without * 3, "{seed}: {with:?}, {without:?}");
    }
}

#[test]
fn the_last_host_named_takes_what_the_others_gave_back() {
    let named = scenario().policy.ranked_hosts as u32;
    for ended in played(true, 1) {
        assert_eq!(ended.outcome, Outcome::Ok);
        assert!(ended.bounces < named, "{ended:?}");
        assert_eq!(ended.attempts, 1, "a bounce is no attempt of its own");
    }
}
