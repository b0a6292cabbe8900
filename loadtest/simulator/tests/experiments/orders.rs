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
        let [document, blocks, slow, slack, ..] = Way::ALL.map(run);
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

/// What part 3.2 says of its first try, and what it suggests.
#[test]
fn document_004s_freqmine_is_slower_beside_fft_and_more_cores_for_canneal_or_freqmine_end_sooner() {
    let params = Params::default();
    let document = Written::document().play(&params);
    for cores in [7, 5] {
        let beside = Written::document().fft_beside_freqmine(cores).play(&params);
        assert!(
            beside.jobs_s[3] > 1.1 * document.jobs_s[3],
            "{cores} cores: {beside:?}"
        );
    }
    for job in ["canneal", "freqmine"] {
        let more = Written::document().with_all_cores(job).play(&params);
        assert!(more.nodes_s[1] < document.nodes_s[1], "{job}: {more:?}");
        assert!(more.total_s < document.total_s, "{job}: {more:?}");
        assert_eq!(more.nodes_s[0], document.nodes_s[0], "{job}: {more:?}");
    }
}

#[test]
fn document_004s_static_plan_keeps_the_objective_and_its_runs_differ_by_chance() {
    let params = Params::default();
    let runs: Vec<_> = (1..=3)
        .map(|seed| Written::document().play_by_chance(&params, seed))
        .collect();
    let expected = Written::document().play(&params);
    for run in &runs {
        assert_eq!(run.violations, 0.0, "{run:?}");
        assert!(run.history.intervals.len() > 15, "{run:?}");
        assert!((run.total_s / expected.total_s - 1.0).abs() < 0.02);
    }
    assert!(runs[0].jobs_s != runs[1].jobs_s && runs[1].jobs_s != runs[2].jobs_s);
    let again = Written::document().play_by_chance(&params, 1);
    assert_eq!(again, runs[0]);
}

/// Part 4.2: at most one core for the duration of one job, and only while memcached does not need two.
#[test]
fn document_004s_blocks_waste_at_most_a_core_while_the_last_job_runs() {
    let params = Params::default();
    for interval_s in [10.0, 6.0] {
        let run = part4::run(Way::Document, &params, interval_s, Seeds::document(1));
        let waste = run.waste;
        let longest_last = run.jobs_s[1].max(run.jobs_s[4]);
        assert!(
            waste.bound_s > 0.0 && waste.bound_s < longest_last,
            "{waste:?}"
        );
        assert!(
            waste.spare_s > 0.0 && waste.spare_s < waste.bound_s,
            "{waste:?}"
        );
        // Between a job's end and the next look, a second at most for each job and core.
        assert!(waste.idle_s < 12.0, "{waste:?}");
    }
}
