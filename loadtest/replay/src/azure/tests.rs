// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::workload;

const KEYS: &str =
    "key,app,trigger,runs,avg_ms,min_ms,p1_ms,p25_ms,p50_ms,p75_ms,p99_ms,max_ms,mem_mb_p50
a,app1,http,9,10,0,1,5,10,20,100,1000,12.5
b,app2,timer,9,10,3,3,3,3,3,3,3,100
";
const COUNTS: &str = "t_ms,keys,count,cls
0,a,500,http
60000,a,400,http
60000,b,300,timer
120000,b,200,timer
";

fn params() -> Params {
    Params {
        excerpt: Excerpt {
            from_minute: 0,
            minutes: 3,
            speed_up: 10.0,
        },
        fleet: Fleet { hosts: 2, cores: 4 },
        utilisation: 0.85,
        sample: 1.0,
        max_run: None,
        high: vec!["http".to_owned()],
        users: true,
        seed: 1,
    }
}

fn make(params: &Params) -> (Vec<Request>, Report) {
    convert(COUNTS.as_bytes(), KEYS.as_bytes(), params).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    workload::assert_seeded(|seed| make(&Params { seed, ..params() }).0);
}

#[test]
fn the_fields_come_from_the_source_as_stated() {
    let (requests, report) = make(&params());
    assert_eq!(requests.len(), 1400);
    assert!(requests.is_sorted_by_key(|r| r.t_us));
    assert!(requests.last().unwrap().t_us < 18_000_000);
    for request in &requests {
        let expected = match request.key.as_str() {
            "a" => ("high", "app1", 12_500_000),
            _ => ("low", "app2", 100_000_000),
        };
        let (priority, user) = (request.priority.as_str(), request.user.as_str());
        assert_eq!((priority, user, request.bytes), expected);
    }
    assert_eq!(
        (report.by_priority["high"], report.by_priority["low"]),
        (900, 500)
    );
    let mean = report.utilisation_by_minute.iter().sum::<f64>() / 3.0;
    assert!((mean - report.utilisation).abs() < 1e-9);
    assert_eq!((report.keys, report.distinct_bytes), (2, 112_500_000));
}

#[test]
fn a_later_window_starts_at_offset_0_and_leaves_the_rest_out() {
    let later = Params {
        excerpt: Excerpt {
            from_minute: 2,
            minutes: 1,
            ..params().excerpt
        },
        ..params()
    };
    let (requests, _) = make(&later);
    assert_eq!(requests.len(), 200);
    assert!(requests.last().unwrap().t_us < 6_000_000);
}

#[test]
fn a_sample_is_a_part_of_the_whole() {
    let half = Params {
        sample: 0.5,
        ..params()
    };
    let (all, (part, _)) = (make(&params()).0, make(&half));
    let times: BTreeSet<_> = all.iter().map(|r| (r.t_us, r.key.clone())).collect();
    assert!((550..850).contains(&part.len()), "{}", part.len());
    assert!(
        part.iter()
            .all(|r| times.contains(&(r.t_us, r.key.clone())))
    );
}

#[test]
fn a_cap_is_kept_counted_and_refused_if_the_utilisation_is_out_of_reach() {
    let capped = Params {
        max_run: Some(Duration::from_millis(200)),
        ..params()
    };
    let (requests, report) = make(&capped);
    assert!(requests.iter().all(|r| r.run_us <= 200_000));
    let at_cap = requests.iter().filter(|r| r.run_us == 200_000).count();
    assert_eq!(report.capped, at_cap);
    assert!(report.capped > 0);
    let tight = Params {
        max_run: Some(Duration::from_millis(1)),
        ..params()
    };
    let refused = convert(COUNTS.as_bytes(), KEYS.as_bytes(), &tight);
    assert!(matches!(refused, Err(Error::Unreachable(..))));
}

#[test]
fn bad_input_is_named_by_file_line_and_field() {
    let run = |counts: &str, keys: &str| {
        let result = convert(counts.as_bytes(), keys.as_bytes(), &params());
        result.map(|_| ()).unwrap_err().to_string()
    };
    let counts = |row: &str| run(&format!("t_ms,keys,count,cls\n{row}\n"), KEYS);
    assert_eq!(
        counts("1,a,5,http"),
        "counts: line 2: t_ms: is not the beginning of a minute"
    );
    assert_eq!(
        counts("0,z,5,http"),
        "counts: line 2: keys: \"z\" is not in the file of keys"
    );
    assert!(counts("0,a,many,http").starts_with("counts: line 2: count: "));
    assert!(counts("0,a,99999999,http").starts_with("counts: line 2: count: is more"));
    assert!(run("x\n", KEYS).starts_with("counts: line 1: line: expected the header"));
    let falling = KEYS.replace("5,10,20", "5,4,20");
    assert_eq!(
        run(COUNTS, &falling),
        "keys: line 2: p50_ms: is below the percentile before it"
    );
    let empty = run("t_ms,keys,count,cls\n", KEYS);
    assert!(
        empty.starts_with("no invocation in minutes 0 to 3"),
        "{empty}"
    );
}

#[test]
fn run_times_follow_the_percentiles() {
    let functions = function::read(KEYS.as_bytes()).unwrap();
    let a = &functions["a"];
    for (at, expected) in [
        (0.0, 0.0),
        (0.01, 1.0),
        (0.25, 5.0),
        (0.375, 7.5),
        (0.99, 100.0),
        (1.0, 1000.0),
    ] {
        assert!(
            (a.run_ms(at) - expected).abs() < 1e-9,
            "{at}: {}",
            a.run_ms(at)
        );
    }
}

proptest! {
    #[test]
    fn the_utilisation_reached_is_within_1_percent(
        seed: u64, utilisation in 0.1f64..1.5, speed_up in 1f64..100.0, cores in 1u32..16,
    ) {
        let excerpt = Excerpt { speed_up, ..params().excerpt };
        let fleet = Fleet { hosts: 2, cores };
        let params = Params { seed, utilisation, excerpt, fleet, ..params() };
        let (_, report) = make(&params);
        prop_assert!((report.utilisation / utilisation - 1.0).abs() < 0.01, "{}", report.utilisation);
    }
}
