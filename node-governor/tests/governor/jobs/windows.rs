// SPDX-License-Identifier: Apache-2.0
//! Every moment at which a governor can be gone: another comes and finds the job as it is. A governor that is gone
//! is a [`Runner`] that was dropped without its end.

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use weir_governor::apply::groups::{Found, Members};
use weir_governor::cores::{Act, JobPlan};
use weir_governor::jobs::State;
use weir_governor::jobs::runner::Runner;
use weir_governor::sense::now;
use weir_governor::sensed::Nanos;
use weir_needs::{Need, skip};

use super::place::{By, Place, is, pause, round, run, until, until_ended};

/// Writes its number, and ends when it may.
const ONCE: &str = "echo $$ >> out; until [ -e go ]; do sleep 0.01; done; echo end >> out";

fn change(place: &Place, file: &str, change: impl FnOnce(&mut Value)) {
    let path = place.record("a", file);
    let mut record = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut record);
    std::fs::write(path, record.to_string()).unwrap();
}

/// Runs it to its end, and sees that it ran once.
fn ends_once(place: &Place, runner: &mut Runner) {
    std::fs::write(place.path("go"), "").unwrap();
    until_ended(runner);
    assert_eq!(runner.states(), [State::Finished]);
    assert_eq!(place.lines("out"), 2, "{}", place.read("out"));
}

#[test]
fn gone_when_it_had_asked_and_no_keeper_came() {
    for place in Place::both() {
        let job = place.shell("a", ONCE);
        let mut runner = place.open_kept_by(std::slice::from_ref(&job), "exec tail -f $0");
        round(&mut runner, &[run([0])]);
        assert_eq!(runner.states(), [State::Running], "it is about to");
        assert!(place.record("a", "started").exists());
        drop(runner);
        let mut runner = place.open(&[job]).unwrap();
        assert_eq!(runner.states(), [State::Waiting]);
        assert!(
            !place.record("a", "started").exists(),
            "nobody may take it now"
        );
        ends_once(&place, &mut runner);
    }
}

#[test]
fn gone_when_its_keeper_was_still_on_its_way() {
    for place in Place::both() {
        let job = place.shell("a", ONCE);
        let late = "until [ -e ../late ]; do sleep 0.01; done; $KEEPER \"$@\"; echo $? >> ../came";
        let late = late.replace("../", place.path("").to_str().unwrap());
        let mut runner = place.open_kept_by(std::slice::from_ref(&job), &late);
        round(&mut runner, &[run([0])]);
        drop(runner);
        // One that comes while it is asked for by another takes it, or finds that it is taken.
        let mut runner = place.open_kept_by(std::slice::from_ref(&job), &late);
        assert_eq!(runner.states(), [State::Waiting]);
        round(&mut runner, &[run([0])]);
        std::fs::write(place.path("late"), "").unwrap();
        until(&mut runner, &[run([0])], |_| place.lines("out") == 1);
        ends_once(&place, &mut runner);
        until(&mut runner, &[run([0])], |_| place.read("came") == "0\n0\n");
        assert_eq!(place.lines("out"), 2);
        // One that comes when nothing is asked for does nothing.
        drop(runner);
        let keeper = std::process::Command::new(env!("CARGO_BIN_EXE_weir-governor"))
            .arg("keep")
            .arg(place.record("a", ""))
            .status();
        assert!(keeper.unwrap().success());
        assert_eq!(place.lines("out"), 2);
    }
}

#[test]
fn gone_while_the_job_runs_or_is_frozen() {
    for place in Place::both() {
        let job = place.shell("a", ONCE);
        let mut runner = place.open(std::slice::from_ref(&job)).unwrap();
        until(&mut runner, &[run([0])], |_| place.lines("out") == 1);
        drop(runner);
        let mut runner = place.open(std::slice::from_ref(&job)).unwrap();
        assert_eq!(runner.states(), [State::Running]);
        assert_eq!(runner.facts(0).threads, 3);
        until(&mut runner, &[pause()], is(0, State::Paused));
        drop(runner);
        let mut runner = place.open(std::slice::from_ref(&job)).unwrap();
        // Without cgroups it is said to be frozen once all of it stands still.
        until(&mut runner, &[pause()], is(0, State::Paused));
        ends_once(&place, &mut runner);
    }
}

