// SPDX-License-Identifier: Apache-2.0
//! Overload policies do no harm below saturation, and levels help beyond it.

use std::time::Duration;

use weir_executor::Settings;
use weir_fleet::settings::Control;
use weir_policy::{Overload, Selection};
use weir_sim::overload::{Case, Figures, HIGH_SHARE, Phase, Requests, Way, play};
use weir_sim::{Ended, Scenario, simulate};

use crate::{SECOND, jobs, keys, play as simulated, policy, scenario};

/// A fleet of eight cores.
fn small(way: &str, selection: Selection) -> Scenario {
    let all = Way::all();
    let way = all.iter().find(|known| known.name == way).unwrap();
    let scenario = way.scenario(selection, 3, 1);
    Scenario {
        hosts: 4,
        host: Settings {
            cores: 2,
            ..scenario.host.clone()
        },
        ..scenario
    }
}

/// Load as usual, then twice what can be done.
fn twice() -> Case {
    let phase = |lasts, load| Phase {
        lasts: lasts * SECOND,
        load,
    };
    Case {
        name: "2x".to_owned(),
        phases: vec![phase(10, 0.8), phase(60, 2.0)],
        high_share: HIGH_SHARE,
    }
}

fn played(case: &Case, way: &str, selection: Selection) -> Figures {
    play(case, &small(way, selection)).unwrap()
}

#[test]
fn below_saturation_no_policy_changes_anything() {
    let case = Case::constant(0.6, 40 * SECOND);
    for selection in [Selection::Estimate, Selection::Dynamic, Selection::Baseline] {
        let played = |way: &Way| played(&case, way.name, selection);
        let [none, others @ ..] = Way::all();
        let all_in_s = played(&none).all_in_s();
        // The paper's threshold is for tasks of 500 ms, and is crossed at any load. Credits keep requests from a host where
        // some wait already.
        let moves = |way: &&Way| way.name == "dagor-paper" || way.name.starts_with("breakwater");
        for way in others.iter().filter(|way| !moves(way)) {
            let figures = played(way);
            assert_eq!(figures.all_in_s(), all_in_s, "{} {selection:?}", way.name);
            assert_eq!(figures.reversals, 0.0);
        }
    }
}

#[test]
fn below_saturation_levels_and_credits_refuse_next_to_nothing_and_nobody_waits_for_it() {
    for selection in [Selection::Estimate, Selection::Dynamic] {
        let (_, without) = below_saturation("none", selection);
        for way in [
            "dagor-paper",
            "dagor-stalled-jobs",
            "dagor-steady",
            "breakwater",
        ] {
            let (refused, wait) = below_saturation(way, selection);
            let told = format!("{way} {selection:?}: {refused} refused, {wait} s for {without} s");
            assert!(refused <= 0.05 && wait <= 1.2 * without, "{told}");
        }
    }
}

/// Refused attempts a request, and the mean of what is neither fetching nor running in seconds, at 0.85 of what the
/// fleet can do.
fn below_saturation(way: &str, selection: Selection) -> (f64, f64) {
    let all = Way::all();
    let way = all.iter().find(|known| known.name == way).unwrap();
    let mut scenario = way.scenario(selection, 8, 1);
    // Twice what a job takes; the paper's 20 ms are for servers that do hundreds a second.
    scenario.dagor.params.threshold = SECOND / 2;
    scenario.dagor.params.alpha = 0.3;
    let case = Case::constant(0.85, 60 * SECOND);
    let requests = Requests::new(&case, scenario.hosts * scenario.host.cores, scenario.seed);
    let (mut count, mut refused, mut waited) = (0.0, 0.0, 0.0);
    let tell = |ended: Ended| {
        let served = ended
            .spent
            .map_or(Duration::ZERO, |spent| spent.fetch + spent.run);
        count += 1.0;
        refused += f64::from(ended.shed_attempts);
        waited += ended.duration.saturating_sub(served).as_secs_f64();
    };
    simulate(&scenario, &Requests::keys(), requests, tell).unwrap();
    (refused / count, waited / count)
}

/// Two thirds of the requests are for one key, and more than its host can do; the others' hosts have cores to spare.
#[test]
fn with_levels_a_popular_key_does_not_drown_its_host_while_others_idle() {
    let popular = || {
        let mut jobs = jobs(4000, 31, SECOND / 56, SECOND / 10, 5);
        let mut popular = 0;
        for job in &mut jobs {
            popular += 2;
            if popular % 3 != 0 {
                job.key = Some(0);
            }
        }
        jobs
    };
    for selection in [Selection::Dynamic, Selection::Estimate] {
        for control in [Control::Paper, Control::StalledJobs, Control::Steady] {
            let mut scenario = scenario();
            // Of several, each would bring the key to a host.
            scenario.callers = 1;
            scenario.policy = policy(selection, Overload::Dagor);
            scenario.dagor.control = control;
            scenario.dagor.params.threshold = SECOND / 2;
            scenario.dagor.params.alpha = 0.3;
            let all = simulated(&scenario, &keys(31), popular());
            let failed = all.iter().filter(|ended| ended.spent.is_none()).count();
            assert!(
                failed * 100 < all.len(),
                "{selection:?} {control:?}: {failed} of {} without an answer",
                all.len()
            );
        }
    }
}

#[test]
fn in_overload_steady_levels_keep_goodput_and_lose_nothing_important() {
    for selection in [Selection::Estimate, Selection::Dynamic] {
        let steady = played(&twice(), "dagor-steady", selection);
        assert_eq!(steady.success()[0], 1.0);
        assert!(steady.goodput() > 0.8, "{}", steady.goodput());
        for way in ["none", "breaker", "dagor-stalled-jobs", "dagor-paper"] {
            let other = played(&twice(), way, selection).goodput();
            assert!(steady.goodput() > other, "{way}: {other}");
        }
    }
}

/// By eight seeds: of one, goodput is between 0.79 and 0.82 by either selection.
#[test]
fn in_overload_credits_that_are_waited_for_keep_goodput_and_lose_nothing_important() {
    for selection in [Selection::Estimate, Selection::Dynamic] {
        let [held, unheld] = ["breakwater", "breakwater-unheld"].map(|way| {
            let seeds = (1..=8).map(|seed| Scenario {
                seed,
                ..small(way, selection)
            });
            seeds
                .map(|scenario| play(&twice(), &scenario).unwrap())
                .collect::<Vec<_>>()
        });
        let goodput = |all: &[Figures]| all.iter().map(Figures::goodput).sum::<f64>() / 8.0;
        assert!(held.iter().all(|figures| figures.success()[0] == 1.0));
        assert!(goodput(&held) > 0.8, "{}", goodput(&held));
        assert!(goodput(&held) > goodput(&unheld), "{}", goodput(&unheld));
    }
}

#[test]
fn where_all_hosts_have_queues_requests_stay_where_their_data_are() {
    let hits = |case: &Case, selection| played(case, "dagor-steady", selection).hit_ratio();
    for case in [Case::constant(0.95, 60 * SECOND), twice()] {
        let (estimate, dynamic) = (
            hits(&case, Selection::Estimate),
            hits(&case, Selection::Dynamic),
        );
        assert!(
            estimate > dynamic - 0.1,
            "{}: {estimate} {dynamic}",
            case.name
        );
    }
}

#[test]
fn the_same_case_gives_the_same_figures() {
    let figures = || played(&twice(), "dagor-steady", Selection::Estimate);
    assert_eq!(figures(), figures());
}
