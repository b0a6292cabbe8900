// SPDX-License-Identifier: Apache-2.0
//! Processes in no group of their own, and all that come from them.

use std::io::ErrorKind;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use weir_governor::apply::groups::{Group, Members};
use weir_governor::cores::Cores;
use weir_governor::root::Root;

use super::cores;
use super::machine::{BUSY, World, allowed, possible, status, used, works};
use crate::kernel::wait_for;

fn world() -> Option<World> {
    World::new(&Root::new("/"))
}

impl World {
    fn process(&self, pid: i32) -> Group {
        self.groups
            .existing(&self.groups.process(pid).unwrap())
            .unwrap()
    }
}

fn numbers(group: &Group) -> Vec<i32> {
    let pids = group.processes().unwrap();
    pids.iter().map(|pid| pid.as_raw_nonzero().get()).collect()
}

/// Of every thread of every process in it.
fn threads(group: &Group, field: &str) -> Vec<String> {
    let mut all = Vec::new();
    for pid in numbers(group) {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            // It may have ended.
            let Ok(text) = std::fs::read_to_string(task.path().join("status")) else {
                continue;
            };
            let line = text.lines().find_map(|line| line.strip_prefix(field));
            all.push(line.unwrap().trim_start_matches(':').trim().to_owned());
        }
    }
    all
}

fn all_stopped(group: &Group) -> bool {
    threads(group, "State")
        .iter()
        .all(|state| state.starts_with('T'))
}

#[test]
fn a_process_and_all_that_come_from_it_are_confined_and_stopped() {
    let Some(mut world) = world() else {
        return;
    };
    let pid = world.start(&format!("(({BUSY}) & {BUSY}) & wait"));
    let mut group = world.process(pid);
    wait_for("its children", || numbers(&group).len() == 3);
    assert_eq!(group.doors(), Vec::<std::path::PathBuf>::new());
    let found = group.found().unwrap();
    let before = allowed(pid);
    assert_eq!((&found.cores, found.frozen), (&before, Some(false)));
    group.set_cores(&cores([1])).unwrap();
    assert_eq!(threads(&group, "Cpus_allowed_list"), ["1", "1", "1"]);
    assert_eq!(group.cores().unwrap(), cores([1]));
    let last = *numbers(&group).last().unwrap();
    group.freeze().unwrap();
    assert!(group.is_frozen().unwrap());
    wait_for("it to stop", || all_stopped(&group));
    let stopped = used(last);
    assert!(!works(&mut world, last));
    let mut stranger = world.process(pid);
    assert_eq!(stranger.found().unwrap().frozen, Some(true));
    stranger.restore(&found).unwrap();
    assert_eq!(stranger.found().unwrap(), found);
    assert_eq!(threads(&group, "Cpus_allowed_list"), [&*before; 3]);
    wait_for("it to go on", || used(last) > stopped);
    // What was found stopped stays so.
    let frozen = weir_governor::apply::groups::Found {
        frozen: Some(true),
        ..found
    };
    stranger.restore(&frozen).unwrap();
    wait_for("it to stop", || all_stopped(&group));
}

#[test]
fn processes_and_threads_that_come_and_go_are_all_confined_and_stopped() {
    let Some(mut world) = world() else {
        return;
    };
    let forks = world.start("while :; do (:) & (: & :); done");
    let mut many = Command::new(std::env::current_exe().unwrap());
    many.args(["--exact", "groups::processes::many_threads", "--ignored"]);
    many.env(MANY, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let many = many.spawn().unwrap();
    let threaded = many.id() as i32;
    world.children.push(many);
    wait_for("threads", || {
        status(threaded, "Threads").parse::<u32>().unwrap() > 4
    });
    for pid in [forks, threaded] {
        let mut group = world.process(pid);
        for one in [0, 1, 0] {
            // Whoever was being born has what its parent had, and is confined with the next attempt.
            wait_for("all to be confined", || {
                group.set_cores(&cores([one])).unwrap();
                let seen = threads(&group, "Cpus_allowed_list");
                assert!(!seen.is_empty());
                seen.iter().all(|allowed| *allowed == one.to_string())
            });
        }
        wait_for("all to stop", || {
            group.freeze().unwrap();
            all_stopped(&group)
        });
        let stopped = numbers(&group);
        assert!(!works(&mut world, pid));
        // One that was ending when it was told does not stop: it goes.
        let later = numbers(&group);
        assert!(later.iter().all(|pid| stopped.contains(pid)), "{later:?}");
        group.thaw().unwrap();
        wait_for("it to go on", || !all_stopped(&group));
    }
}

/// Starts a program whose standard input is a pipe that nobody writes: its child waits before it begins, and it for
/// its child, as every shell does for a moment.
const BEGINS: &str = "import os
os.posix_spawn('/bin/true', ['true'], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, 'pipe', os.O_RDONLY, 0)])";

#[test]
fn one_that_waits_for_its_child_to_begin_is_stopped_with_it() {
    let Some(mut world) = world() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let mut begins = Command::new("python3");
    begins.args(["-c", BEGINS]).current_dir(folder.path());
    let begins = begins.spawn().unwrap();
    let pid = begins.id() as i32;
    world.children.push(begins);
    // One that waits for a page of its own looks the same, but has no child yet.
    wait_for("it to wait for its child", || {
        numbers(&world.process(pid)).len() == 2 && status(pid, "State").starts_with('D')
    });
    let found = world.process(pid).is_frozen().unwrap();
    world.process(pid).freeze().unwrap();
    let pause = || std::thread::sleep(std::time::Duration::from_millis(10));
    let frozen = (0..500).any(|_| {
        pause();
        world.process(pid).is_frozen().unwrap()
    });
    let state = status(pid, "State");
    world.process(pid).thaw().unwrap();
    let thawed = world.process(pid).is_frozen().unwrap();
    // It ends whatever was seen.
    std::fs::OpenOptions::new().write(true).open(pipe).unwrap();
    assert!(world.children.last_mut().unwrap().wait().unwrap().success());
    assert_eq!((found, frozen, thawed), (false, true, false));
    assert!(state.starts_with('D'), "{state}");
}

