// SPDX-License-Identifier: Apache-2.0
//! The made-up requests of document 001 are what its text says, and its scenarios run.

use std::process::Command;

use weir_policy::Selection;
use weir_replay::{table, workload};
use weir_sim::Workload;
use weir_sim::document001::{Circumstance, Experiment, Params, Requests};
use weir_sim::workload::{HIGH, Job, LOW, Work};
use weir_sim::{Ended, simulate};

const HOURS: f64 = 2.0;

fn requests(seed: u64) -> Requests {
    // A customer's day would hide the mean.
    let mut params = Params::default();
    params.set("daily_swing", 0.01).unwrap();
    Requests::new(&params, seed, HOURS)
}

#[test]
fn one_seed_makes_the_same_requests_and_another_makes_others() {
    let some = |seed| format!("{:?}", requests(seed).take(1000).collect::<Vec<_>>());
    assert_eq!(some(1), some(1));
    assert_ne!(some(1), some(2));
}

#[test]
fn there_are_as_many_as_were_captured_in_order_with_the_shares_of_the_text() {
    let jobs: Vec<Job> = requests(1).collect();
    assert!(jobs.is_sorted_by_key(|job| job.at));
    let followers: Vec<_> = jobs.iter().filter_map(|job| job.then.as_ref()).collect();
    let all = (jobs.len() + followers.len()) as f64;
    let expected = 2_879_676.0 * HOURS / 24.0;
    assert!((0.8..1.2).contains(&(all / expected)), "{all}");
    assert!(followers.iter().all(|job| job.class == HIGH));
    let classes = jobs.iter().all(|job| [HIGH, LOW].contains(&job.class));
    assert!(classes && jobs.iter().all(|job| job.key.is_some()));
    // Of the previews, which are what the web backend sends to be run.
    let first = |job: &&Job| job.class == HIGH && job.work != Work::Prefetch;
    let high = jobs.iter().filter(first).count() as f64;
    let dependent = followers.len() as f64 / (high + followers.len() as f64);
    assert!(
        (0.08..=0.155).contains(&dependent),
        "{dependent}, runs by hand among the others"
    );
}

#[test]
fn a_few_projects_make_much_of_the_work() {
    let mut by_project = std::collections::BTreeMap::new();
    for job in requests(1) {
        *by_project.entry(job.key).or_insert(0.0) += job.work.core_time().as_secs_f64();
    }
    let mut work: Vec<f64> = by_project.into_values().collect();
    work.sort_by(|a, b| b.total_cmp(a));
    let top: f64 = work[..work.len() / 100].iter().sum();
    let share = top / work.iter().sum::<f64>();
    assert!(share > 0.3, "the first percent has {share}");
}

#[test]
fn as_a_trace_everything_has_its_time_and_data_never_change() {
    let jobs: Vec<Job> = requests(1).as_trace().take(100_000).collect();
    assert!(jobs.is_sorted_by_key(|job| job.at));
    assert!(
        jobs.iter()
            .all(|job| job.then.is_none() && job.version == 0)
    );
    assert!(requests(1).take(100_000).any(|job| job.version > 0));
}

#[test]
fn every_experiment_runs() {
    for experiment in Experiment::ALL {
        let as_published = Circumstance::AsPublished;
        let run = experiment.run(as_published, &Params::default(), 1, 0.01, |_| {});
        let tally = run.unwrap();
        assert!(tally.requests > 300, "{}", experiment.name());
        assert!(tally.rows().low_duration[0] > 0.0);
    }
}

