// SPDX-License-Identifier: Apache-2.0
//! What holds of every simulated machine.

use std::time::Duration;

use proptest::prelude::*;
use weir_governor::energy::PARTS;
use weir_governor::frequency::Khz;
use weir_sim::node::cell::{Cell, Costs};
use weir_sim::node::{
    Agent, Allowed, Clairvoyant, Governor, Load, MAX, MIN, Outcome, Params, Run, Terms, report, run,
};

fn governor(number: usize) -> Governor {
    let clairvoyant = Clairvoyant {
        floor: Khz(1_600_000),
        most: MAX,
        within_s: 0.9,
        aside: MIN,
    };
    let all = [
        Governor::performance(),
        Governor::ondemand(),
        Governor::three_state(450, 50),
        Governor::two_state(Khz(2_000_000), 10),
        Governor::Fixed(Khz(1_300_000)),
        Governor::Clairvoyant(clairvoyant),
    ];
    all[number % all.len()].clone()
}

const TERMS: [Terms; 3] = [Terms::Low, Terms::Mixed, Terms::High];
const COSTS: [Costs; 3] = [Costs::None, Costs::Document, Costs::Ours];
const ALLOWED: [Allowed; 4] = [
    Allowed::All,
    Allowed::OnlyC0,
    Allowed::UpToC1,
    Allowed::AlwaysC6,
];

fn minute(governor: Governor, costs: Costs, load: Load, allowed: Allowed, seed: u64) -> Outcome {
    let cell = Cell {
        allowed,
        ..Cell::new(governor, costs, load).lasting(1)
    };
    run(cell.run(&Params::default(), seed))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn work_is_neither_lost_nor_done_twice_and_time_and_energy_add_up(
        number in 0usize..6, costs in 0usize..3, terms in 0usize..3, times in 1u32..5, allowed in 0usize..4, seed: u64,
    ) {
        let load = Load::base(TERMS[terms], times);
        let outcome = minute(governor(number), COSTS[costs], load, ALLOWED[allowed], seed);
        let (did, left, asked) = (outcome.done_s, outcome.left_s, outcome.asked_s);
        prop_assert!((did + left - asked).abs() < 1e-6 * asked.max(1.0), "{did} done, {left} left of {asked}");
        let params = Params::default();
        let cores_s: f64 = outcome.active_s.iter().chain(&outcome.idle_s).sum();
        prop_assert!((cores_s - params.cores * outcome.seconds).abs() < 1e-6 * cores_s);
        let joules = outcome.energy.joules();
        let floor = (params.package_w + params.cores * params.c6_w) * outcome.seconds;
        prop_assert!(joules >= floor, "{joules} J, below the idle floor {floor}");
        let ceiling = params.package_w + params.uncore_w + params.cores * (params.core_w + params.leak_w);
        prop_assert!(joules <= ceiling * outcome.seconds * (1.0 + 1e-9));
    }

    #[test]
    fn a_seed_decides_everything(number in 0usize..6, costs in 0usize..3, seed: u64) {
        let load = Load::base(Terms::Mixed, 3);
        let once = || minute(governor(number), COSTS[costs], load, Allowed::All, seed);
        let first = once();
        prop_assert_eq!(&first, &once());
        let other = minute(governor(number), COSTS[costs], load, Allowed::All, seed ^ 1);
        prop_assert_ne!(first.latencies, other.latencies);
    }
}

/// One core, one shard, queries that are all alike.
fn single(gap_ms: f64) -> Params {
    Params {
        cores: 1.0,
        shards: 1.0,
        light_ms: gap_ms,
        spread: 1e-9,
        shard_sigma: 1e-9,
        hot_share: 0.98,
        before_share: 0.02,
        ..Params::default()
    }
}

#[test]
fn mean_waits_are_those_of_pollaczek_and_khinchine() {
    for utilisation in [0.3, 0.6, 0.8] {
        let service_s = 0.01;
        let clients = 400;
        let load = Load {
            terms: Terms::Low,
            clients,
            // Each asks rarely: together they are nearly Poisson.
            cycle_s: f64::from(clients) * service_s / utilisation,
            classes: &[],
        };
        let outcome = run(Run {
            params: single(service_s * 1e3),
            load,
            governor: Governor::Fixed(MAX),
            agent: Agent::NONE,
            allowed: Allowed::OnlyC0,
            seed: 7,
            lasts: Duration::from_secs(4_000),
            answers: usize::MAX,
        });
        let wanted = utilisation * service_s / (2.0 * (1.0 - utilisation));
        let got = outcome.mean() - service_s;
        let ratio = got / wanted;
        assert!(
            (0.93..1.07).contains(&ratio),
            "at {utilisation}: {got} s for {wanted}"
        );
    }
}

