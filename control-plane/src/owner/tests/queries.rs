// SPDX-License-Identifier: Apache-2.0
//! Rounds of queries, and what is pushed and shown after them. No clock but the script's.

use weir_fleet::prometheus::{Answers, Figure};
use weir_promql::{Answer, Series};

use super::logged::Log;
use super::*;

struct Script {
    owner: Owner,
    now: Instant,
}

impl Script {
    /// Hosts 127.0.0.1:1 and 127.0.0.1:2, and a second of running without any news.
    fn new(settings: &str) -> Self {
        let hosts = "[ { address: \"127.0.0.1:1\" }, { address: \"127.0.0.1:2\" } ]";
        let text = format!(
            "publish: {{ table_bytes_per_second: 1GiB }}\nclusters: {{ c: {{ hosts: {hosts}, {settings} }} }}\n"
        );
        let config = configured(&tempfile::tempdir().unwrap(), &text);
        let now = Instant::now();
        let mut script = Self {
            owner: Owner::new(&config, 7, Metrics::default(), now),
            now,
        };
        script.pass(1000);
        script
    }

    fn pass(&mut self, ms: u64) -> &mut Self {
        self.now += Duration::from_millis(ms);
        self.owner.advance(self.now);
        self
    }

    fn queried(&mut self, answers: Answers) -> &mut Self {
        let update = Update::Queried {
            cluster: "c".into(),
            asked: self.now,
            answers,
        };
        self.owner.fold(update, self.now);
        self
    }

    fn scraped(&mut self, host: usize, figures: Figures) -> &mut Self {
        let update = Update::Scraped {
            cluster: "c".into(),
            host: format!("127.0.0.1:{host}").into(),
            asked: self.now,
            result: Ok(Scraped {
                figures,
                ..Scraped::default()
            }),
        };
        self.owner.fold(update, self.now);
        self
    }

    fn table(&mut self) -> Table {
        self.owner.publish(self.now);
        pushed(&self.owner)
    }

    /// Jobs in progress by host, and the age of what says so.
    fn loads(&mut self) -> Vec<Option<(u32, u64)>> {
        let now = self.owner.state.clock(self.now);
        let table = self.table();
        let load = |host: &weir_policy::Host| {
            let load = host.load.as_ref()?;
            let age = now.saturating_sub(load.observed);
            Some((load.in_progress, age.as_millis() as u64))
        };
        table.hosts().iter().map(load).collect()
    }

    fn view(&mut self) -> View {
        self.owner.publish(self.now);
        let (answer, mut view) = oneshot::channel();
        self.owner.fold(News::View(answer), self.now);
        view.try_recv().unwrap()
    }
}

fn of(list: &[(usize, f64)]) -> Result<Answer, PollError> {
    let series = |(host, value): &(usize, f64)| Series {
        labels: BTreeMap::from([("instance".to_owned(), format!("127.0.0.1:{host}"))]),
        value: Ok(*value),
    };
    Ok(Answer {
        series: list.iter().map(series).collect(),
        warnings: Vec::new(),
    })
}

fn jobs(list: &[(usize, f64)], age: f64) -> Answers {
    let ages: Vec<(usize, f64)> = list.iter().map(|(host, _)| (*host, age)).collect();
    Answers::from([(Figure::InProgress, of(list)), (Figure::Age, of(&ages))])
}

const PROMETHEUS: &str = "prometheus: { queries: { queued: \"\", queuing_delay: \"\" } }";

#[test]
fn figures_are_as_old_as_prometheus_says() {
    let mut script = Script::new(PROMETHEUS);
    script.queried(jobs(&[(1, 3.0), (2, 5.0)], 0.25));
    assert_eq!(script.loads(), [Some((3, 250)), Some((5, 250))]);
    script.pass(100);
    assert_eq!(script.loads()[0], Some((3, 350)));
    // The same sample, asked for again.
    script.queried(jobs(&[(1, 3.0), (2, 5.0)], 0.35));
    assert_eq!(script.loads()[0], Some((3, 350)));
}

#[test]
fn figures_from_before_the_start_wait_for_newer_ones() {
    let mut script = Script::new(PROMETHEUS);
    script.queried(jobs(&[(1, 3.0)], 1.5));
    assert_eq!(
        script.loads()[0],
        None,
        "a second of the clock cannot tell that age"
    );
    script.pass(1000).queried(jobs(&[(1, 3.0)], 1.5));
    assert_eq!(script.loads()[0], Some((3, 1500)));
}

#[test]
fn what_is_bad_leaves_the_last_good_figures_which_age() {
    let good = || jobs(&[(1, 3.0), (2, 5.0)], 0.0);
    let failed = |fault| Err(PollError::new(fault, "x"));
    let bad = [
        ("NaN", jobs(&[(1, f64::NAN), (2, 5.0)], 0.0)),
        ("infinite", jobs(&[(1, f64::INFINITY), (2, 5.0)], 0.0)),
        ("negative", jobs(&[(1, -1.0), (2, 5.0)], 0.0)),
        ("two series", jobs(&[(1, 1.0), (1, 1.0), (2, 5.0)], 0.0)),
        ("no series", jobs(&[(2, 5.0)], 0.0)),
        ("an unknown age", jobs(&[(1, 9.0), (2, 5.0)], f64::NAN)),
        ("nothing", jobs(&[], 0.0)),
        (
            "a time-out",
            Answers::from([
                (Figure::InProgress, failed(Fault::TimedOut)),
                (Figure::Age, of(&[(1, 0.0)])),
            ]),
        ),
        (
            "nobody",
            Answers::from([
                (Figure::InProgress, failed(Fault::Refused)),
                (Figure::Age, failed(Fault::Refused)),
            ]),
        ),
    ];
    for (what, bad) in bad {
        let mut script = Script::new(PROMETHEUS);
        script.queried(good());
        for _ in 0..3 {
            script.pass(100).queried(bad.clone());
        }
        assert_eq!(script.loads()[0], Some((3, 300)), "{what}");
        let view = script.view();
        let view = &view.clusters["c"];
        let of_host = view.hosts[0].sources["prometheus"].trouble().count();
        let of_cluster = view.sources["prometheus"].trouble().count();
        assert!(of_host + of_cluster > 0, "{what} is shown");
        assert!(
            view.hosts.iter().all(|host| host.state == "up"),
            "{what} is no dead host"
        );
        script.queried(good());
        assert_eq!(script.loads()[0], Some((3, 0)));
        let view = script.view();
        let view = &view.clusters["c"];
        let trouble = view.hosts[0].sources["prometheus"].trouble().count();
        assert_eq!(
            trouble + view.sources["prometheus"].trouble().count(),
            0,
            "{what} is over"
        );
    }
}

