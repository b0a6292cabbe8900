// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::workload;

fn example() -> Value {
    json!({
        "name": "example",
        "objective": "Something is shown.",
        "deadline_ms": 1000,
        "made": {
            "stages": [
                {"name": "calm", "duration_s": 20, "rate": {"of_capacity": 0.5}},
                {"name": "rise", "duration_s": 10, "rate": {"of_capacity": 0.5}, "to": {"per_second": 400}},
                {"name": "crowd", "duration_s": 20, "rate": {"per_second": 400}, "measured": false}
            ],
            "priorities": {"low": 0.7, "bulk": 0.1, "high": 0.2},
            "users": 10,
            "keys": {"number": 50, "zipf": 1},
            "run_ms": {"exponential": 40},
            "bytes": {"uniform": [1000, 2000]}
        },
        "thresholds": [
            {"stage": "crowd", "priority": "high", "figure": "success", "at_least": 0.999, "objective": "o"},
            {"stage": "crowd", "figure": "p99_ms", "at_most_times": {"factor": 1.5, "stage": "calm"}, "objective": "o"}
        ]
    })
}

fn parse(json: &Value) -> Result<Scenario, String> {
    Scenario::parse(&json.to_string(), Path::new("."))
        .map_err(|(field, reason)| format!("{field}: {reason}"))
}

/// The example with the value at a pointer in place of what is there, or beside it.
fn with(pointer: &str, value: Value) -> Value {
    let mut json = example();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = json.pointer_mut(parent).unwrap();
    match parent {
        Value::Array(all) => all[name.parse::<usize>().unwrap()] = value,
        _ => parent[name] = value,
    }
    json
}

fn make(seed: u64) -> (Vec<Request>, Plan) {
    let scenario = parse(&example()).unwrap();
    scenario.make(Fleet::Cores(8.0), None, seed).unwrap()
}

#[test]
fn stages_have_their_rates_and_classes_their_shares() {
    let (requests, plan) = make(1);
    // 8 cores do 200 jobs of 40 ms a second; six deviations of a Poisson number.
    let near = |count: usize, expected: f64| {
        assert!(
            (count as f64 - expected).abs() < 6.0 * expected.sqrt(),
            "{count}, {expected}"
        );
    };
    let counts: Vec<usize> = plan.stages.iter().map(|stage| stage.requests).collect();
    near(counts[0], 2000.0);
    near(counts[1], 2500.0);
    near(counts[2], 8000.0);
    assert_eq!(plan.requests, requests.len());
    assert_eq!(
        (plan.capacity.cores, plan.capacity.requests_per_s),
        (Some(8.0), 200.0)
    );
    assert_eq!(plan.priorities, ["high", "low", "bulk"]);
    let of = |priority: &str| requests.iter().filter(|r| r.priority == priority).count();
    near(of("high"), 0.2 * requests.len() as f64);
    near(of("bulk"), 0.1 * requests.len() as f64);
    for stage in &plan.stages {
        let inside = |r: &&Request| (stage.from_s..stage.to_s).contains(&(r.t_us as f64 / 1e6));
        let count = requests.iter().filter(inside).count();
        assert!(count.abs_diff(stage.requests) <= 1, "{stage:?}: {count}");
    }
    let runs: f64 = plan.stages.iter().map(|stage| stage.run_s).sum();
    assert!(
        (runs / requests.len() as f64 - 0.04).abs() < 0.002,
        "{runs}"
    );
    // A key's data have one size.
    let mut sizes = std::collections::BTreeMap::new();
    for request in &requests {
        assert!((1000..=2000).contains(&request.bytes));
        assert_eq!(
            *sizes.entry(&request.key).or_insert(request.bytes),
            request.bytes
        );
    }
    assert!(sizes.len() > 40);
}

#[test]
fn a_second_that_was_measured_stands_for_cores() {
    let scenario = parse(&example()).unwrap();
    let (requests, plan) = scenario.make(Fleet::Requests(200.0), None, 1).unwrap();
    assert_eq!(requests, make(1).0);
    assert_eq!(plan.capacity.cores, None);
}

#[test]
fn all_stages_are_stretched_alike_and_their_rates_stay() {
    let scenario = parse(&example()).unwrap();
    let lasting = Some(Duration::from_secs(5));
    let (_, plan) = scenario.make(Fleet::Cores(8.0), lasting, 1).unwrap();
    let ends: Vec<f64> = plan.stages.iter().map(|stage| stage.to_s).collect();
    assert_eq!(ends, [2.0, 3.0, 5.0]);
    assert!((600..1000).contains(&plan.stages[2].requests));
}