#[test]
fn work_at_a_lower_frequency_takes_longer_by_the_share_that_is_not_memory() {
    let alone = |khz| {
        let params = Params {
            memory_share: 0.25,
            ..single(40.0)
        };
        run(Run {
            params,
            load: Load::alone(Terms::Low),
            governor: Governor::Fixed(khz),
            agent: Agent::NONE,
            allowed: Allowed::OnlyC0,
            seed: 1,
            lasts: Duration::MAX,
            answers: 50,
        })
    };
    let [fast, slow] = [alone(MAX), alone(MIN)].map(|outcome| outcome.mean());
    assert!((fast - 0.04).abs() < 1e-6, "{fast}");
    assert!((slow / fast - (0.25 + 0.75 * 2.6)).abs() < 1e-5, "{slow}");
}

#[test]
fn c6_saves_only_when_residency_pays_and_the_menu_tells_when() {
    let joules = |allowed, pause: Duration| {
        let params = Params {
            uncore_w: 1e-9,
            ..single(1.0)
        };
        let nobody = Load {
            clients: 0,
            ..Load::base(Terms::Low, 1)
        };
        let Governor::Policy(policy, _) = Governor::performance() else {
            unreachable!("performance is a policy")
        };
        let outcome = run(Run {
            agent: Agent::ours(&params),
            params,
            load: nobody,
            governor: Governor::Policy(policy, pause),
            allowed,
            seed: 1,
            lasts: Duration::from_secs(5),
            answers: usize::MAX,
        });
        outcome.energy.active_j + outcome.energy.idle_j
    };
    let [often, seldom] = [Duration::from_micros(250), Duration::from_millis(100)];
    assert!(joules(Allowed::AlwaysC6, often) > joules(Allowed::UpToC1, often));
    assert!(joules(Allowed::AlwaysC6, seldom) < joules(Allowed::UpToC1, seldom));
    for pause in [often, seldom] {
        let menu = joules(Allowed::All, pause);
        let best = joules(Allowed::AlwaysC6, pause).min(joules(Allowed::UpToC1, pause));
        assert!(
            menu < 1.3 * best,
            "{pause:?}: {menu} J where {best} is possible"
        );
    }
}

#[test]
fn the_published_taste_is_what_the_model_says() {
    let published = include_str!("../../NODE.md");
    let taste = report::taste(&Params::default());
    assert!(
        published.ends_with(&taste),
        "NODE.md is not of this model: cargo xtask experiments --only node --update\n{taste}"
    );
}

#[test]
fn an_index_in_five_shards_answers_sooner_than_in_one_and_than_a_larger_one() {
    let mean = |shards: f64, gigabytes: f64| {
        let fitted = Params::default();
        let params = Params {
            shards,
            light_ms: fitted.light_ms * gigabytes / 8.0,
            ..fitted
        };
        let load = Load::base(Terms::Mixed, 1);
        let cell = Cell::new(Governor::ondemand(), Costs::None, load).lasting(2);
        run(cell.run(&params, 1)).mean()
    };
    let five = mean(5.0, 8.0);
    assert!(five < mean(1.0, 40.0) && five < mean(5.0, 15.0));
}

#[test]
fn a_longer_tick_changes_frequencies_less_often() {
    let changes = |period_ms| {
        let governor = Governor::three_state(300, period_ms);
        let outcome = minute(
            governor,
            Costs::Document,
            Load::base(Terms::High, 1),
            Allowed::All,
            1,
        );
        outcome.transitions
    };
    assert!(changes(10) > changes(100) && changes(100) > changes(200));
}

/// Of each class within 5 % of the truth, with RAPL and without it, and all of RAPL's energy is somebody's.
#[test]
fn energy_is_attributed_to_whom_it_belongs() {
    let loads = [
        Load::base(Terms::Mixed, 1).classes(&[3]),
        Load::base(Terms::Mixed, 3).classes(&[1, 4, 9]),
        Load::base(Terms::High, 1).classes(&[14]),
    ];
    let governors = [
        (Governor::schedutil(), Costs::None),
        (Governor::ondemand(), Costs::None),
        (Governor::two_state(MAX, 10), Costs::Ours),
        (Governor::three_state(450, 50), Costs::Ours),
    ];
    let mut wrong = Vec::new();
    for load in loads {
        for (governor, costs) in &governors {
            let cell = Cell::new(governor.clone(), *costs, load).lasting(3);
            let outcome = run(cell.run(&Params::default(), 5));
            let attributed = outcome.attributed.expect("queries have classes");
            let of = |ledger| (0..=load.classes.len()).map(move |class| (ledger, class));
            let errors: Vec<f64> = (of(&attributed.measured).chain(of(&attributed.modelled)))
                .map(|(ledger, class)| attributed.error(ledger, class))
                .chain([attributed.misplaced(&attributed.measured)])
                .collect();
            if errors.iter().any(|error| error.abs() > 0.05) {
                wrong.push(format!("{governor:?}, {load:?}: {errors:.3?}"));
            }
            let sum: f64 = (0..PARTS).map(|part| attributed.measured.part(part)).sum();
            let whole = attributed.whole_j;
            assert!((sum / whole - 1.0).abs() < 1e-9, "{sum} J of {whole} J");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
