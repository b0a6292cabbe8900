// SPDX-License-Identifier: Apache-2.0
//! Reports of runs made up here, by way of their files.

use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use super::*;
use crate::demo::kept::{Run, Way};
use crate::demo::replay::REQUESTS;
use crate::demo::sampler::page::Load;
use crate::demo::sampler::samples::{self, Sample};

const HOSTS: usize = 3;
const COLUMNS: &str = "index,t_us,lag_us,duration_us,priority,key,user,target,outcome,status,\
attempts,shed_attempts,host,reason,cache,wait_us,fetch_us,run_us,slowdown\n";

/// A run in a folder of its own.
struct Made {
    folder: tempfile::TempDir,
    run: Run,
}

impl Made {
    fn new(ways: &[(&str, Option<&str>)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let way = |(name, overload): &(&str, Option<&str>)| Way {
            name: (*name).to_owned(),
            folder: name.replace([' ', '+'], "-"),
            overload: overload.map(str::to_owned),
            hosts: (1..=HOSTS).map(|n| address(n - 1)).collect(),
            busy: Some(0.5),
            lag: 1.0,
        };
        let run = Run {
            begun: 1_795_263_585,
            command: "cargo xtask demo --quick".to_owned(),
            emulated: true,
            header: "workload: w <http>\nMODELLED: m".to_owned(),
            versions: vec![("Envoy".to_owned(), "1.40.0".to_owned())],
            seconds: 10.0,
            deadline: 5.0,
            cores: 2,
            ways: ways.iter().map(way).collect(),
        };
        for way in &run.ways {
            fs::create_dir(folder.path().join(&way.folder)).unwrap();
        }
        Self { folder, run }
    }

    /// Every way with so many requests and looks.
    fn filled(self, requests: usize, looks: usize) -> Self {
        for way in &self.run.ways {
            let dagor = way.overload.as_deref() == Some("dagor");
            self.put(way, REQUESTS, &records(requests, dagor));
            self.put(way, samples::FILE, &samples::written(&seen(looks, dagor)));
        }
        self.run.write(self.path()).unwrap();
        self
    }

    fn put(&self, way: &Way, file: &str, text: &str) {
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
    let mut text = COLUMNS.to_owned();
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
            (true, 0) => format!("5000000,{priority},{key},,t,shed,429,7,7,,,,,,,"),
            (false, 0) => format!("5000000,{priority},{key},,t,timeout,,2,0,,,,,,,"),
            _ => format!("{wait},{priority},{key},,t,ok,200,1,0,{host},,{cache},{wait},0,9,0.5"),
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
    let line = "0,1,0,5000000,high,k,,t,timeout,,2,0,,,,,,,\n";
    for way in &made.run.ways {
        made.put(way, REQUESTS, &format!("{COLUMNS}{line}"));
    }
    let html = made.html();
    assert!(!html.contains("NaN") && html.contains("Nothing was served."));
}

#[test]
fn only_emulated_hosts_are_called_so() {
    let mut made = Made::new(&TWO);
    made.run.emulated = false;
    made.run.header = "workload: w".to_owned();
    let html = made.filled(500, 20).html();
    assert!(!html.contains("EMULATED") && html.contains("share one machine"));
}

#[test]
fn a_machine_that_was_too_busy_is_told_at_the_top() {
    assert!(!Made::new(&TWO).filled(500, 20).html().contains("TOO BUSY"));
    let mut made = Made::new(&TWO);
    made.run.ways[1].busy = Some(0.97);
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
    let way = &made.run.ways[1];
    let text = samples::written(&seen(2, true)).replace("\n500000,3,", "\nsoon,3,");
    made.put(way, samples::FILE, &text);
    let error = format!("{:#}", write(made.path()).unwrap_err());
    for part in ["weir-dynamic-dagor", "samples.csv", "line 7", "column t_us"] {
        assert!(error.contains(part), "{error}");
    }
    made.put(way, REQUESTS, "index,t_us\n1,2\n");
    let error = format!("{:#}", write(made.path()).unwrap_err());
    assert!(
        error.contains("requests.csv") && error.contains("line 2"),
        "{error}"
    );
}

#[test]
fn the_report_of_a_whole_run_can_be_mailed() {
    let five = ["a", "b", "c", "d", "e"].map(|name| (name, Some("dagor")));
    let html = Made::new(&five).filled(20_000, 130).html();
    assert!(html.len() < 1_500_000, "{} bytes", html.len());
}
