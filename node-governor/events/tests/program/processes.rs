// SPDX-License-Identifier: Apache-2.0
//! A program that is killed wherever it happens to be.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use weir_events::{Geometry, Ring};

use crate::{MERGE, SCORE, free_dead, place, read};

const RING: &str = "WEIR_TEST_RING";
const PROGRAM: &str = "processes::the_program_that_is_killed";

/// Not a test: started by [`start`].
#[test]
#[ignore = "it runs until it is killed"]
fn the_program_that_is_killed() {
    let Ok(file) = std::env::var(RING) else {
        return;
    };
    let ring = Ring::attach(file);
    std::thread::scope(|scope| {
        for function in [SCORE, MERGE] {
            let ring = &ring;
            scope.spawn(move || {
                // Its own line, after the name of the test.
                let mut line = Some("\nhot");
                loop {
                    let _hot = ring.enter(function);
                    if let Some(line) = line.take() {
                        println!("{line}");
                    }
                    std::hint::spin_loop();
                }
            });
        }
    });
}

/// The program, when both its threads have been hot.
fn start(ring: &Path) -> Child {
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", PROGRAM, "--ignored", "--nocapture"])
        .env(RING, ring)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(program.stdout.as_mut().unwrap()).lines();
    let hot = lines.map(Result::unwrap).filter(|line| line == "hot");
    assert_eq!(hot.take(2).count(), 2);
    program
}

#[test]
fn no_function_runs_after_its_process_was_killed_100_times() {
    let place = place();
    let (mut reader, _) = place.opened(Geometry::new(4, 64).unwrap());
    let mut killed_while_hot = 0;
    for run in 0..100_u64 {
        let mut program = start(&place.file);
        // In and out thousands of times a millisecond: the kill comes anywhere.
        std::thread::sleep(Duration::from_micros(run * 37 % 1000));
        let (tick, _) = read(&mut reader);
        assert_eq!(tick.claimed, 2);
        program.kill().unwrap();
        program.wait().unwrap();
        if run % 3 == 0 {
            drop(reader);
            reader = place.opened(Geometry::new(4, 64).unwrap()).0;
        }
        let (_, seen) = read(&mut reader);
        killed_while_hot += u32::from(seen.iter().any(|lane| !lane.running.is_empty()));
        assert_eq!(free_dead(&mut reader), 2);
        let (tick, seen) = read(&mut reader);
        assert!(tick.claimed == 0 && seen.is_empty(), "{seen:?}");
    }
    assert!(killed_while_hot > 0, "otherwise this has shown nothing");
}

#[test]
fn a_file_that_is_replaced_under_a_program_is_left_for_the_new_one() {
    let place = place();
    let (mut reader, _) = place.opened(Geometry::new(4, 64).unwrap());
    let mut program = start(&place.file);
    for events in [128, 64, 256] {
        drop(reader);
        reader = place.opened(Geometry::new(4, events).unwrap()).0;
        crate::wait_until("both threads have moved", || {
            read(&mut reader).0.claimed == 2
        });
    }
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(free_dead(&mut reader), 2);
}
