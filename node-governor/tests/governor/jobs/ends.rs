// SPDX-License-Identifier: Apache-2.0
//! What becomes of the jobs when the governor ends.

use std::time::Duration;

use weir_governor::jobs::State;
use weir_governor::jobs::spec::OnStop;

use super::place::{Place, is, pause, run, until, until_ended};

const LONG: &str = "echo $$ >> out; until [ -e go ]; do sleep 0.01; done; echo end >> out";

#[test]
fn jobs_that_are_kept_go_on_thawed_on_cores_that_are_never_the_services() {
    for place in Place::both() {
        let job = place.shell("a", LONG);
        let mut runner = place.open(std::slice::from_ref(&job)).unwrap();
        until(&mut runner, &[run([1])], |_| place.lines("out") == 1);
        until(&mut runner, &[pause()], is(0, State::Paused));
        assert!(runner.end());
        let group = place.groups.existing(&runner.found()[0].1.members).unwrap();
        drop(runner);
        assert_eq!(group.cores().unwrap(), super::place::alone());
        std::fs::write(place.path("go"), "").unwrap();
        crate::kernel::wait_for("it goes on", || place.lines("out") == 2);
        let mut runner = place.open(&[job]).unwrap();
        until_ended(&mut runner);
        assert_eq!(runner.states(), [State::Finished]);
        assert_eq!(place.lines("out"), 2);
    }
}

#[test]
fn one_that_was_started_just_now_is_kept_there_too() {
    for place in Place::both() {
        let mut runner = place.open(&[place.shell("a", LONG)]).unwrap();
        runner.take(&[run([1])], weir_governor::sense::now());
        assert!(runner.end());
        let group = place.groups.existing(&runner.found()[0].1.members).unwrap();
        assert_eq!(group.cores().unwrap(), super::place::alone());
        std::fs::write(place.path("go"), "").unwrap();
        until_ended(&mut runner);
    }
}

#[test]
fn jobs_that_are_ended_may_say_good_bye() {
    for mut place in Place::both() {
        place.batch.on_stop = OnStop::End;
        let polite =
            "trap 'echo bye >> out; exit 5' TERM; echo $$ >> out; while :; do sleep 0.01; done";
        let mut runner = place.open(&[place.shell("a", polite)]).unwrap();
        until(&mut runner, &[run([0])], |_| place.lines("out") == 1);
        until(&mut runner, &[pause()], is(0, State::Paused));
        assert!(runner.end());
        assert_eq!(runner.states(), [State::Failed]);
        assert_eq!(runner.facts(0).code, Some(5));
        assert!(place.read("out").ends_with("bye\n"));
    }
}

#[test]
fn those_that_do_not_end_when_asked_are_killed_whole() {
    for mut place in Place::both() {
        place.batch.on_stop = OnStop::End;
        place.batch.grace = Duration::from_millis(100);
        let deaf = "trap '' TERM; echo $$ >> out; (setsid sh -c 'echo $$ >> out; while :; do sleep 0.01; done') & \
                    while :; do sleep 0.01; done";
        let mut runner = place.open(&[place.shell("a", deaf)]).unwrap();
        until(&mut runner, &[run([0])], |_| place.lines("out") == 2);
        assert!(runner.end());
        assert_eq!(runner.facts(0).code, Some(137));
        for pid in place.read("out").lines() {
            assert!(
                !std::fs::exists(format!("/proc/{pid}/cwd")).unwrap(),
                "{pid} lives"
            );
        }
        if place.has_cgroups() {
            assert!(
                place
                    .processes(&format!("{}/a", place.batch.cgroup))
                    .is_empty()
            );
        }
    }
}

#[test]
fn a_job_without_its_keeper_is_ended_too() {
    let Some(mut place) = Place::new(super::place::By::Cgroups) else {
        return;
    };
    place.batch.on_stop = OnStop::End;
    let mut runner = place.open(&[place.shell("a", LONG)]).unwrap();
    until(&mut runner, &[run([0])], |_| place.lines("out") == 1);
    place.kill_keeper("a");
    assert!(runner.end());
    assert_eq!(runner.states(), [State::Failed]);
    assert_eq!(place.lines("out"), 1);
}

#[test]
fn with_nothing_that_runs_there_is_nothing_to_do() {
    for mut place in Place::both() {
        for on_stop in [OnStop::Keep, OnStop::End] {
            place.batch.on_stop = on_stop;
            let mut runner = place.open(&[place.shell("a", "exit 0")]).unwrap();
            assert!(runner.end());
            assert_eq!(runner.states(), [State::Waiting]);
        }
    }
}
