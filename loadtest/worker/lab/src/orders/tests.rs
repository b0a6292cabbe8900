// SPDX-License-Identifier: Apache-2.0
//! What RESULTS.md reads from the EMULATED runs of document 003's orders.

use super::*;

/// The core does 154 jobs a second.
const SAMPLE: [u64; 4] = [3_200, 2_000, 1_000, 300];
const CAPACITY: f64 = 154.0;

/// A minute of ever more jobs, by each order.
fn runs(seed: u64) -> Vec<Run> {
    let args = Args {
        seconds: 60,
        rounds: 1,
        emulated_seconds: 60,
        top_rate: 200.0,
        capacity: CAPACITY,
        cores: 1,
        order: Vec::new(),
        seed,
        report: PathBuf::new(),
    };
    let plans: Vec<_> = PLANS.iter().collect();
    emulate(&args, &plans, &[SAMPLE.map(Duration::from_micros)])
}

fn course<'a>(runs: &'a [Run], name: &str) -> &'a Course {
    let run = runs.iter().find(|run| run.plan.name == name);
    &run.expect("an order").course
}

#[test]
fn every_quantum_of_qbs_and_rb_choose_as_priority_does() {
    for seed in 1..=3 {
        let runs = runs(seed);
        let finishes_what_it_began = |run: &&Run| {
            let name = run.plan.name;
            name.starts_with("QBS") || name == "RB"
        };
        for run in runs.iter().filter(finishes_what_it_began) {
            let priority = &course(&runs, "priority").windows;
            assert_eq!(run.course.windows, *priority, "{}", run.plan.name);
        }
    }
}

#[test]
fn round_robin_answers_the_later_the_longer_its_quantum() {
    for seed in 1..=3 {
        let runs = runs(seed);
        let names = [
            "priority",
            "RR-q5000",
            "RR-q10000",
            "RR-q20000",
            "RR-q40000",
        ];
        let means = names.map(|name| course(&runs, name).mean_below_half);
        assert!(means.is_sorted_by(|a, b| a < b), "seed {seed}: {means:?}");
    }
}

#[test]
fn a_thread_for_each_job_answers_latest_and_thrashes_where_the_others_do() {
    for seed in 1..=3 {
        let runs = runs(seed);
        let threads = course(&runs, "thread-per-job").mean;
        for run in &runs {
            let thrashes = run.course.thrash_rate.expect("beyond the limit it does");
            // In so short a run the queue takes longer to show than in that of RESULTS.md.
            let at_the_limit = CAPACITY - 15.0..CAPACITY + 30.0;
            assert!(
                at_the_limit.contains(&thrashes),
                "{}: {thrashes}",
                run.plan.name
            );
            let mean = run.course.mean;
            let is_it = run.plan.name == "thread-per-job";
            assert!(is_it || threads > 1.5 * mean, "{threads} for {mean}");
        }
    }
}