#[test]
fn gone_when_it_ended() {
    for place in Place::both() {
        let job = place.shell("a", ONCE);
        let mut runner = place.open(std::slice::from_ref(&job)).unwrap();
        until(&mut runner, &[run([0])], |_| place.lines("out") == 1);
        drop(runner);
        std::fs::write(place.path("go"), "").unwrap();
        crate::kernel::wait_for("the end", || place.record("a", "ended").exists());
        let mut runner = place.open(std::slice::from_ref(&job)).unwrap();
        // Its keeper may be on its way out.
        until(&mut runner, &[run([0])], is(0, State::Finished));
        round(&mut runner, &[run([0])]);
        drop(runner);
        let mut runner = place.open(&[job]).unwrap();
        assert_eq!(runner.states(), [State::Finished]);
        assert_eq!(runner.facts(0).code, Some(0));
        round(&mut runner, &[run([0])]);
        assert_eq!(runner.states(), [State::Finished], "it is started once");
        assert_eq!(place.lines("out"), 2);
    }
}

#[test]
fn a_keeper_that_was_killed_before_it_started_the_job_is_the_end_of_it() {
    for place in Place::both() {
        let job = place.shell("a", ONCE);
        let mut runner = place.open_kept_by(std::slice::from_ref(&job), "exec tail -f $0");
        round(&mut runner, &[run([0])]);
        drop(runner);
        change(&place, "started", |started| {
            started["keeper"] = json!({ "pid": 1, "started": 1 });
        });
        let runner = place.open(&[job]).unwrap();
        assert_eq!(runner.states(), [State::Failed]);
        let trouble = runner.facts(0).trouble.clone().unwrap();
        assert!(trouble.contains("its keeper was killed"), "{trouble}");
    }
}

#[test]
fn a_keeper_that_never_comes_fails_the_job() {
    let place = Place::new(By::Nothing).unwrap();
    let come = format!("echo came >> {}; exit 1", place.path("came").display());
    let mut runner = place.open_kept_by(&[place.shell("a", ONCE)], &come);
    seconds(&mut runner);
    assert_eq!(runner.states(), [State::Failed]);
    assert_eq!(place.lines("came"), 10);
    let trouble = runner.facts(0).trouble.clone().unwrap();
    assert!(trouble.contains("ended before it began"), "{trouble}");
    assert_eq!(place.lines("out"), 0);
}

