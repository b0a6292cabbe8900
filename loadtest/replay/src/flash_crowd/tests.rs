// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;
use crate::workload;

const COUNTS: &str = "t_ms,count\n0,1000\n60000,3000\n120000,2000\n180000,9\n";

fn params() -> Params {
    Params {
        excerpt: Excerpt {
            from_minute: 0,
            minutes: 3,
            speed_up: 60.0,
        },
        fleet: Fleet { hosts: 2, cores: 2 },
        utilisation: 0.5,
        sample: 1.0,
        keys: 100,
        zipf: 1.0,
        bytes: 5,
        high_share: 0.2,
        seed: 1,
    }
}

fn make(params: &Params) -> (Vec<Request>, Report) {
    convert(COUNTS.as_bytes(), params).unwrap()
}

#[test]
fn the_crowd_is_the_sources_and_the_rest_is_as_asked() {
    let (requests, report) = make(&params());
    let within = |second: u64| {
        requests
            .iter()
            .filter(|r| r.t_us / 1_000_000 == second)
            .count()
    };
    assert_eq!([0, 1, 2, 3].map(within), [1000, 3000, 2000, 0]);
    assert_eq!((report.peak, report.requests), (1.5, 6000));
    assert!((0.45..0.55).contains(&(report.mean_run_us * 6000.0 / 12e6)));
    let utilisation: f64 = report.utilisation_by_minute.iter().sum();
    assert!((1.35..1.65).contains(&utilisation), "{utilisation}");
    let most = requests.iter().filter(|r| r.key == requests[0].key).count();
    assert!(report.keys > 80 && most > 0);
    let high = report.by_priority["high"] as f64 / 6000.0;
    assert!((0.17..0.23).contains(&high), "{high}");
}

#[test]
fn a_sample_is_a_part_of_the_whole() {
    let times = |sample| -> Vec<u64> {
        let (requests, _) = make(&Params { sample, ..params() });
        requests.iter().map(|r| r.t_us).collect()
    };
    let (all, some) = (times(1.0), times(0.1));
    assert!((450..750).contains(&some.len()), "{}", some.len());
    assert!(some.iter().all(|time| all.binary_search(time).is_ok()));
}

#[test]
fn every_error_has_line_field_and_reason() {
    for (rows, expected) in [
        ("x,1\n", "counts: line 2: t_ms: \"x\" is not a whole"),
        ("0,-1\n", "counts: line 2: count: \"-1\" is not a whole"),
        ("0\n", "counts: line 2: line: has 1 fields"),
        (
            "1,1\n",
            "counts: line 2: t_ms: is not the beginning of a minute",
        ),
        (
            "60000,1\n0,1\n",
            "counts: line 3: t_ms: 0 is not after the line above",
        ),
        (
            "0,1\n0,1\n",
            "counts: line 3: t_ms: 0 is not after the line above",
        ),
        ("0,10000001\n", "counts: line 2: count: is more than"),
        ("600000,1\n", "no request in minutes 0 to 3 survives"),
    ] {
        let text = format!("{}\n{rows}", COLUMNS.join(","));
        let error = convert(text.as_bytes(), &params()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{rows:?}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_made_can_be_read_again_and_is_the_same_each_time(seed: u64, zipf in 0f64..3.0) {
        let params = Params { seed, zipf, sample: 0.1, ..params() };
        let (requests, _) = make(&params);
        prop_assert_eq!(&requests, &make(&params).0);
        let mut text = Vec::new();
        workload::write(&requests, &mut text).unwrap();
        prop_assert_eq!(workload::read(text.as_slice()).unwrap(), requests);
    }
}
