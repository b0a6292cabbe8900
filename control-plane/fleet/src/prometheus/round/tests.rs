// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;
use crate::poll::Fault;
use crate::settings::Host;

/// Hosts h:1, h:2 …, whose metrics are at m:1, m:2 ….
fn hosts(count: usize) -> Vec<Host> {
    let host = |n| Host {
        address: format!("h:{n}"),
        metrics_address: format!("m:{n}"),
        cache_address: format!("m:{n}"),
        capacity_millicores: 0,
        preempt_at_unix_ms: 0,
        zone: None,
        draining: false,
        written: None,
        instance: None,
    };
    (1..=count).map(host).collect()
}

fn round(hosts: &[Host], answers: &Answers) -> Round {
    let addresses = hosts.iter().map(|host| host.address.as_str());
    gather(answers, "instance", &Names::of(hosts), addresses)
}

/// Series with an instance and a value each.
fn of(list: &[(&str, f64)]) -> Result<Answer, PollError> {
    let series = |(name, value): &(&str, f64)| Series {
        labels: BTreeMap::from([("instance".to_owned(), (*name).to_owned())]),
        value: Ok(*value),
    };
    Ok(Answer {
        series: list.iter().map(series).collect(),
        warnings: Vec::new(),
    })
}

/// Two hosts, each by one of its names: the first with 3 jobs, one of them queued, the second with 5 and two.
fn good() -> Answers {
    Answers::from([
        (Figure::InProgress, of(&[("m:1", 3.0), ("h:2", 5.0)])),
        (Figure::Queued, of(&[("m:1", 1.0), ("h:2", 2.0)])),
        (Figure::QueuingDelay, of(&[("m:1", 0.5), ("h:2", 0.25)])),
        (Figure::Age, of(&[("m:1", 0.1), ("h:2", 0.2)])),
    ])
}

fn jobs(told: &Told) -> Option<u32> {
    told.load.as_ref()?.figures.in_progress
}

#[test]
fn figures_of_a_round_are_put_together_by_host() {
    let round = round(&hosts(2), &good());
    assert_eq!((round.complaints.len(), round.unknown_series), (0, 0));
    let first = &round.hosts["h:1"];
    assert!(first.complaints.is_empty());
    assert_eq!(
        first.load,
        Some(Load {
            figures: Figures {
                in_progress: Some(3),
                queued: Some(vec![1]),
                queuing_delay: Some(Duration::from_millis(500)),
                delay_is_late: false,
                busy_cores: None,
                work: None,
            },
            draining: None,
            age: Duration::from_millis(100),
        })
    );
    assert_eq!(jobs(&round.hosts["h:2"]), Some(5));
}

#[test]
fn a_host_without_a_series_keeps_what_was_known() {
    let round = round(&hosts(3), &good());
    let absent = &round.hosts["h:3"];
    assert_eq!(absent.load, None);
    let complaints = [
        "in_progress: no series",
        "queued: no series",
        "age: no series",
    ];
    assert_eq!(absent.complaints, complaints);
    assert!(
        round.hosts["h:1"].load.is_some(),
        "the others' figures count"
    );
}

#[test]
fn a_busy_host_may_be_without_a_wait_and_nobody_complains() {
    let mut answers = good();
    answers.insert(Figure::QueuingDelay, of(&[("m:2", 1.0)]));
    let quiet = round(&hosts(2), &answers);
    let told = &quiet.hosts["h:1"];
    assert_eq!((jobs(told), &told.complaints), (Some(3), &vec![]));
    answers.insert(Figure::QueuingDelay, of(&[]));
    let nobody = round(&hosts(2), &answers);
    assert_eq!(nobody.complaints, ["queuing_delay: no series"]);
}

#[test]
fn half_of_a_load_is_none_and_the_other_figures_are_left_out_one_by_one() {
    for (figure, lost) in [
        (Figure::InProgress, true),
        (Figure::Queued, true),
        (Figure::Age, true),
        (Figure::QueuingDelay, false),
        (Figure::BusyCores, false),
        (Figure::Work, false),
        (Figure::Draining, false),
    ] {
        for value in [f64::NAN, f64::INFINITY, -1.0] {
            let mut answers = good();
            answers.insert(figure, of(&[("m:1", value), ("m:2", 1.0)]));
            let round = round(&hosts(2), &answers);
            let told = &round.hosts["h:1"];
            assert_eq!(told.load.is_none(), lost, "{figure:?}");
            assert_eq!(told.complaints.len(), 1);
            assert!(told.complaints[0].starts_with(&format!("{}: ", figure.as_str())));
            assert!(round.complaints.is_empty());
            assert!(round.hosts["h:2"].load.is_some());
        }
    }
}

#[test]
fn two_series_for_one_host_are_named_at_that_host_alone() {
    let mut answers = good();
    let twice = of(&[("m:1", 3.0), ("h:1", 3.0), ("h:2", 5.0)]);
    answers.insert(Figure::InProgress, twice);
    let round = round(&hosts(2), &answers);
    assert_eq!(
        round.hosts["h:1"].complaints,
        ["in_progress: two series for one host"]
    );
    assert_eq!(
        (jobs(&round.hosts["h:1"]), jobs(&round.hosts["h:2"])),
        (None, Some(5))
    );
}

