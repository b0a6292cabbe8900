// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;
use crate::workload;

const TRACE: &str = "t_ms,keys,cost,size,cls,client
0,0,300,300,200,7
0,1,100,100,200,8
1000,0,0,0,304,7
59000,2,0,0,404,9
60000,1,100,100,200,8
";

fn params() -> Params {
    Params {
        excerpt: Excerpt {
            from_minute: 0,
            minutes: 1,
            speed_up: 60.0,
        },
        fleet: Fleet { hosts: 2, cores: 2 },
        utilisation: 0.5,
        size_factor: 2.0,
        high_share: 0.5,
        seed: 1,
    }
}

fn make(params: &Params) -> (Vec<Request>, Report) {
    convert(TRACE.as_bytes(), params).unwrap()
}

#[test]
fn the_fields_come_from_the_source_as_stated() {
    let (requests, report) = make(&params());
    let keys: Vec<_> = requests
        .iter()
        .map(|r| (r.key.as_str(), r.bytes, r.user.as_str()))
        .collect();
    let expected = [
        ("0", 600, "7"),
        ("1", 200, "8"),
        ("0", 600, "7"),
        ("2", 0, "9"),
    ];
    assert_eq!(keys, expected, "an answer 304 is as large as the page");
    let times: Vec<_> = requests.iter().map(|r| r.t_us).collect();
    assert!(times.is_sorted() && times[1] < 16_667, "{times:?}");
    assert!((16_666..33_334).contains(&times[2]), "{times:?}");
    // Half of 4 core seconds over 4 requests, half of it evenly and half by 300, 100, 0 and 0 bytes.
    let runs: Vec<_> = requests.iter().map(|r| r.run_us).collect();
    assert_eq!(runs, [1_000_000, 500_000, 250_000, 250_000]);
    assert_eq!((report.utilisation, report.duration_s), (0.5, 1.0));
    assert_eq!(
        (report.keys, report.users, report.distinct_bytes),
        (3, 3, 800)
    );
}

#[test]
fn a_client_has_one_priority_and_the_share_of_clients_is_as_asked() {
    let lines = (0..3000).map(|n| format!("{n}000,1,1,1,200,{}\n", n % 1000));
    let text = format!("{}\n{}", Hit::COLUMNS.join(","), lines.collect::<String>());
    let params = Params {
        excerpt: Excerpt {
            minutes: 50,
            ..params().excerpt
        },
        high_share: 0.2,
        ..params()
    };
    let (requests, report) = convert(text.as_bytes(), &params).unwrap();
    let mut of: BTreeMap<&str, &str> = BTreeMap::new();
    for request in &requests {
        assert_eq!(
            *of.entry(&request.user).or_insert(&request.priority),
            request.priority
        );
    }
    let high = report.by_priority["high"] as f64 / requests.len() as f64;
    assert!((0.15..0.25).contains(&high), "{high}");
}

#[test]
fn every_error_has_line_field_and_reason() {
    for (rows, expected) in [
        (
            "x,0,1,1,200,1\n",
            "trace: line 2: t_ms: \"x\" is not a whole",
        ),
        (
            "-1,0,1,1,200,1\n",
            "trace: line 2: t_ms: \"-1\" is not a whole",
        ),
        (
            "0,/a,1,1,200,1\n",
            "trace: line 2: keys: \"/a\" is not a whole",
        ),
        (
            "0,0,1,-1,200,1\n",
            "trace: line 2: size: \"-1\" is not a whole",
        ),
        ("0,0,1,1,,1\n", "trace: line 2: cls: \"\" is not a whole"),
        ("0,0,1,1,999,1\n", "trace: line 2: cls: 999 is no status"),
        ("0,0,1,1,200\n", "trace: line 2: line: has 5 fields"),
        (
            "9,0,1,1,200,1\n0,0,1,1,200,1\n",
            "trace: line 3: t_ms: 0 is before 9",
        ),
        ("60000,0,1,1,200,1\n", "no request in minutes 0 to 1"),
    ] {
        let text = format!("{}\n{rows}", Hit::COLUMNS.join(","));
        let error = convert(text.as_bytes(), &params()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{rows:?}: {error}");
    }
    let few = Params {
        fleet: Fleet {
            hosts: 1000,
            cores: 1000,
        },
        excerpt: Excerpt {
            speed_up: 1.0,
            ..params().excerpt
        },
        ..params()
    };
    let error = convert(TRACE.as_bytes(), &few).unwrap_err().to_string();
    assert!(
        error.starts_with("at utilisation 0.5 the longest run would last"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn what_is_made_can_be_read_again_and_is_the_same_each_time(seed: u64, speed_up in 0.1f64..100.0) {
        let excerpt = Excerpt { speed_up, ..params().excerpt };
        let params = Params { seed, excerpt, ..params() };
        let (requests, _) = make(&params);
        prop_assert_eq!(&requests, &make(&params).0);
        let mut text = Vec::new();
        workload::write(&requests, &mut text).unwrap();
        prop_assert_eq!(workload::read(text.as_slice()).unwrap(), requests);
    }
}
