// SPDX-License-Identifier: Apache-2.0
//! Governors that are killed at random, and started again: every job runs once and ends once.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use weir_governor::apply::groups::Members;
use weir_governor::cores::JobPlan;
use weir_governor::jobs::State;
use weir_governor::jobs::runner::Runner;
use weir_governor::jobs::spec::Spec;

use super::place::{By, Place, is, pause, round, run, until};
use crate::kernel::wait_or_tell;

const JOBS: usize = 4;
const PLACE: &str = "WEIR_TEST_PLACE";

/// Jobs of different lengths that say when they begin and when they end.
fn jobs(place: &Place) -> Vec<Spec> {
    let job = |number: usize| {
        let text = format!(
            "echo begin >> {number}; sleep 0.0{}; echo end >> {number}",
            number * 3
        );
        let away = format!("({text}) & exit 0");
        let text = if number.is_multiple_of(2) { text } else { away };
        place.shell(&number.to_string(), &text)
    };
    (0..JOBS).map(job).collect()
}

/// No test: a governor of jobs, which runs, moves and pauses them until all have ended.
#[test]
#[ignore = "what the others start as a process"]
fn governor() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    let place = Place::of_another(&place);
    let mut runner = place.open(&jobs(&place)).unwrap();
    let mut seed = u64::from(std::process::id());
    while !runner.states().iter().all(|state| state.has_ended()) {
        let plan = |_| {
            // Knuth, *The Art of Computer Programming*, volume 2, section 3.3.4, table 1, line 26.
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            match seed >> 62 {
                0 => JobPlan::default(),
                1 => pause(),
                2 => run([0]),
                _ => run([0, 1]),
            }
        };
        let plans: Vec<JobPlan> = (0..JOBS).map(plan).collect();
        round(&mut runner, &plans);
        std::thread::sleep(Duration::from_millis(1));
    }
    place.forget();
}

fn start(place: &Place) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "jobs::kills::governor", "--ignored"]);
    command.env(PLACE, place.path(""));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

/// How often random runs are tried.
fn runs(few: u32) -> u32 {
    let runs = std::env::var("WEIR_RUNS").ok();
    runs.map_or(few, |runs| runs.parse().unwrap())
}

fn each_ran_once(place: &Place) {
    for number in 0..JOBS {
        assert_eq!(
            place.read(&number.to_string()),
            "begin\nend\n",
            "job {number}"
        );
        let ended = std::fs::read_to_string(place.record(&number.to_string(), "ended")).unwrap();
        let ended: serde_json::Value = serde_json::from_str(&ended).unwrap();
        assert_eq!(ended["code"], 0, "{ended}");
    }
}

#[test]
fn governors_that_are_killed_lose_no_job_and_start_none_twice() {
    for by in [By::Nothing, By::Cgroups] {
        for number in 0..runs(8) {
            let Some(place) = Place::new(by) else {
                break;
            };
            let mut kills = 0;
            let mut governor = start(&place);
            // A test program takes some milliseconds before it does anything; later kills come later.
            for kill in 0..6 {
                let after = (number * 31 + kill * 17) % 97;
                std::thread::sleep(Duration::from_millis(after.into()));
                kills += u32::from(governor.try_wait().unwrap().is_none());
                // It may have ended.
                let _ = governor.kill();
                governor.wait().unwrap();
                governor = start(&place);
            }
            let tell = || format!("run {number}, {kills} kills");
            wait_or_tell(
                "the end of all jobs",
                || governor.try_wait().unwrap().is_some(),
                tell,
            );
            each_ran_once(&place);
            for job in 0..JOBS {
                let path = format!("{}/{job}", place.batch.cgroup);
                // A keeper may be on its way out.
                crate::kernel::wait_for("nobody", || place.processes(&path).is_empty());
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Plan(usize, usize),
    Look,
    /// The governor is gone without its end, and another comes.
    Gone,
    /// The governor ends as it should, and another comes.
    Stopped,
    Wait,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..JOBS, 0..4usize).prop_map(|(job, plan)| Step::Plan(job, plan)),
        2 => Just(Step::Look),
        1 => Just(Step::Gone),
        1 => Just(Step::Stopped),
        2 => Just(Step::Wait),
    ]
}

fn tell(runner: &Runner) -> String {
    let facts = (0..JOBS).map(|job| runner.facts(job));
    format!("{:?} {:?}", runner.states(), facts.collect::<Vec<_>>())
}

fn check(place: &Place, steps: Vec<Step>) {
    let jobs = jobs(place);
    let mut runner = place.open(&jobs).unwrap();
    let mut plans = vec![JobPlan::default(); JOBS];
    let mut before = vec![State::Waiting; JOBS];
    for step in steps {
        match step {
            Step::Plan(job, 0) => plans[job] = JobPlan::default(),
            Step::Plan(job, 1) => plans[job] = pause(),
            Step::Plan(job, plan) => plans[job] = run([plan as u32 - 2]),
            Step::Look => runner.look(weir_governor::sense::now()),
            Step::Wait => std::thread::sleep(Duration::from_millis(5)),
            Step::Gone => runner = place.open(&jobs).unwrap(),
            Step::Stopped => {
                assert!(runner.end(), "{}", tell(&runner));
                assert!(!runner.states().contains(&State::Paused));
                runner = place.open(&jobs).unwrap();
            }
        }
        runner.tick(weir_governor::sense::now());
        runner.give(&plans, |_| true);
        runner.take(&plans, weir_governor::sense::now());
        for (was, is) in before.iter().zip(runner.states()) {
            assert!(!was.has_ended() || is == was, "{was:?} became {is:?}");
        }
        before = runner.states().to_vec();
    }
    let plans = vec![run([0]); JOBS];
    until(&mut runner, &plans, |runner| {
        (0..JOBS).all(|job| is(job, State::Finished)(runner))
    });
    each_ran_once(place);
    assert_eq!(runner.write_errors(), 0);
    let members = |job| Members::Cgroup(format!("{}/{job}", place.batch.cgroup));
    until(&mut runner, &plans, |_| {
        (0..JOBS).all(|job| place.groups.existing(&members(job)).is_err())
    });
}

#[test]
fn whatever_the_plans_are_and_however_governors_go_every_job_runs_once_and_ends_once() {
    for by in [By::Nothing, By::Cgroups] {
        let config = Config {
            cases: runs(8),
            // What failed depends on the moment.
            max_shrink_iters: 0,
            failure_persistence: None,
            ..Config::default()
        };
        let steps = prop::collection::vec(step(), 1..60);
        let run = TestRunner::new(config).run(&steps, |steps| {
            if let Some(place) = Place::new(by) {
                check(&place, steps);
            }
            Ok(())
        });
        run.unwrap();
    }
}