const MANY: &str = "WEIR_TEST_MANY_THREADS";

/// No test: what another starts as a process.
#[test]
#[ignore = "runs until it is killed"]
fn many_threads() {
    if std::env::var_os(MANY).is_none() {
        return;
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let short = std::thread::spawn(|| std::hint::black_box(0));
                    short.join().unwrap();
                }
            });
        }
    });
}

#[test]
fn a_process_that_has_gone_is_told_and_its_number_is_not_enough() {
    let Some(mut world) = world() else {
        return;
    };
    let pid = world.start("exec sleep 1000");
    let members = world.groups.process(pid).unwrap();
    let Members::Process { started, .. } = members else {
        panic!("{members:?}");
    };
    let other = Members::Process {
        pid,
        started: started + 1,
    };
    let error = world.groups.existing(&other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains(&pid.to_string()), "{error}");
    for bad in [0, -1, i32::MIN, i32::MAX] {
        let members = Members::Process { pid: bad, started };
        assert!(world.groups.existing(&members).is_err(), "{bad}");
        assert!(world.groups.process(bad).is_err(), "{bad}");
    }
    let mut group = world.process(pid);
    let found = group.found().unwrap();
    assert!(group.is_there());
    // Its parent, which this is, has not asked how it ended.
    world.children[0].kill().unwrap();
    wait_for("its end", || !group.is_there());
    for error in [
        group.set_cores(&cores([0])).unwrap_err(),
        group.freeze().unwrap_err(),
        group.thaw().unwrap_err(),
        group.processes().unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let says = format!("/proc/{pid}/stat: No such file or directory");
        assert!(error.to_string().contains(&says), "{error}");
    }
    group.restore(&found).unwrap();
    group.remove().unwrap();
}

#[test]
fn whoever_freezes_is_not_frozen() {
    let Some(world) = world() else {
        return;
    };
    let mut own = world.process(std::process::id() as i32);
    let error = own.freeze().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(
        error.to_string().contains(&std::process::id().to_string()),
        "{error}"
    );
}

#[derive(Clone, Debug)]
enum Step {
    Cores(usize, Cores),
    Frozen(usize, bool),
    /// Another value for the same group, as after a restart.
    Open(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let some = prop::sample::select(vec![cores([0]), cores([1]), cores([0, 1])]);
    prop_oneof![
        3 => (0..2usize, some).prop_map(|(group, cores)| Step::Cores(group, cores)),
        2 => (0..2usize, any::<bool>()).prop_map(|(group, frozen)| Step::Frozen(group, frozen)),
        1 => (0..2usize).prop_map(Step::Open),
    ]
}

/// Whatever is done to two groups, each is as it was told last; in the end both are as found.
fn as_told(members: [Members; 2], world: &World, pids: [i32; 2], steps: Vec<Step>) {
    let open = |index: usize| world.groups.existing(&members[index]).unwrap();
    let mut groups = [open(0), open(1)];
    let found = [0, 1].map(|index| groups[index].found().unwrap());
    let mut told = [0, 1].map(|index| (groups[index].cores().unwrap(), false));
    for step in steps {
        match step {
            Step::Cores(index, cores) => {
                groups[index].set_cores(&cores).unwrap();
                told[index].0 = cores;
            }
            Step::Frozen(index, frozen) => {
                let group = &mut groups[index];
                if frozen { group.freeze() } else { group.thaw() }.unwrap();
                // By signals a stranger sees it when it has happened.
                wait_for("it", || open(index).is_frozen().unwrap() == frozen);
                told[index].1 = frozen;
            }
            Step::Open(index) => groups[index] = open(index),
        }
        for (index, group) in groups.iter().enumerate() {
            let now = (group.cores().unwrap(), group.is_frozen().unwrap());
            assert_eq!(now, told[index]);
            assert_eq!(allowed(pids[index]), told[index].0.to_string());
        }
    }
    for (group, found) in groups.iter_mut().zip(&found) {
        group.restore(found).unwrap();
        wait_for("it", || group.found().unwrap().frozen == found.frozen);
        let now = group.found().unwrap().cores;
        assert!(now == found.cores || found.cores.is_empty() && now == possible());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn processes_are_as_they_were_told_last(steps in prop::collection::vec(step(), 1..12)) {
        if let Some(mut world) = world() {
            let pids = [0, 1].map(|_| world.start("exec sleep 1000"));
            let members = pids.map(|pid| world.groups.process(pid).unwrap());
            as_told(members, &world, pids, steps);
        }
    }

    #[test]
    fn cgroups_are_as_they_were_told_last(steps in prop::collection::vec(step(), 1..12)) {
        if let Some(mut world) = World::machine() {
            let groups = ["a", "b"].map(|name| world.make(name).unwrap());
            let members = groups.each_ref().map(|group| group.members().clone());
            let pids = groups.each_ref().map(|group| world.run(group, "exec sleep 1000"));
            as_told(members, &world, pids, steps);
        }
    }
}