#[test]
fn every_refused_field_is_named_with_the_reason() {
    let cases = r#"
/name => "Over load" => name: "Over load" is not made of
/objective => " " => objective: is empty
/deadline_ms => 0 => deadline_ms: 0 is not from 1
/deadline_ms => "1s" => deadline_ms: invalid type
/sped => 1 => sped: unknown field `sped`
/made/stages => [] => made.stages: there are none
/made/stages/1/name => "calm" => made.stages[1].name: "calm" is there twice
/made/stages/0/duration_s => 0 => made.stages[0].duration_s: 0 is not
/made/stages/0/rate => {"of_capacity": -1} => made.stages[0].rate: -1 is not
/made/stages/0/rate => {"often": 1} => made.stages[0].rate
/made/stages/2/to => {"per_second": 1e9} => made.stages[2].to: 1000000000 is not
/made/priorities/high => 0.3 => made.priorities: the shares make 1.1
/made/priorities/high => -0.2 => made.priorities.high: -0.2 is not
/made/keys/zipf => -1 => made.keys.zipf: -1 is not
/made/run_ms => {"uniform": [2, 1]} => made.run_ms.uniform[0]: 2 is not from 0 to 1
/made/bytes => {"fixed": 1e13} => made.bytes.fixed: 10000000000000 is not
/made => null => made: is missing, and so is `trace`
/thresholds/0/stage => "lull" => thresholds[0].stage: there is no "lull"; there are calm
/thresholds/0/priority => "top" => thresholds[0].priority: there is no "top"
/thresholds/0/at_least => 1.5 => thresholds[0].at_least: 1.5 is not
/thresholds/0/at_most => 1 => thresholds[0].figure: it wants `at_least`
/thresholds/0/figure => "goodput" => thresholds[0].priority: goodput is of all
/thresholds/1/at_most_times/stage => "lull" => thresholds[1].at_most_times.stage
/thresholds/1/at_most => 9 => thresholds[1].figure: it wants one of
/thresholds/1/objective => "" => thresholds[1].objective: is empty
"#;
    for case in cases.trim().lines() {
        let [pointer, value, expected] = case.split(" => ").collect::<Vec<_>>()[..] else {
            panic!("{case}");
        };
        let value = serde_json::from_str(value).unwrap();
        let error = parse(&with(pointer, value)).unwrap_err();
        assert!(error.starts_with(expected), "{pointer}: {error}");
    }
    let trace = json!({"counts": "c.csv", "keys": "k.csv", "from_minute": 0, "minutes": 1,
        "speed_up": 1, "sample": 1, "utilisation": 1});
    let error = parse(&with("/trace", trace.clone())).unwrap_err();
    assert!(
        error.starts_with("trace: there is `made` already"),
        "{error}"
    );
    let mut only = with("/trace", trace);
    only.as_object_mut().unwrap().remove("made");
    let error = parse(&only).unwrap_err();
    assert!(
        error.starts_with("trace.counts: ./c.csv is not there"),
        "{error}"
    );
}

#[test]
fn what_would_not_fit_is_refused_before_it_is_made() {
    let scenario = parse(&with("/made/stages/0/duration_s", json!(86_000))).unwrap();
    let made = scenario.make(Fleet::Requests(1e6), None, 1);
    assert!(matches!(made, Err(Error::TooMany(_))));
    let idle = parse(&with("/made/run_ms", json!({"fixed": 0}))).unwrap();
    assert!(matches!(
        idle.make(Fleet::Cores(8.0), None, 1),
        Err(Error::Fleet(_))
    ));
    idle.make(Fleet::Requests(10.0), None, 1).unwrap();
}

#[test]
fn the_scenarios_of_the_repository_are_good_and_named_as_their_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let scenario = Scenario::read(&file).unwrap();
        assert_eq!(file.file_stem().unwrap().to_str(), Some(&*scenario.name));
        let lasting = Some(Duration::from_secs(10));
        let (requests, plan) = scenario.make(Fleet::Cores(24.0), lasting, 1).unwrap();
        assert!(
            !requests.is_empty() && !plan.thresholds.is_empty(),
            "{}",
            scenario.name
        );
        names.push(scenario.name);
    }
    names.sort();
    assert_eq!(
        names,
        [
            "flash-crowd",
            "overload",
            "smoke",
            "soak",
            "steady",
            "trace-replay"
        ]
    );
}

proptest! {
    #[test]
    fn the_same_seed_makes_the_same_valid_workload(
        seed: u64,
        rates in prop::collection::vec((0f64..3.0, 0f64..3.0), 1..4),
        high in 0f64..=1.0,
        keys in 0u32..30,
        users in 0u32..5,
    ) {
        let stages = rates.iter().enumerate().map(|(n, (from, to))| json!({
            "name": format!("s{n}"), "duration_s": 3, "rate": {"of_capacity": from}, "to": {"of_capacity": to},
        }));
        let mut json = with("/made/stages", stages.collect());
        json["made"]["priorities"] = json!({"high": high, "low": 1.0 - high});
        json["made"]["keys"]["number"] = json!(keys);
        json["made"]["users"] = json!(users);
        json["thresholds"] = json!([]);
        let scenario = parse(&json).unwrap();
        let (requests, plan) = scenario.make(Fleet::Cores(2.0), None, seed).unwrap();
        prop_assert_eq!(&scenario.make(Fleet::Cores(2.0), None, seed).unwrap(), &(requests.clone(), plan.clone()));
        prop_assert_eq!(plan.stages.iter().map(|stage| stage.requests).sum::<usize>(), requests.len());
        if !requests.is_empty() {
            let mut file = Vec::new();
            workload::write(&requests, &mut file).unwrap();
            prop_assert_eq!(workload::read(&*file).unwrap(), requests);
        }
    }
}