/// Rounds a second apart, as the runner is told, until its job has ended.
#[track_caller]
fn seconds(runner: &mut Runner) {
    for second in 1..6000 {
        let now = Nanos(second * 1_000_000_000);
        runner.tick(now);
        runner.look(now);
        runner.take(&[run([0])], now);
        if runner.states()[0].has_ended() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!(
        "waited in vain for its end: {:?} {:?}",
        runner.states(),
        runner.facts(0)
    );
}

#[test]
fn a_keeper_that_ended_before_the_job_began_is_followed_by_another() {
    let place = Place::new(By::Nothing).unwrap();
    let came = place.path("came");
    let came = came.display();
    let second = format!("echo >> {came}; [ -s {came}.2 ] && exec $KEEPER \"$@\"; echo > {came}.2");
    let mut runner = place.open_kept_by(&[place.shell("a", "echo ran >> out")], &second);
    seconds(&mut runner);
    assert_eq!(runner.states(), [State::Finished]);
    assert_eq!((place.lines("came"), place.lines("out")), (2, 1));
}

#[test]
fn a_job_that_cannot_be_started_has_failed_in_the_end() {
    let place = Place::new(By::Nothing).unwrap();
    let runner = place.open(&[place.shell("a", ONCE)]).unwrap();
    let mut runner = runner.with_keeper("/nowhere/weir-governor");
    seconds(&mut runner);
    assert_eq!(runner.states(), [State::Failed]);
    assert_eq!(runner.write_errors(), 10);
    let trouble = runner.facts(0).trouble.clone().unwrap();
    assert!(trouble.contains("cannot be started"), "{trouble}");
}

#[test]
fn a_job_whose_group_cannot_be_looked_at_is_not_forgotten() {
    let place = Place::new(By::Nothing).unwrap();
    let job = place.shell("a", ONCE);
    let mut runner = place.open(std::slice::from_ref(&job)).unwrap();
    until(&mut runner, &[run([0])], |_| place.lines("out") == 1);
    drop(runner);
    change(&place, "started", |started| {
        started["cgroup"] = json!("../a")
    });
    place.kill_keeper("a");
    for jobs in [vec![job], vec![]] {
        crate::kernel::wait_for("the keeper's end", || {
            let error = place.open(&jobs).err().map(|error| error.to_string());
            error.is_some_and(|error| error.contains("no path of a cgroup"))
        });
        assert!(place.record("a", "started").exists());
        assert!(!place.record("a", "ended").exists());
    }
}

#[test]
fn a_job_that_cannot_be_shrunk_is_frozen() {
    // Goes last: what is in its cgroup is the other's.
    let Some(cgroups) = Place::new(By::Cgroups) else {
        return;
    };
    if std::thread::available_parallelism().unwrap().get() < 2 {
        return skip(Need::Cores, "this machine has one");
    }
    let place = Place::new(By::Nothing).unwrap();
    let mut runner = place.open(&[place.shell("a", ONCE)]).unwrap();
    until(&mut runner, &[run([0, 1])], |_| place.lines("out") == 1);
    // Where it may not have core 0.
    let path = format!("{}/a", cgroups.batch.cgroup);
    let mut group = cgroups.groups.make(&path).unwrap().unwrap();
    group.set_cores(&[1].into()).unwrap();
    for door in group.doors() {
        std::fs::write(door, place.read("out").trim()).unwrap();
    }
    until(&mut runner, &[run([0])], is(0, State::Paused));
    let trouble = runner.facts(0).trouble.clone().unwrap();
    assert!(trouble.contains("cannot be moved"), "{trouble}");
}

#[test]
fn a_keeper_that_cannot_be_started_is_tried_again() {
    let place = Place::new(By::Nothing).unwrap();
    let job = place.shell("a", "echo ran >> out");
    let runner = place.open(std::slice::from_ref(&job)).unwrap();
    let mut runner = runner.with_keeper("/nowhere/weir-governor");
    round(&mut runner, &[run([0])]);
    assert_eq!(runner.states(), [State::Waiting]);
    let trouble = runner.facts(0).trouble.clone().unwrap();
    assert!(trouble.contains("cannot be started"), "{trouble}");
    assert_eq!(runner.write_errors(), 1);
    round(&mut runner, &[run([0])]);
    assert_eq!(runner.write_errors(), 1, "not before a second has gone");
    let mut runner = runner.with_keeper(env!("CARGO_BIN_EXE_weir-governor"));
    until_ended(&mut runner);
    assert_eq!(place.lines("out"), 1);
}

#[test]
fn after_its_keeper_was_killed_a_job_runs_until_its_cgroup_is_empty() {
    let Some(place) = Place::new(By::Cgroups) else {
        return;
    };
    let job = place.shell("a", ONCE);
    let mut runner = place.open(std::slice::from_ref(&job)).unwrap();
    until(&mut runner, &[run([0])], |_| place.lines("out") == 1);
    place.kill_keeper("a");
    for _ in 0..20 {
        round(&mut runner, &[run([0])]);
        assert_eq!(runner.states(), [State::Running]);
    }
    until(&mut runner, &[pause()], is(0, State::Paused));
    drop(runner);
    let mut runner = place.open(&[job]).unwrap();
    assert_eq!(runner.states(), [State::Paused]);
    std::fs::write(place.path("go"), "").unwrap();
    until_ended(&mut runner);
    assert_eq!(runner.states(), [State::Failed]);
    assert_eq!(place.lines("out"), 2, "it was not run again");
    let trouble = runner.facts(0).trouble.clone().unwrap();
    assert!(trouble.contains("its keeper was killed"), "{trouble}");
}

#[test]
fn without_cgroups_a_job_whose_keeper_was_killed_has_failed() {
    let place = Place::new(By::Nothing).unwrap();
    let mut runner = place.open(&[place.shell("a", ONCE)]).unwrap();
    until(&mut runner, &[run([0])], |_| place.lines("out") == 1);
    place.kill_keeper("a");
    until(&mut runner, &[run([0])], is(0, State::Failed));
    let pid = place.read("out").trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn without_cgroups_a_job_that_was_paused_when_its_keeper_was_killed_goes_on() {
    let place = Place::new(By::Nothing).unwrap();
    // The kernel ends a stopped process group by SIGHUP when nobody of its session is left above it (`man 2 exit`);
    // one in a session of its own it leaves stopped.
    let own = format!("setsid sh -c '{ONCE}' & wait");
    let mut runner = place.open(&[place.shell("a", &own)]).unwrap();
    until(&mut runner, &[run([0])], |_| place.lines("out") == 1);
    until(&mut runner, &[pause()], is(0, State::Paused));
    place.kill_keeper("a");
    until(&mut runner, &[pause()], is(0, State::Failed));
    std::fs::write(place.path("go"), "").unwrap();
    crate::kernel::wait_for("its end", || place.lines("out") == 2);
}

#[test]
fn another_command_is_another_job_once_the_old_one_has_ended() {
    for place in Place::both() {
        let old = place.shell("a", ONCE);
        let new = place.shell("a", "echo new >> out");
        let mut runner = place.open(std::slice::from_ref(&old)).unwrap();
        until(&mut runner, &[run([0])], |_| place.lines("out") == 1);
        drop(runner);
        for (jobs, told) in [
            (vec![new.clone()], "another command"),
            (vec![], "not configured any more"),
        ] {
            let error = place.open(&jobs).unwrap_err().to_string();
            let kept = format!(
                "kept by process {}",
                place.keeper("a").unwrap().as_raw_nonzero()
            );
            assert!(
                error.starts_with("jobs.a: ") && error.contains(told),
                "{error}"
            );
            assert!(error.contains(&kept), "{error}");
        }
        let mut runner = place.open(&[old]).unwrap();
        ends_once(&place, &mut runner);
        drop(runner);
        let mut runner = place.open(&[new]).unwrap();
        assert_eq!(runner.states(), [State::Waiting]);
        until_ended(&mut runner);
        assert!(place.read("out").ends_with("end\nnew\n"));
    }
}

#[test]
fn after_another_boot_what_ran_waits_again_and_what_ended_stays_so() {
    let place = Place::new(By::Nothing).unwrap();
    let job = place.shell("a", ONCE);
    let mut runner = place.open(std::slice::from_ref(&job)).unwrap();
    until(&mut runner, &[run([0])], |_| place.lines("out") == 1);
    place.kill_keeper("a");
    drop(runner);
    change(&place, "started", |started| {
        started["boot"] = json!("another")
    });
    crate::kernel::wait_for("the keeper's end", || {
        place.open(std::slice::from_ref(&job)).unwrap().states() == [State::Waiting]
    });
    std::fs::write(place.path("go"), "").unwrap();
    crate::kernel::wait_for("the first run's end", || place.lines("out") == 2);
    let mut runner = place.open(std::slice::from_ref(&job)).unwrap();
    until_ended(&mut runner);
    assert_eq!(place.lines("out"), 4);
}

#[test]
fn a_full_disk_does_not_make_a_job_that_ran_one_that_waits() {
    for place in Place::both() {
        let held = "echo ran >> out; until [ -e go ]; do sleep 0.01; done";
        let mut runner = place.open(&[place.shell("a", held)]).unwrap();
        until(&mut runner, &[run([0])], |_| place.lines("out") == 1);
        // Where the next record would be written.
        let partial = place.record("a", "partial");
        std::fs::create_dir(&partial).unwrap();
        place.kill_keeper("a");
        std::fs::write(place.path("go"), "").unwrap();
        until(&mut runner, &[run([0])], |runner| {
            assert_ne!(runner.states(), [State::Waiting]);
            runner.facts(0).trouble.is_some()
        });
        let trouble = runner.facts(0).trouble.clone().unwrap();
        assert!(trouble.contains("jobs/a/partial: "), "{trouble}");
        for _ in 0..20 {
            round(&mut runner, &[run([0])]);
            assert_eq!(runner.states(), [State::Running]);
        }
        std::fs::remove_dir(partial).unwrap();
        until_ended(&mut runner);
        assert_eq!(runner.states(), [State::Failed]);
        assert_eq!(place.lines("out"), 1);
    }
}

#[test]
fn a_broken_record_is_refused_and_named() {
    let place = Place::new(By::Nothing).unwrap();
    let job = place.shell("a", "exit 0");
    drop(place.open(std::slice::from_ref(&job)).unwrap());
    std::fs::write(place.record("a", "ended"), "{").unwrap();
    let error = place.open(&[job]).unwrap_err().to_string();
    assert!(
        error.contains("jobs/a/ended: ") && error.contains("remove it"),
        "{error}"
    );
}

#[test]
fn what_is_found_is_known_before_anything_can_be_done_to_a_job() {
    for place in Place::both() {
        let mut runner = place.open(&[place.shell("a", ONCE)]).unwrap();
        let before = runner.found();
        let version = runner.found_version();
        until(&mut runner, &[run([0])], |runner| {
            place.lines("out") == 1 && is_there(&place, runner)
        });
        let found = runner.found();
        assert_eq!(
            (found[0].1.cores.as_str(), found[0].1.frozen),
            ("0", Some(false))
        );
        if place.has_cgroups() {
            assert_eq!(before, found, "it is told before the cgroup is there");
        } else {
            assert_eq!(before, []);
            assert_ne!(runner.found_version(), version);
        }
        ends_once(&place, &mut runner);
        assert_eq!(runner.found(), []);
        assert_ne!(runner.found_version(), version);
    }
}

/// Its group is what is told of it.
fn is_there(place: &Place, runner: &Runner) -> bool {
    let is_there = |found: &Found| place.groups.existing(&found.members).is_ok();
    runner
        .found()
        .first()
        .is_some_and(|(_, found)| is_there(found))
}

#[test]
fn a_job_whose_cgroup_was_removed_is_still_moved_and_frozen() {
    let Some(place) = Place::new(By::Cgroups) else {
        return;
    };
    let mut runner = place.open(&[place.shell("a", ONCE)]).unwrap();
    until(&mut runner, &[run([0])], |_| place.lines("out") == 1);
    let path = |name: &str| format!("{}/{name}", place.batch.cgroup);
    let elsewhere = place.groups.make(&path("b")).unwrap().unwrap();
    crate::kernel::wait_for("it is removed", || {
        for process in place.processes(&path("a")) {
            for door in elsewhere.doors() {
                // It may be gone.
                let _ = std::fs::write(door, process.as_raw_nonzero().to_string());
            }
        }
        let own = place.groups.existing(&Members::Cgroup(path("a")));
        own.is_ok_and(|group| group.remove().is_ok())
    });
    runner.look(now());
    let trouble = runner.facts(0).trouble.clone().unwrap();
    assert!(trouble.ends_with("/a was removed"), "{trouble}");
    until(&mut runner, &[pause()], is(0, State::Paused));
    assert!(matches!(
        runner.found()[0].1.members,
        Members::Process { .. }
    ));
    until(&mut runner, &[run([0])], is(0, State::Running));
    ends_once(&place, &mut runner);
}

#[test]
fn a_job_that_keeps_none_of_its_cores_stands_still_until_it_has_others() {
    for place in Place::both() {
        let mut runner = place.open(&[place.shell("a", ONCE)]).unwrap();
        until(&mut runner, &[run([0])], |_| place.lines("out") == 1);
        until(&mut runner, &[run([0])], |runner| is_there(&place, runner));
        let members = runner.found()[0].1.members.clone();
        let is_frozen = || {
            place
                .groups
                .existing(&members)
                .unwrap()
                .is_frozen()
                .unwrap()
        };
        runner.give(&[run([1])], |_| true);
        crate::kernel::wait_for("it stands still", is_frozen);
        runner.take(&[run([1])], now());
        crate::kernel::wait_for("it goes on", || !is_frozen());
        runner.give(
            &[JobPlan {
                act: Act::Done,
                ..run([0])
            }],
            |_| true,
        );
        assert!(!is_frozen(), "nothing was planned for it");
        assert_eq!(
            place
                .groups
                .existing(&members)
                .unwrap()
                .cores()
                .unwrap()
                .to_string(),
            "1"
        );
        ends_once(&place, &mut runner);
    }
}
