// SPDX-License-Identifier: Apache-2.0
//! Hosts of a language model: keys are lists of blocks, and what is found is what was read there before.

use std::collections::HashSet;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use weir_llm_host::{Settings, Timing};
use weir_policy::{Overload, Selection, Serves};
use weir_sim::workload::{Job, Key, LOW, Work};
use weir_sim::{Ended, Scenario};

use crate::{SECOND, play, policy, scenario};

const BLOCK: u64 = 512 * 4;

fn fleet(hosts: usize, selection: Selection) -> Scenario {
    let settings = Settings {
        slots: 64,
        max_queued: 10_000,
        capacity_blocks: 2500,
        block_tokens: 512,
        timing: Timing::new(8000.0, 25.0, 1.0),
        change_log: 65_536,
    };
    let mut scenario = scenario();
    scenario.hosts = hosts;
    scenario.language_model = Some(settings);
    scenario.policy = policy(selection, Overload::None);
    scenario.timeouts.deadline = 600 * SECOND;
    scenario
}

/// Turns of conversations: each repeats all blocks of the turn before and adds some.
fn conversations(turns: usize, between: Duration, seed: u64) -> (Vec<Key>, Vec<Job>, usize) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut open: Vec<Vec<String>> = Vec::new();
    let (mut keys, mut jobs) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
    let mut findable = 0;
    for turn in 0..turns {
        let new = open.is_empty() || rng.random_ratio(1, 3);
        let at = match new {
            true => {
                open.push(Vec::new());
                open.len() - 1
            }
            false => rng.random_range(0..open.len()),
        };
        let blocks = &mut open[at];
        for block in 0..rng.random_range(1..8) {
            blocks.push(format!("{turn}-{block}"));
        }
        findable += blocks
            .iter()
            .take_while(|block| seen.contains(*block))
            .count();
        seen.extend(blocks.iter().cloned());
        keys.push(Key::list(&blocks.join(";")));
        jobs.push(Job {
            at: between * turn as u32,
            key: Some(turn as u32),
            version: 0,
            class: LOW,
            user: None,
            sender: None,
            bytes: blocks.len() as u64 * BLOCK + 100,
            work: Work::Whole(SECOND),
            then: None,
        });
    }
    (keys, jobs, findable)
}

fn found(all: &[Ended]) -> usize {
    all.iter().map(|ended| ended.found).sum()
}

#[test]
fn one_host_with_room_finds_all_that_can_be_found_and_reads_the_rest() {
    let (keys, jobs, findable) = conversations(200, 60 * SECOND, 1);
    let tokens: Vec<_> = jobs.iter().map(|job| job.bytes / 4).collect();
    let mut scenario = fleet(1, Selection::Dynamic);
    if let Some(model) = &mut scenario.language_model {
        model.capacity_blocks = 100_000;
    }
    let all = play(&scenario, &keys, jobs);
    assert!(findable > 0);
    assert_eq!(found(&all), findable);
    for ended in &all {
        let spent = ended.spent.as_ref().unwrap();
        let read = tokens[ended.index] - 512 * ended.found as u64;
        assert_eq!(spent.fetch, Duration::from_micros(125) * read as u32);
        assert_eq!((spent.run, spent.wait), (SECOND, Duration::ZERO));
    }
}

#[test]
fn who_goes_by_prefixes_finds_nearly_all_and_who_draws_finds_little() {
    let (keys, jobs, findable) = conversations(300, SECOND, 2);
    let share = |selection| {
        let all = play(&fleet(8, selection), &keys, jobs.clone());
        assert_eq!(all.len(), jobs.len());
        found(&all) as f64 / findable as f64
    };
    let (dynamic, random) = (share(Selection::Dynamic), share(Selection::Random));
    assert!(dynamic > 0.9 && random < 0.5, "{dynamic} {random}");
}

/// Time to the first token by `estimate`, in seconds.
fn mean(serves: Serves, callers: usize, seed: u64) -> f64 {
    let (keys, jobs, _) = conversations(400, SECOND / 3, seed);
    let mut scenario = fleet(4, Selection::Estimate);
    scenario.policy.serves = serves;
    scenario.callers = callers;
    let all = play(&scenario, &keys, jobs);
    let first_token = |ended: &Ended| {
        let spent = ended.spent.as_ref().unwrap();
        (spent.wait + spent.fetch).as_secs_f64()
    };
    all.iter().map(first_token).sum::<f64>() / all.len() as f64
}

/// Windows that the rule was not tried on: its parameters were set by Mooncake's conversations.
#[test]
fn first_tokens_come_sooner_where_what_is_to_be_read_counts_and_not_the_jobs_that_are_there() {
    for callers in [1, 8] {
        let of_all = |serves| -> f64 { (4..8).map(|seed| mean(serves, callers, seed)).sum() };
        let (jobs, prompts) = (of_all(Serves::Jobs), of_all(Serves::Prompts));
        assert!(prompts < 0.95 * jobs, "{callers} callers: {prompts} {jobs}");
    }
}

#[test]
fn eight_callers_who_report_what_is_to_be_read_wait_little_longer_than_one() {
    let of_all = |callers| -> f64 {
        (4..8)
            .map(|seed| mean(Serves::Prompts, callers, seed))
            .sum()
    };
    let (one, eight) = (of_all(1), of_all(8));
    assert!(eight < 1.15 * one, "{eight} {one}");
}

#[test]
fn the_same_seed_finds_the_same() {
    let (keys, jobs, _) = conversations(150, SECOND / 5, 3);
    let scenario = fleet(4, Selection::Dynamic);
    let told = || format!("{:?}", play(&scenario, &keys, jobs.clone()));
    assert_eq!(told(), told());
}
