// SPDX-License-Identifier: Apache-2.0
//! `weir-governor forget`.

use std::process::Command;

use weir_governor::jobs::State;

use super::place::{By, Place, run, until, until_ended};

fn forget(place: &Place, names: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_weir-governor"))
        .arg("forget")
        .args(names)
        .arg("--state")
        .arg(place.state())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn a_job_that_is_forgotten_runs_again() {
    let place = Place::new(By::Nothing).unwrap();
    let jobs = ["a", "b"].map(|name| place.shell(name, &format!("echo {name} >> out")));
    let mut runner = place.open(&jobs).unwrap();
    until_ended(&mut runner);
    drop(runner);
    assert_eq!(forget(&place, &["b"]), (Some(0), "b\n".to_owned()));
    let mut runner = place.open(&jobs).unwrap();
    assert_eq!(runner.states(), [State::Finished, State::Waiting]);
    until_ended(&mut runner);
    assert_eq!(place.lines("out"), 3);
    drop(runner);
    assert_eq!(forget(&place, &[]), (Some(0), "a\nb\n".to_owned()));
    assert_eq!(
        forget(&place, &[]),
        (Some(0), String::new()),
        "none is left"
    );
    let runner = place.open(&jobs).unwrap();
    assert_eq!(runner.states(), [State::Waiting, State::Waiting]);
}

#[test]
fn those_that_run_and_those_that_are_not_there_are_refused_and_nothing_is_forgotten() {
    let place = Place::new(By::Nothing).unwrap();
    let jobs = [
        place.shell("a", "exit 0"),
        place.shell("b", "until [ -e go ]; do sleep 0.01; done"),
    ];
    let mut runner = place.open(&jobs).unwrap();
    until(&mut runner, &[run([0]), run([0])], |runner| {
        runner.states()[0].has_ended() && place.keeper("b").is_some()
    });
    let (code, told) = forget(&place, &["a", "b"]);
    assert_eq!(code, Some(1));
    assert!(told.starts_with("b: runs still"), "{told}");
    let (code, told) = forget(&place, &["a", "c"]);
    assert_eq!(code, Some(1));
    assert!(
        told.starts_with("c: no such job has ended; a have"),
        "{told}"
    );
    assert!(place.record("a", "ended").exists());
    assert_eq!(
        forget(&place, &[]),
        (Some(0), "a\n".to_owned()),
        "b is left alone"
    );
    std::fs::write(place.path("go"), "").unwrap();
    until(&mut runner, &[run([0]), run([0])], |runner| {
        runner.states()[1].has_ended()
    });
}

#[test]
fn where_no_governor_has_been_there_is_nothing() {
    let place = Place::new(By::Nothing).unwrap();
    let (code, told) = forget(&place, &["a"]);
    assert_eq!(
        (code, told.as_str()),
        (Some(1), "a: no such job has ended; none has\n")
    );
    std::fs::remove_dir(place.state()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_weir-governor"))
        .args(["forget", "--state", "/nowhere/weir"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("/nowhere/weir: "));
}