#[test]
fn tables_figures_and_data_are_written_beside_what_was_published() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new");
    let command = ["document-001", "--hours", "0.02", "--seeds", "2"];
    let output = Command::new(env!("CARGO_BIN_EXE_weir-sim"))
        .args(command)
        .arg("--out")
        .arg(&out)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let text = read("document-001.md");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
    assert!(text.starts_with("SIMULATED"));
    for table in [4, 5, 6, 7] {
        assert!(text.contains(&format!("### Table {table}")), "{table}");
    }
    let page = read("document-001.html");
    for figure in 4..=15 {
        assert!(page.contains(&format!("Figure {figure}")), "{figure}");
    }
    let tables = read("tables.csv");
    // Eight runs: six statistics of three quantities and two priorities; of the seven of the document 15 variances.
    assert_eq!(tables.lines().count(), 1 + 8 * (6 * 3 * 2) + 7 * 15);
    let published = tables
        .lines()
        .find(|line| line.starts_with("5,\"Breaker, dynamic\",low,mean,"));
    assert_eq!(published.unwrap().split(',').nth(5), Some("0.82"));
    let most = tables
        .lines()
        .find(|line| line.starts_with("4,\"Baseline, baseline\",low,max,"));
    assert_eq!(most.unwrap().split(',').nth(5), Some("8721.52"));
    assert!(
        read("history.csv")
            .lines()
            .any(|line| line.contains("\"DAGOR, baseline\",13,"))
    );
}

#[test]
fn the_file_form_is_one_that_weir_replay_reads() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("workload.csv");
    let command = ["workload", "document-001", "--hours", "0.02", "--seed", "3"];
    let output = Command::new(env!("CARGO_BIN_EXE_weir-sim"))
        .args(command)
        .arg("--out")
        .arg(&out)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let requests = workload::read(table::open(&out).unwrap()).unwrap();
    assert!(requests.len() > 1000);
    let mut workload = Workload::new(false);
    requests.iter().for_each(|request| workload.learn(request));
    assert!(
        requests
            .iter()
            .all(|request| workload.job(request).is_some())
    );
    let work: u64 = requests.iter().map(|request| request.run_us).sum();
    assert!(work > requests.last().unwrap().t_us, "{work}");
}

#[test]
fn unknown_parameters_are_refused_with_those_that_there_are() {
    let output = Command::new(env!("CARGO_BIN_EXE_weir-sim"))
        .args(["document-001", "--set", "coress=3"])
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("coress") && error.contains("usable_cores"),
        "{error}"
    );
}

/// Mean duration of priority low in a busy half hour of production in which servers go deaf under `baseline`, in seconds,
/// and how many requests went elsewhere therefore.
fn in_a_deaf_half_hour(selection: Selection, ejects: bool) -> (f64, u32) {
    let mut params = Params::default();
    for (name, value) in [("cores", 20.0), ("daily_swing", 0.01), ("deaf_at", 90.0)] {
        params.set(name, value).unwrap();
    }
    let mut scenario = Experiment::Production.scenario(&params, 1);
    scenario.ejects = ejects;
    scenario.policy.selection = selection;
    scenario.cache_shards = 1024;
    let requests = Requests::new(&params, 1, 0.5);
    let keys = requests.keys();
    let (mut low, mut number, mut elsewhere) = (0.0, 0.0, 0);
    let tell = |ended: Ended| {
        elsewhere += u32::from(ended.connect_timeouts > 0);
        if ended.class == LOW {
            low += ended.duration.as_secs_f64();
            number += 1.0;
        }
    };
    simulate(&scenario, &keys, requests, tell).unwrap();
    (low / number, elsewhere)
}

/// Under `baseline` its load goes to servers without the data, which become deaf, too. Document 001's schedulers ejected
/// nobody.
#[test]
fn ejecting_deaf_servers_brings_production_down_and_its_scenario_does_not_eject() {
    let (kept, few) = in_a_deaf_half_hour(Selection::Baseline, false);
    let (ejected, many) = in_a_deaf_half_hour(Selection::Baseline, true);
    assert!(few > 0 && many > 5 * few, "{few}, {many} went elsewhere");
    assert!(ejected > 2.0 * kept, "{kept}, {ejected} s");
    let (_, none) = in_a_deaf_half_hour(Selection::Estimate, true);
    assert_eq!(none, 0, "Weir's default went elsewhere");
    let production = Experiment::Production.scenario(&Params::default(), 1);
    assert!(!production.ejects);
}
