// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;
use crate::workload;

/// Twenty projects with one to three channels each.
fn index() -> Index {
    let project = |n: usize| Project {
        project: format!("shop-{n:04}"),
        bytes: 1000 * n as u64,
        rules: (0..=n % 3)
            .map(|c| format!("shop-{n:04}-{c}.json"))
            .collect(),
    };
    Index {
        projects: (1..=20).map(project).collect(),
    }
}

fn params() -> Params {
    Params {
        rate: Rate {
            from: 50.0,
            to: 50.0,
        },
        duration: Duration::from_secs(100),
        zipf: 1.0,
        high_share: 0.2,
        users: true,
        seed: 1,
    }
}

fn make(params: &Params) -> (Vec<Request>, Report) {
    generate(&index(), params).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    workload::assert_seeded(|seed| make(&Params { seed, ..params() }).0);
}

#[test]
fn a_request_is_a_job_of_its_project() {
    let (requests, report) = make(&params());
    let index = index();
    for request in &requests {
        let of = index.projects.iter().find(|p| p.project == request.key);
        let project = of.unwrap();
        assert_eq!((request.bytes, request.run_us), (project.bytes, 0));
        assert_eq!(request.user, request.key);
        let body = request.body.as_deref().unwrap();
        let rules = body.strip_prefix("rules/").unwrap().to_owned();
        assert!(project.rules.contains(&rules), "{body}");
    }
    assert_eq!((report.keys, report.projects), (20, 20));
    let channels: usize = index.projects.iter().map(|p| p.rules.len()).sum();
    assert_eq!(report.bodies, channels);
    assert_eq!(report.distinct_bytes, 210_000);
    let high = report.by_priority["high"] as f64 / report.requests as f64;
    assert!((high - 0.2).abs() < 0.03, "{high}");
    // Zipf with s = 1 over 20: the first has 1 / 3.6 of all.
    assert!(
        (report.largest_key_share - 0.278).abs() < 0.03,
        "{}",
        report.largest_key_share
    );
}

#[test]
fn an_anonymous_workload_names_no_user_and_changes_nothing_else() {
    let anonymous = Params {
        users: false,
        ..params()
    };
    let named = make(&params()).0.into_iter();
    let without: Vec<_> = named
        .map(|request| Request {
            user: String::new(),
            ..request
        })
        .collect();
    assert_eq!(make(&anonymous).0, without);
}

#[test]
fn another_rate_brings_the_same_jobs_at_other_times() {
    let ramp = Params {
        rate: Rate {
            from: 0.0,
            to: 20.0,
        },
        ..params()
    };
    let jobs = |params: &Params| {
        let what = |r: Request| (r.key, r.priority, r.body);
        make(params).0.into_iter().map(what).collect::<Vec<_>>()
    };
    let (slow, fast) = (jobs(&ramp), jobs(&params()));
    assert!(slow.len() > 500 && slow.len() < fast.len());
    assert_eq!(slow, fast[..slow.len()]);
}

#[test]
fn a_rate_of_nothing_and_of_too_much_are_refused() {
    let with = |from, to, seconds| Params {
        rate: Rate { from, to },
        duration: Duration::from_secs_f64(seconds),
        ..params()
    };
    let error = |params| generate(&index(), &params).unwrap_err();
    assert!(matches!(error(with(0.0, 0.0, 10.0)), Error::NoRate));
    assert!(matches!(error(with(1.0, 1.0, 1e-9)), Error::Empty(_)));
    assert!(matches!(error(with(1e6, 1e6, 100.0)), Error::TooMany(_)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_made_can_be_read_again(
        seed: u64, from in 0f64..100.0, to in 1f64..100.0, zipf in 0f64..3.0, high_share in 0f64..=1.0,
    ) {
        let params = Params {
            rate: Rate { from, to }, zipf, high_share, seed, duration: Duration::from_secs(20), ..params()
        };
        let (requests, report) = make(&params);
        prop_assert_eq!(report.requests, requests.len());
        prop_assert_eq!(report.by_priority.values().sum::<usize>(), requests.len());
        let mut text = Vec::new();
        workload::write(&requests, &mut text).unwrap();
        prop_assert_eq!(workload::read(text.as_slice()).unwrap(), requests);
    }
}
