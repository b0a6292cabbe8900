// SPDX-License-Identifier: Apache-2.0
//! Orders of policies that README.md, EXPERIMENTS.md and DESIGN.md claim, on short runs.

use std::process::Command;

use serde_json::Value;
use weir_sim::colocation::Params;
use weir_sim::colocation::part3::Written;
use weir_sim::colocation::part4::{self, Seeds, Way};
use weir_sim::document001::{self, Experiment};

/// Six busy minutes of document 001's workload as EXPERIMENTS.md has it; the first two only warm the caches.
const SIX_MINUTES: &str = "--workload document-001 --begin 600m --window 6m --from 2m \
    --hosts 14 --cores 26 --cache-bytes 100000000000 --fetch-base 50ms --fetch-bytes-per-second 50000000 \
    --accept-per-job 7500us --queue-timeout 240s --cache-shards 1024 --deadline 60m --poll 5s --no-orca";

/// What came of the requests of one seed under one policy. Seconds.
#[derive(Debug)]
struct Figures {
    duration: f64,
    low_wait: f64,
    high_wait: f64,
    hits: f64,
}

fn figures(policy: &str, seed: u64) -> Figures {
    let output = Command::new(env!("CARGO_BIN_EXE_weir-sim"))
        .arg("cell")
        .args(SIX_MINUTES.split_whitespace())
        .args(policy.split_whitespace())
        .args(["--seed", &seed.to_string()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let figure = |path: &str| all.pointer(path).and_then(Value::as_f64).expect(path);
    Figures {
        duration: figure("/low/duration_s/mean"),
        low_wait: figure("/low/wait_s/mean"),
        high_wait: figure("/high/wait_s/mean"),
        hits: figure("/hit_ratio"),
    }
}

/// Policies, each of which waits less than the next with low priority.
const BY_LOW_WAIT: [&str; 7] = [
    "--placement clairvoyant",
    "--selection estimate",
    "--selection dynamic --overload slots --hold-eligible 60s --hold-cached 60s",
    "--selection dynamic --overload dagor",
    "--selection dynamic --overload breaker",
    "--selection random",
    "--selection rendezvous",
];

#[test]
fn policies_wait_in_the_order_of_the_experiments_and_the_default_is_near_the_bound() {
    let all = BY_LOW_WAIT.map(|policy| figures(policy, 1));
    let waits: Vec<_> = all.iter().map(|figures| figures.low_wait).collect();
    assert!(waits.is_sorted_by(|a, b| a < b), "{waits:?}");
    let [bound, default, _, _, dynamic, random, _] = &all;
    assert!(default.duration < 1.2 * bound.duration, "{all:?}");
    assert!(default.low_wait < 0.3 * dynamic.low_wait, "{all:?}");
    assert!(default.high_wait < 0.5 * dynamic.high_wait, "{all:?}");
    assert!(random.duration > 2.0 * bound.duration, "{all:?}");
    assert!(random.hits < 0.6 * default.hits, "{all:?}");
}

/// A quarter of an hour of document 001's runs, with so few cores that they tell.
#[test]
fn document_001s_breaker_waits_less_than_dagor_and_both_less_than_nothing_and_more_than_with_dynamic()
 {
    let mut params = document001::Params::default();
    params.set("cores", 20.0).unwrap();
    params.set("daily_swing", 0.01).unwrap();
    let low_wait = |experiment: Experiment| -> f64 {
        let of_seed = |seed| {
            let as_published = document001::Circumstance::AsPublished;
            let run = experiment.run(as_published, &params, seed, 0.25, |_| {});
            let tally = run.unwrap();
            tally.rows().low_wait[0]
        };
        (1..=2).map(of_seed).sum()
    };
    let waits = [
        Experiment::BreakerDynamic,
        Experiment::BreakerBaseline,
        Experiment::DagorBaseline,
        Experiment::BaselineBaseline,
    ]
    .map(low_wait);
    assert!(waits.is_sorted_by(|a, b| a < b), "{waits:?}");
    assert!(waits[0] < 0.3 * waits[1], "{waits:?}");
}

/// Document 004: `latency_slack` keeps the objective where `blocks` breaks it, and lends more at the governor's pace.
#[test]
fn latency_slack_violates_less_than_blocks_and_at_the_governors_pace_ends_sooner() {
    let params = Params::default();
    for (seed, interval_s) in [(1, 10.0), (2, 6.0)] {
        let run = |way| part4::run(way, &params, interval_s, Seeds::both(seed));
        let [document, blocks, slow, slack, _] = Way::ALL.map(run);
        let told = format!("seed {seed}, {interval_s} s");
        assert!(slow.violations < 0.3 * document.violations, "{told}");
        assert!(slack.violations < 0.3 * blocks.violations, "{told}");
        assert!(slack.total_s < blocks.total_s, "{told}");
        assert!(slack.lent > blocks.lent, "{told}");
        assert!(slow.changes < 0.5 * document.changes, "{told}");
    }
}

#[test]
fn document_004s_plan_for_two_nodes_ends_sooner_than_all_jobs_at_once() {
    let params = Params::default();
    let plan = Written::document();
    let (planned, at_once) = (plan.play(&params), plan.at_once().play(&params));
    assert!(
        planned.total_s < 0.9 * at_once.total_s,
        "{planned:?} for {at_once:?}"
    );
}
