// SPDX-License-Identifier: Apache-2.0
//! Cgroups of somebody else's.

use std::process::{Child, Command};

use weir_governor::apply::groups::Group;
use weir_governor::jobs::State;
use weir_governor::jobs::spec::{OnStop, Source, Spec};

use super::place::{By, Place, is, pause, round, run, spec, until};

fn theirs(place: &Place) -> Spec {
    let mut spec = spec("theirs", &[]);
    spec.source = Source::Cgroup(path(place));
    spec
}

fn path(place: &Place) -> String {
    format!("{}/somebody", place.batch.cgroup)
}

fn made(place: &Place) -> Group {
    place.groups.make(&path(place)).unwrap().unwrap()
}

/// A process in it, which ends when it goes out of scope.
struct Stranger(Child);

impl Stranger {
    fn new(group: &Group) -> Stranger {
        let child = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        for door in group.doors() {
            std::fs::write(door, child.id().to_string()).unwrap();
        }
        Stranger(child)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn it_waits_until_it_has_processes_and_has_ended_when_they_are_gone() {
    let Some(place) = Place::new(By::Cgroups) else {
        return;
    };
    let mut runner = place.open(&[theirs(&place)]).unwrap();
    round(&mut runner, &[run([0])]);
    assert_eq!(runner.states(), [State::Waiting], "it is not there");
    let group = made(&place);
    round(&mut runner, &[run([0])]);
    assert_eq!(runner.states(), [State::Waiting], "it is empty");
    assert_eq!(runner.found(), []);
    let stranger = Stranger::new(&group);
    let before = group.found().unwrap();
    runner.look(weir_governor::sense::now());
    assert_eq!(runner.states(), [State::Running]);
    assert_eq!(runner.found(), [("theirs".to_owned(), before)]);
    until(&mut runner, &[run([0])], |_| {
        group.cores().unwrap().to_string() == "0"
    });
    until(&mut runner, &[pause()], is(0, State::Paused));
    // It is taken up by another governor.
    drop(runner);
    let mut runner = place.open(&[theirs(&place)]).unwrap();
    assert_eq!(runner.states(), [State::Paused]);
    until(&mut runner, &[run([0])], is(0, State::Running));
    drop(stranger);
    until(&mut runner, &[run([0])], is(0, State::Finished));
    // A unit that is started again is no job again, but by forget.
    let _again = Stranger::new(&group);
    for _ in 0..3 {
        round(&mut runner, &[run([0])]);
        assert_eq!(runner.states(), [State::Finished]);
    }
    let runner = place.open(&[theirs(&place)]).unwrap();
    assert_eq!(runner.states(), [State::Finished]);
}

#[test]
fn one_that_ends_while_it_is_paused_is_put_back_as_found() {
    let Some(place) = Place::new(By::Cgroups) else {
        return;
    };
    let group = made(&place);
    let stranger = Stranger::new(&group);
    let before = group.found().unwrap();
    let mut runner = place.open(&[theirs(&place)]).unwrap();
    until(&mut runner, &[run([0])], |_| {
        group.cores().unwrap().to_string() == "0"
    });
    until(&mut runner, &[pause()], is(0, State::Paused));
    assert!(group.is_frozen().unwrap());
    drop(stranger);
    until(&mut runner, &[pause()], is(0, State::Finished));
    assert_eq!(group.found().unwrap(), before);
}

#[test]
fn one_that_is_removed_under_us_has_ended() {
    let Some(place) = Place::new(By::Cgroups) else {
        return;
    };
    let group = made(&place);
    let stranger = Stranger::new(&group);
    let mut runner = place.open(&[theirs(&place)]).unwrap();
    until(&mut runner, &[run([0])], is(0, State::Running));
    drop(stranger);
    group.remove().unwrap();
    until(&mut runner, &[run([0])], is(0, State::Finished));
    assert_eq!(runner.facts(0).trouble, None);
    assert_eq!(runner.found(), []);
}

#[test]
fn one_that_ended_while_no_governor_ran_has_ended() {
    let Some(place) = Place::new(By::Cgroups) else {
        return;
    };
    let group = made(&place);
    let stranger = Stranger::new(&group);
    let mut runner = place.open(&[theirs(&place)]).unwrap();
    until(&mut runner, &[run([0])], is(0, State::Running));
    drop(runner);
    drop(stranger);
    group.remove().unwrap();
    let runner = place.open(&[theirs(&place)]).unwrap();
    assert_eq!(runner.states(), [State::Finished]);
}

#[test]
fn it_is_put_back_as_found_and_never_ended() {
    for on_stop in [OnStop::Keep, OnStop::End] {
        let Some(mut place) = Place::new(By::Cgroups) else {
            return;
        };
        place.batch.on_stop = on_stop;
        let group = made(&place);
        let mut stranger = Stranger::new(&group);
        let before = group.found().unwrap();
        let mut runner = place.open(&[theirs(&place)]).unwrap();
        until(&mut runner, &[run([0])], is(0, State::Running));
        until(&mut runner, &[pause()], is(0, State::Paused));
        assert!(runner.end());
        assert_eq!(group.found().unwrap(), before);
        assert!(stranger.0.try_wait().unwrap().is_none());
    }
}