#[test]
fn a_query_that_fails_or_says_nothing_is_told_once_and_no_host_gets_half_a_load() {
    let error = || Err(PollError::new(Fault::TimedOut, "x"));
    for (answer, complaint) in [
        (error(), "queued: timed_out: x"),
        (of(&[]), "queued: no series"),
    ] {
        let mut answers = good();
        answers.insert(Figure::Queued, answer);
        let round = round(&hosts(2), &answers);
        assert_eq!(round.complaints, [complaint]);
        for told in round.hosts.values() {
            assert_eq!(told, &Told::default());
        }
    }
    let mut answers = good();
    answers.insert(Figure::Work, of(&[]));
    answers.insert(Figure::Draining, of(&[]));
    let round = round(&hosts(2), &answers);
    assert!(round.complaints.is_empty(), "few hosts tell these");
    let load = round.hosts["h:1"].load.as_ref().unwrap();
    assert_eq!((load.draining, &load.figures.work), (Some(false), &None));
}

#[test]
fn whether_a_host_drains_is_unknown_where_that_cannot_be_read() {
    let drains = |answer| {
        let mut answers = good();
        answers.insert(Figure::Draining, answer);
        let load = round(&hosts(2), &answers).hosts["h:1"].load.clone();
        load.unwrap().draining
    };
    assert_eq!(drains(of(&[("m:1", 1.0)])), Some(true));
    assert_eq!(drains(of(&[("m:1", 0.0)])), Some(false));
    assert_eq!(drains(of(&[("m:2", 1.0)])), Some(false));
    assert_eq!(drains(of(&[("m:1", f64::NAN)])), None);
    assert_eq!(drains(Err(PollError::new(Fault::TimedOut, "x"))), None);
}

#[test]
fn series_that_name_no_host_are_counted_or_told_once() {
    let mut answers = good();
    let mut odd = of(&[("m:1", 3.0), ("h:2", 5.0), ("x:1", 1.0), ("x:2", 1.0)]).unwrap();
    for _ in 0..2 {
        let labels = BTreeMap::from([("job".to_owned(), "rules".to_owned())]);
        odd.series.push(Series {
            labels,
            value: Ok(1.0),
        });
    }
    odd.warnings = vec!["a store is gone".to_owned()];
    answers.insert(Figure::InProgress, Ok(odd));
    let round = round(&hosts(2), &answers);
    assert_eq!(round.unknown_series, 2);
    let complaints = [
        "in_progress: a series without the label \"instance\"",
        "in_progress: a store is gone",
    ];
    assert_eq!(round.complaints, complaints);
    assert_eq!(jobs(&round.hosts["h:1"]), Some(3));
}

#[test]
fn a_name_that_two_hosts_have_is_told_and_gives_figures_to_neither() {
    let mut hosts = hosts(2);
    hosts[1].metrics_address = "m:1".to_owned();
    let round = round(&hosts, &good());
    assert_eq!(
        round.complaints,
        ["instance=\"m:1\" names two hosts, h:1 and h:2"]
    );
    assert_eq!(
        (jobs(&round.hosts["h:1"]), jobs(&round.hosts["h:2"])),
        (None, Some(5))
    );
}

#[test]
fn without_a_query_for_the_age_figures_are_as_old_as_the_answer() {
    let mut answers = good();
    answers.remove(&Figure::Age);
    let load = round(&hosts(2), &answers).hosts["h:1"]
        .load
        .clone()
        .unwrap();
    assert_eq!(load.age, Duration::ZERO);
}

fn value() -> impl Strategy<Value = Result<f64, weir_promql::NoNumber>> {
    prop_oneof![
        3 => (0.0..100.0f64).prop_map(Ok),
        1 => any::<f64>().prop_map(Ok),
        1 => Just(Err(weir_promql::NoNumber::Histogram)),
    ]
}

fn answer() -> impl Strategy<Value = Result<Answer, PollError>> {
    let name = prop::sample::select(vec!["h:1", "m:1", "h:2", "m:2", "x", ""]);
    let series = (name, prop::option::of("[0-9]{1,2}|high"), value());
    let series = series.prop_map(|(name, priority, value)| {
        let labels = [("instance", Some(name.to_owned())), ("priority", priority)];
        let labels = labels
            .into_iter()
            .filter_map(|(label, value)| Some((label.to_owned(), value?)));
        let labels = labels.filter(|(_, value)| !value.is_empty()).collect();
        Series { labels, value }
    });
    prop_oneof![
        6 => prop::collection::vec(series, 0..5).prop_map(|series| Ok(Answer { series, warnings: vec![] })),
        1 => Just(Err(PollError::new(Fault::Refused, "x"))),
    ]
}

proptest! {
    /// Whatever comes, a host either has all that was asked of its load or a reason is told, and one host's trouble
    /// is not the other's.
    #[test]
    fn no_figure_is_missing_without_a_word(
        answers in prop::collection::btree_map(prop::sample::select(Figure::ALL.to_vec()), answer(), 1..7),
    ) {
        let hosts = hosts(2);
        let round = round(&hosts, &answers);
        prop_assert_eq!(round.hosts.len(), 2);
        for told in round.hosts.values() {
            match &told.load {
                Some(load) => {
                    let asked = |figure| answers.contains_key(&figure);
                    prop_assert_eq!(load.figures.in_progress.is_some(), asked(Figure::InProgress));
                    prop_assert_eq!(load.figures.queued.is_some(), asked(Figure::Queued));
                    prop_assert!(asked(Figure::Age) || load.age.is_zero());
                }
                None => prop_assert!(!told.complaints.is_empty() || !round.complaints.is_empty()),
            }
        }
        let one = &hosts[..1];
        let alone = self::round(one, &answers);
        prop_assert_eq!(&alone.hosts["h:1"], &round.hosts["h:1"]);
    }
}