#[test]
fn the_freshest_figures_win_and_whose_they_are_is_shown() {
    let mut script = Script::new("scrape: {}, prometheus: {}");
    let all = |age: f64| {
        Answers::from([
            (Figure::InProgress, of(&[(1, 7.0)])),
            (Figure::Queued, of(&[(1, 0.0)])),
            (Figure::Age, of(&[(1, age)])),
        ])
    };
    let page = Figures {
        in_progress: Some(3),
        queued: Some(vec![1]),
        queuing_delay: Some(Duration::from_millis(40)),
        ..Figures::default()
    };
    script.scraped(1, page).pass(500).queried(all(0.7));
    assert_eq!(script.loads()[0], Some((3, 500)), "the page is younger");
    assert_eq!(script.view().clusters["c"].hosts[0].from, Some("scrape"));
    script.queried(all(0.2));
    assert_eq!(script.loads()[0], Some((7, 200)));
    let view = script.view();
    let host = &view.clusters["c"].hosts[0];
    assert_eq!(
        (host.from, host.pushed_from),
        (Some("prometheus"), Some("prometheus"))
    );
    assert_eq!(host.age_ms, Some(200));
    assert_eq!(
        host.queuing_delay_ms,
        Some(40.0),
        "Prometheus tells no delay: the page's is kept"
    );
}

#[test]
fn series_of_other_hosts_are_counted() {
    let mut script = Script::new(PROMETHEUS);
    script.queried(jobs(&[(1, 3.0), (8, 1.0), (9, 1.0)], 0.0));
    let view = script.view();
    // Their age too.
    assert_eq!(view.clusters["c"].unknown_series, 4);
    assert!(
        view.clusters["c"].sources["prometheus"]
            .trouble()
            .next()
            .is_none()
    );
}

#[test]
fn what_prometheus_says_of_a_host_is_no_word_on_whether_it_can_be_reached() {
    let mut script = Script::new("scrape: {}, prometheus: {}");
    let refused = |script: &mut Script| {
        let update = Update::Scraped {
            cluster: "c".into(),
            host: "127.0.0.1:1".into(),
            asked: script.now,
            result: Err(PollError::new(Fault::Refused, "x")),
        };
        script.owner.fold(update, script.now);
    };
    for _ in 0..2 {
        refused(&mut script);
        let mut answers = jobs(&[(1, 3.0)], 0.0);
        answers.insert(Figure::Queued, of(&[(1, 1.0)]));
        script.queried(answers);
    }
    assert_eq!(script.view().clusters["c"].hosts[0].state, "down");
}

#[test]
fn a_host_that_drains_says_so_through_prometheus_as_well() {
    let mut script = Script::new(PROMETHEUS);
    let mut drains = |value: f64, age: f64| {
        let mut answers = jobs(&[(1, 3.0), (2, 5.0)], age);
        answers.insert(Figure::Draining, of(&[(1, value)]));
        script.pass(100).queried(answers);
        script.view().clusters["c"].hosts[0].state
    };
    assert_eq!(drains(1.0, 0.0), "draining");
    assert_eq!(drains(0.0, 0.5), "draining", "that is an older word");
    assert_eq!(drains(0.0, 0.0), "up");
}

#[test]
fn each_change_is_logged_once() {
    Log::of(|log| {
        let mut script = Script::new(PROMETHEUS);
        let mut thrice = |answers: Answers| {
            for _ in 0..3 {
                script.pass(100).queried(answers.clone());
            }
            log.lines()
        };
        assert_eq!(
            thrice(jobs(&[(1, 1.0), (2, 1.0), (9, 1.0)], 0.0)),
            Vec::<String>::new()
        );
        assert_eq!(
            thrice(jobs(&[(1, f64::NAN), (2, 1.0)], 0.0)),
            [
                "WARN Prometheus answers, but not everything cluster=\"c\" host=\"127.0.0.1:1\" complaints=[\"in_progress: NaN\"]"
            ]
        );
        assert_eq!(
            thrice(jobs(&[], 0.0)),
            [
                "WARN Prometheus answers, but not everything cluster=\"c\" complaints=[\"age: no series\", \"in_progress: no series\"]",
                "INFO Prometheus answers cluster=\"c\" host=\"127.0.0.1:1\"",
            ]
        );
        let refused = || Err(PollError::new(Fault::Refused, "x"));
        let gone = Answers::from([(Figure::InProgress, refused()), (Figure::Age, refused())]);
        let said = thrice(gone);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("error=\"refused: x\""), "{said:?}");
        assert_eq!(
            thrice(jobs(&[(1, 1.0), (2, 1.0)], 0.0)),
            ["INFO Prometheus answers cluster=\"c\""]
        );
    });
}
