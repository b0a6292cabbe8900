// SPDX-License-Identifier: Apache-2.0
//! Every order finds what the reference finds, and the orders differ as RESULTS.md reads.

use std::collections::BTreeMap;

use super::systems::Division;
use super::*;

/// Ten times faster than document 003's, so that a short run has cars enough for tolls.
const CAPACITY: f64 = 1_600.0;

fn args(seed: u64) -> Args {
    Args {
        seconds: 20,
        top_rate: 2_000.0,
        capacity: CAPACITY,
        source_batch: 1_000,
        real: false,
        order: Vec::new(),
        input_wait: Vec::new(),
        shed_above: Vec::new(),
        seed,
        report: PathBuf::new(),
    }
}

/// What was found, and the course of every order that the arguments want.
fn work(args: &Args, input: Input) -> (Found, BTreeMap<&'static str, Course>) {
    let reports = &args.reports();
    let expected = reference::of(reports);
    let costs = Costs::new(reports, args.capacity);
    let work = Work {
        reports,
        costs,
        input,
    };
    let course = |plan: &'static Plan| {
        let course = course(args, plan, work, Clock::Simulated, &expected);
        (plan.name, course.expect("as the reference"))
    };
    let courses = PLANS
        .iter()
        .filter(|plan| args.wants(plan))
        .map(course)
        .collect();
    (expected, courses)
}

#[test]
fn every_order_finds_the_tolls_and_balances_of_the_reference() {
    for seed in 1..=2 {
        let args = args(seed);
        // Each course is compared with the reference on the way.
        let (found, courses) = work(&args, Input::Asynchronous(Duration::ZERO));
        assert_eq!(courses.len(), PLANS.len());
        assert!(found.tolls.iter().any(|toll| toll.toll > 0), "nobody pays");
        assert!(found.tolls.iter().any(|toll| toll.accident), "no accident");
        assert!(found.balances.iter().any(|balance| balance.balance > 0));
    }
}

#[test]
fn a_thread_for_each_actor_finds_them_too() {
    let args = Args {
        seconds: 2,
        top_rate: 4_000.0,
        capacity: 40_000.0,
        ..args(1)
    };
    let reports = args.reports();
    let expected = reference::of(&reports);
    let work = Work {
        reports: &reports,
        costs: Costs::new(&reports, args.capacity),
        input: Input::Asynchronous(Duration::ZERO),
    };
    for name in ["thread-per-job", "QBS-q500"] {
        let plan = PLANS.iter().find(|plan| plan.name == name);
        let course = course(&args, plan.expect("a plan"), work, Clock::Real, &expected);
        assert_eq!(course.expect("as the reference").cut_off, 0, "{name}");
    }
}

#[test]
fn qbs_answers_the_later_the_longer_its_basic_quantum_beyond_the_limit() {
    for seed in 1..=3 {
        let args = Args {
            seconds: 120,
            top_rate: 200.0,
            capacity: 160.0,
            order: ["QBS", "RB", "priority"].map(str::to_owned).to_vec(),
            ..args(seed)
        };
        let (_, courses) = work(&args, Input::Asynchronous(Duration::ZERO));
        let names = ["QBS-q500", "QBS-q5000", "QBS-q20000", "priority"];
        let means = names.map(|name| courses[name].mean);
        assert!(means.is_sorted(), "seed {seed}: {means:?}");
        assert!(courses["RB"].mean < means[0], "seed {seed}");
    }
}

#[test]
fn a_core_that_waits_for_its_input_thrashes_sooner() {
    let args = Args {
        order: ["QBS-q500", "RR-q5000", "RB"].map(str::to_owned).to_vec(),
        ..args(1)
    };
    // A report takes 625 µs of the core; reading it a third of that.
    let wait = Duration::from_micros(208);
    let (_, asynchronous) = work(&args, Input::Asynchronous(wait));
    let (_, synchronous) = work(&args, Input::Synchronous(wait));
    for (name, synchronous) in synchronous {
        let mean = asynchronous[name].mean;
        assert!(mean < synchronous.mean, "{name}: {mean} {synchronous}");
    }
}

/// The tolls and their responses of an order in a division, and what each system shed.
fn divided(args: &Args, division: Division, limit: usize) -> (Found, Course, Vec<usize>) {
    let reports = &args.reports();
    let work = Work {
        reports,
        costs: Costs::new(reports, args.capacity),
        input: Input::Asynchronous(Duration::ZERO),
    };
    let order = PLANS.iter().find(|plan| args.wants(plan)).unwrap().order();
    let order = run::plan(order, args.source_batch);
    let outcome = systems::run(&order, work, division, limit);
    let (found, outcomes) = outcome.results.sorted();
    let course = Course::new(&outcomes, args.top_rate, args.lasts(), Duration::ZERO);
    (found, course, outcome.shed)
}

#[test]
fn one_system_is_the_workflow_and_three_find_the_same() {
    for order in ["QBS-q500", "RB", "RR-q20000"] {
        let args = Args {
            order: vec![order.to_owned()],
            ..args(1)
        };
        let (expected, courses) = work(&args, Input::Asynchronous(Duration::ZERO));
        let (found, course, shed) = divided(&args, Division::One, usize::MAX);
        assert!(found == expected, "{order}: other results");
        assert_eq!(shed, [0]);
        assert_eq!(course.windows, courses[order].windows, "{order}");
        let (found, three, shed) = divided(&args, Division::Three, usize::MAX);
        assert!(found == expected, "{order}: other results of three");
        assert_eq!(shed, [0; 3]);
        assert!(
            three.mean < course.mean,
            "{order}: {} {}",
            three.mean,
            course.mean
        );
    }
}

#[test]
fn a_system_that_is_behind_sheds_and_answers_sooner() {
    let args = Args {
        order: vec!["QBS-q500".to_owned()],
        // Behind from a fifth of the run on.
        capacity: CAPACITY / 4.0,
        ..args(1)
    };
    let (all, behind, _) = divided(&args, Division::One, usize::MAX);
    let (some, shedding, shed) = divided(&args, Division::One, 100);
    assert!(shed[0] > 0 && shed[0] < args.reports().len(), "{shed:?}");
    assert!(
        shedding.mean < behind.mean / 2.0,
        "{} {}",
        shedding.mean,
        behind.mean
    );
    assert!(!some.tolls.is_empty() && some.tolls.len() < all.tolls.len());
    let (_, three, shed_by_three) = divided(&args, Division::Three, 100);
    assert!(
        shed_by_three.iter().max() < shed.iter().max(),
        "{shed_by_three:?}"
    );
    assert!(three.mean < behind.mean);
}
