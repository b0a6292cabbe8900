// SPDX-License-Identifier: Apache-2.0
//! Reports of runs made up here, by way of their files.

use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use super::*;
use weir_replay::record::COLUMNS;

use crate::Experiment;
use crate::demo::Demo;
use crate::origin::Origin;
use crate::replay::REQUESTS;
use crate::sampler::page::Load;
use crate::sampler::{self, Sample};

const HOSTS: usize = 3;
/// A run in a folder of its own.
struct Made {
    folder: tempfile::TempDir,
    run: Run,
    ways: Vec<Told>,
}

impl Made {
    fn new(ways: &[(&str, Option<&str>)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let way =
            |(name, overload): &(&str, Option<&str>)| Told::made_up(name, *overload, 0.5, 1.0);
        let run = Run {
            origin: Origin::made_up(
                "cargo xtask demo --quick",
                "workload: w <http>\nMODELLED: m",
            ),
            emulated: true,
            seconds: 10.0,
            deadline: 5.0,
            cores: 2,
        };
        let ways: Vec<Told> = ways.iter().map(way).collect();
        for way in &ways {
            fs::create_dir(folder.path().join(&way.folder)).unwrap();
        }
        Self { folder, run, ways }
    }

    /// Every way with so many requests and looks.
    fn filled(self, requests: usize, looks: usize) -> Self {
        for way in &self.ways {
            let dagor = way.overload.as_deref() == Some("dagor");
            self.put(way, REQUESTS, &records(requests, dagor));
            let file = self.path().join(&way.folder).join(sampler::FILE);
            driver::write_lines(&file, &seen(looks, dagor)).unwrap();
        }
        self.run.write(self.path()).unwrap();
        driver::write_lines(&self.path().join(Demo::ROUNDS), &self.ways).unwrap();
        self
    }

    fn put(&self, way: &Told, file: &str, text: &str) {
        fs::write(self.path().join(&way.folder).join(file), text).unwrap();
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn html(&self) -> String {
        fs::read_to_string(write(self.path()).unwrap()).unwrap()
    }
}

fn address(host: usize) -> SocketAddr {
    ([127, 0, 0, 1], 9000 + host as u16).into()
}

fn records(requests: usize, shed: bool) -> String {
    let mut text = format!("{COLUMNS}\n");
    for n in 0..requests {
        let (at, host) = (n * 10_000_000 / requests, address(n * n % HOSTS));
        let (priority, key) = (["high", "low"][usize::from(n % 5 > 0)], n % 17 % 14);
        // One of the keys is somebody's attempt.
        let key = match key {
            0 => "<b id=x>&\"".to_owned(),
            _ => format!("k{key}"),
        };
        let cache = ["hit", "hit", "miss"][n % 3];
        let wait = n * 7919 % 900_000;
        let line = match (shed, n % 11) {
            (true, 0) => format!("5000000,9000,{priority},{key},,t,shed,429,7,7,,,,,,,"),
            (false, 0) => format!("5000000,9000,{priority},{key},,t,timeout,,2,0,,,,,,,"),
            _ => format!(
                "{wait},{wait},{priority},{key},,t,ok,200,1,0,{host},,{cache},{wait},0,9,0.5"
            ),
        };
        writeln!(text, "{n},{at},0,{line}").unwrap();
    }
    text
}

fn seen(looks: usize, dagor: bool) -> Vec<Sample> {
    let sample = |n: usize| Sample {
        at: 0.5 * (n / HOSTS) as f64,
        host: n % HOSTS,
        load: (n != 4).then(|| Load {
            in_progress: (n * 31 % 70) as f64,
            queued: (n * 31 % 60) as f64,
            waited: n as f64,
            jobs: (3 * n) as f64,
        }),
        level: dagor.then_some(2048 + (n * 13 % 128) as u16),
    };
    (0..HOSTS * looks).map(sample).collect()
}

const TWO: [(&str, Option<&str>); 2] = [
    ("envoy least_request", None),
    ("weir dynamic+dagor", Some("dagor")),
];

#[test]
fn the_report_loads_nothing_and_runs_nothing() {
    let html = Made::new(&TWO).filled(500, 20).html();
    for outside in [
        "http://",
        "https://",
        "src=",
        "href",
        "url(",
        "@import",
        "<script",
        "<link",
        "<img",
        "<iframe",
        "<object",
        "onload",
        "javascript",
        "<b ",
    ] {
        assert!(!html.contains(outside), "{outside} in the report");
    }
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn everything_is_told_and_nothing_is_empty() {
    let html = Made::new(&TWO).filled(500, 20).html();
    for told in [
        "EMULATED",
        "MODELLED",
        "Duration, all-in",
        "Wait in the host",
        "Load of each host",
        "Queuing delay",
        "Admission level",
        "Found in cache",
        "most wanted keys",
        "Refused attempts",
        "Host by host",
        "All figures",
        "w &lt;http&gt;",
        "&lt;b id=x&gt;&amp;",
        "cargo xtask demo --quick",
        "21 November 2026, 12:19 UTC",
        "1 of 60 looks at a host had no answer",
    ] {
        assert!(html.contains(told), "{told:?} is missing");
    }
    assert!(!html.contains("class=\"empty\"") && !html.contains("NaN"));
}

#[test]
fn what_a_way_does_not_have_is_said_instead_of_an_empty_picture() {
    let html = Made::new(&TWO[..1]).filled(500, 20).html();
    assert!(html.contains("Admission levels: envoy least_request had none."));
    assert!(html.contains("there is no weir-control in this way"));
    assert!(html.contains("Nothing: no attempt was refused"));
    assert!(!html.contains("class=\"empty\"") && !html.contains("NaN"));
    let breaker = [("weir dynamic+breaker", Some("breaker"))];
    let html = Made::new(&breaker).filled(500, 20).html();
    assert!(html.contains("the overload policy breaker has none"));
}

#[test]
fn a_run_in_which_nothing_was_served_or_seen_is_told_too() {
    let made = Made::new(&TWO).filled(0, 0);
    assert!(!made.html().contains("NaN"));
    let line = "0,1,0,5000000,9000,high,k,,t,timeout,,2,0,,,,,,,\n";
    for way in &made.ways {
        made.put(way, REQUESTS, &format!("{COLUMNS}\n{line}"));
    }
    let html = made.html();
    assert!(!html.contains("NaN") && html.contains("Nothing was served."));
}

#[test]
fn only_emulated_hosts_are_called_so() {
    let mut made = Made::new(&TWO);
    made.run.emulated = false;
    made.run.origin.header = "workload: w".to_owned();
    let html = made.filled(500, 20).html();
    assert!(!html.contains("EMULATED") && html.contains("share one machine"));
}

#[test]
fn a_machine_that_was_too_busy_is_told_at_the_top() {
    assert!(!Made::new(&TWO).filled(500, 20).html().contains("TOO BUSY"));
    let mut made = Made::new(&TWO);
    made.ways[1].busy = Some(0.97);
    let html = made.filled(500, 20).html();
    let (top, _) = html.split_once("How long requests took").unwrap();
    assert!(top.contains("TOO BUSY: with weir dynamic+dagor the"));
}

#[test]
fn the_same_files_give_the_same_report() {
    let made = Made::new(&TWO).filled(500, 20);
    assert_eq!(made.html(), made.html());
}

#[test]
fn a_way_has_the_same_colour_wherever_it_is_shown() {
    let html = Made::new(&TWO).filled(500, 20).html();
    for (n, (name, _)) in TWO.iter().enumerate() {
        let lines = html.matches(&format!("<title>{name}</title>")).count();
        let colour = format!("class=\"series s{n} d0\"");
        let of_colour = html.split(&colour).skip(1);
        let named = of_colour.filter(|rest| {
            let end = rest.find("</path>").unwrap_or(rest.len());
            rest[..end].contains(&format!("<title>{name}</title>"))
        });
        assert!(lines > 4);
        assert_eq!(named.count(), lines, "{name}");
    }
}

#[test]
fn a_broken_file_is_named_with_line_and_column() {
    let made = Made::new(&TWO).filled(5, 2);
    let way = &made.ways[1];
    let file = made.path().join(&way.folder).join(sampler::FILE);
    let text = fs::read_to_string(file).unwrap();
    let text = text.replace(
        "{\"at_s\":0.5,\"host\":2,",
        "{\"at_s\":\"soon\",\"host\":2,",
    );
    made.put(way, sampler::FILE, &text);
    let error = format!("{:#}", write(made.path()).unwrap_err());
    for part in ["weir-dynamic-dagor", "samples.jsonl", "line 6", "column 14"] {
        assert!(error.contains(part), "{error}");
    }
    made.put(way, REQUESTS, "index,t_us\n1,2\n");
    let error = format!("{:#}", write(made.path()).unwrap_err());
    assert!(
        error.contains("requests.csv") && error.contains("line 1"),
        "{error}"
    );
}

#[test]
fn the_report_of_a_whole_run_can_be_mailed() {
    let five = ["a", "b", "c", "d", "e"].map(|name| (name, Some("dagor")));
    let html = Made::new(&five).filled(20_000, 130).html();
    assert!(html.len() < 1_500_000, "{} bytes", html.len());
}
