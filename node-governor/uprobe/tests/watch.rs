// SPDX-License-Identifier: Apache-2.0
//! Real programs, watched by the real kernel. Where it does not allow that, each test says so loudly and passes.

#[path = "watch/lanes.rs"]
mod lanes;
#[path = "watch/program.rs"]
mod program;

use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lanes::Lanes;
use program::{Running, cc};
use tempfile::TempDir;
use weir_events::Kind::{self, Enter, Leave};
use weir_events::{FunctionId, Geometry};
use weir_uprobe::{Change, Ends, Probe, Uprobes};

fn can_watch() -> bool {
    let can = weir_uprobe::doctor();
    if let Err(error) = &can {
        weir_needs::skip(weir_needs::Need::Uprobes, error);
    }
    can.is_ok()
}

fn probe(binary: &Path, symbol: &str, function: usize) -> Probe {
    Probe {
        function: FunctionId::new(function as u8).expect("below 16"),
        binary: binary.to_owned(),
        symbol: symbol.to_owned(),
        process: None,
        no_unwinding: false,
    }
}

fn attach(probes: &[Probe]) -> (Uprobes, Lanes) {
    let geometry = Geometry::new(32, 4096).expect("in range");
    let (uprobes, memory) =
        Uprobes::attach(probes, geometry).unwrap_or_else(|error| panic!("{error}"));
    (uprobes, Lanes::new(memory))
}

/// A C program of its own for each test: what others attach to is another file.
fn hot_c() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let binary = dir.path().join("hot");
    cc(&[], "hot.c", &binary);
    (dir, binary)
}

fn pairs(times: usize, function: usize) -> Vec<(Kind, usize)> {
    [(Enter, function), (Leave, function)].repeat(times)
}

#[test]
fn a_program_that_starts_while_it_is_tried_whether_uprobes_work_is_unharmed() {
    if !can_watch() {
        return;
    }
    let own = std::env::current_exe().expect("this program");
    std::thread::scope(|scope| {
        // What it says is not what is looked at here.
        let tried = scope.spawn(|| (0..10).filter(|_| weir_uprobe::doctor().is_ok()).count());
        while !tried.is_finished() {
            let listed = Command::new(&own)
                .arg("--list")
                .output()
                .expect("it starts");
            assert!(listed.status.success(), "{listed:?}");
        }
        assert!(tried.join().expect("no panic") > 0);
    });
}

#[test]
fn each_call_in_each_thread_is_seen_once() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (uprobes, mut lanes) = attach(&[probe(&binary, "hot", 3)]);
    let mut program = Running::start(&binary);
    program.tell("calls 4 500");
    let seen = lanes.look();
    assert_eq!(seen.len(), 4, "{:?}", uprobes.counts());
    for lane in &seen {
        assert_eq!(lane.owner.pid, program.id());
        assert_eq!(lane.kinds(), pairs(500, 3));
        assert!(lane.is_outside());
        assert!(lane.events.is_sorted_by_key(|(_, _, time)| *time));
        assert_eq!(lane.started, started(lane.owner.pid, lane.owner.tid));
    }
}

/// Field 22 of `/proc/PID/task/TID/stat`.
fn started(process: u32, thread: u32) -> u64 {
    let stat =
        std::fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).expect("it runs");
    let after_name = stat.rsplit(')').next().expect("a name");
    after_name
        .split_whitespace()
        .nth(19)
        .and_then(|field| field.parse().ok())
        .expect("a number")
}

#[test]
fn a_call_of_itself_is_one_call_however_deep() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (_uprobes, mut lanes) = attach(&[probe(&binary, "hot", 0)]);
    let mut program = Running::start(&binary);
    program.tell("recurse 3");
    // Deeper than the kernel follows returns.
    program.tell("recurse 100");
    program.tell("recurse 0");
    let [lane] = &lanes.look()[..] else {
        panic!("one thread");
    };
    assert_eq!(lane.kinds(), pairs(3, 0));
    assert!(lane.is_outside());
}

#[test]
fn a_call_that_was_jumped_out_of_is_over_at_the_next_event() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (uprobes, mut lanes) = attach(&[probe(&binary, "jumper", 0), probe(&binary, "main", 1)]);
    let mut program = Running::start(&binary);
    // A jump out of more than 64 calls ends what the kernel knows of this thread's returns.
    for depth in [0, 5, 60] {
        program.tell(&format!("jump {depth}"));
    }
    program.tell("return 1");
    let [lane] = &lanes.look()[..] else {
        panic!("one thread");
    };
    let whole_program = [(Enter, 1)].into_iter().chain(pairs(4, 0));
    assert_eq!(lane.kinds(), whole_program.collect::<Vec<_>>());
    assert_eq!(lane.since[0], 0);
    assert_ne!(lane.since[1], 0, "main has not returned");
    assert_eq!(uprobes.counts().ended_by_stack, 3);
}

#[test]
fn a_call_that_was_jumped_out_of_does_not_hide_calls_from_further_down() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (_uprobes, mut lanes) = attach(&[probe(&binary, "jumper", 0)]);
    let mut program = Running::start(&binary);
    program.tell("jump 0");
    program.tell("below 3");
    let seen = lanes.look();
    assert_eq!(seen[0].kinds(), pairs(4, 0));
    assert!(seen[0].is_outside());
}

#[test]
fn a_call_that_was_jumped_out_of_is_over_soon_also_without_an_event() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (mut uprobes, mut lanes) =
        attach(&[probe(&binary, "jumper", 0), probe(&binary, "main", 1)]);
    let mut program = Running::start(&binary);
    for depth in [0, 100] {
        program.tell(&format!("jump {depth}"));
        assert_ne!(lanes.look()[0].since[0], 0);
        wait(|| {
            uprobes.refresh();
            Some(()).filter(|()| lanes.look()[0].since[0] == 0)
        });
        assert_ne!(lanes.look()[0].since[1], 0, "main has not returned");
    }
    program.tell("return 1");
    assert_eq!(lanes.look()[0].kinds().len(), 4);
}

#[test]
fn a_thread_that_is_inside_says_since_when_until_it_is_killed() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (_uprobes, mut lanes) = attach(&[probe(&binary, "stayer", 7)]);
    let mut program = Running::start(&binary);
    program.tell("stay");
    let [lane] = &lanes.look()[..] else {
        panic!("one thread");
    };
    assert_eq!(lane.kinds(), [(Enter, 7)]);
    assert_eq!(lane.since[7], lane.events[0].2);
    program.kill();
    assert_eq!(lanes.look(), []);
}

#[test]
fn a_program_that_is_started_again_is_watched_again() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (_uprobes, mut lanes) = attach(&[probe(&binary, "hot", 0)]);
    for _ in 0..5 {
        let mut program = Running::start(&binary);
        program.tell("calls 2 10");
        let seen = lanes.look();
        assert_eq!(seen.len(), 2);
        for lane in seen {
            assert_eq!((lane.owner.pid, lane.kinds()), (program.id(), pairs(10, 0)));
        }
        program.kill();
        assert_eq!(lanes.look(), []);
    }
}

#[test]
fn a_program_that_runs_already_is_watched_from_then_on_until_the_probes_are_dropped() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let mut program = Running::start(&binary);
    program.tell("calls 1 10");
    let (uprobes, mut lanes) = attach(&[probe(&binary, "hot", 0)]);
    program.tell("calls 2 10");
    assert_eq!(lanes.look().len(), 2);
    drop(uprobes);
    // The kernel takes a probe away when nobody can be in it any more: on a machine that is busy with other tests it was
    // seen to need more than ten seconds.
    let mut is_silent = || {
        std::thread::sleep(Duration::from_millis(10));
        program.tell("calls 2 10");
        lanes.look().is_empty()
    };
    assert!((0..10_000).any(|_| is_silent()), "heard for ever");
}

#[test]
fn threads_that_come_and_go_leave_their_lanes_to_others() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (uprobes, mut lanes) = attach(&[probe(&binary, "hot", 0)]);
    let mut program = Running::start(&binary);
    program.tell("short 500 2");
    assert_eq!(lanes.look(), []);
    assert_eq!(uprobes.counts().no_lane, 0);
}

#[test]
fn threads_beyond_the_lanes_are_counted_and_run_on() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (uprobes, mut lanes) = attach(&[probe(&binary, "hot", 0)]);
    let mut program = Running::start(&binary);
    program.tell("calls 40 3");
    assert_eq!(lanes.look().len(), 32);
    assert_eq!(uprobes.counts().no_lane, 8 * 3);
}

#[test]
fn another_process_of_the_same_file_is_left_out_where_one_is_named() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (mut other, mut named) = (Running::start(&binary), Running::start(&binary));
    let probe = Probe {
        process: NonZeroU32::new(named.id()),
        ..probe(&binary, "hot", 0)
    };
    let (_uprobes, mut lanes) = attach(&[probe]);
    other.tell("calls 2 10");
    named.tell("calls 3 10");
    other.tell("recurse 3");
    let seen = lanes.look();
    assert_eq!(seen.len(), 3);
    assert!(
        seen.iter()
            .all(|lane| lane.owner.pid == named.id() && lane.kinds() == pairs(10, 0))
    );
}

#[test]
fn a_function_of_a_library_is_watched_in_programs_that_load_it() {
    if !can_watch() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let (library, binary) = (dir.path().join("libhot.so"), dir.path().join("hot"));
    cc(&["-shared", "-fPIC"], "library.c", &library);
    let path = library.display().to_string();
    cc(&["-DIN_LIBRARY", &path], "hot.c", &binary);
    let (_uprobes, mut lanes) = attach(&[probe(&library, "hot", 0)]);
    let mut program = Running::start(&binary);
    program.tell("calls 2 50");
    let seen = lanes.look();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|lane| lane.kinds() == pairs(50, 0)));
}

#[test]
fn programs_that_are_not_relocated_and_functions_that_are_not_exported_are_watched_too() {
    if !can_watch() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let binary = dir.path().join("hot");
    cc(&["-no-pie", "-static", "-DHIDDEN"], "hot.c", &binary);
    let (_uprobes, mut lanes) = attach(&[probe(&binary, "hot", 0)]);
    let mut program = Running::start(&binary);
    program.tell("calls 2 50");
    let seen = lanes.look();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|lane| lane.kinds() == pairs(50, 0)));
}

#[test]
fn a_function_of_rust_is_found_by_the_name_that_rust_gives_it() {
    if !can_watch() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let binary = dir.path().join("hot");
    program::rustc(&["-O"], "hot.rs", &binary);
    let (uprobes, mut lanes) = attach(&[probe(&binary, "hot::search::evaluate", 0)]);
    let (_, site) = uprobes.sites().next().expect("one");
    assert!(site.name.starts_with('_'), "{site:?}");
    assert!(
        matches!(site.ends, Ends::Instructions(_)),
        "Rust can panic: {site:?}"
    );
    let mut program = Running::start(&binary);
    program.tell("calls 3 50");
    let seen = lanes.look();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|lane| lane.kinds() == pairs(50, 0)));
}

#[test]
fn a_file_that_was_replaced_is_watched_anew() {
    if !can_watch() {
        return;
    }
    let (dir, binary) = hot_c();
    let (mut uprobes, mut lanes) = attach(&[probe(&binary, "hot", 0)]);
    let mut old = Running::start(&binary);
    let next = dir.path().join("next");
    cc(&["-O0"], "hot.c", &next);
    std::fs::rename(&next, &binary).expect("one file system");
    let changes = wait(|| Some(uprobes.refresh()).filter(|changes| !changes.is_empty()));
    assert!(matches!(changes[..], [Change::Replaced(_)]), "{changes:?}");
    let mut new = Running::start(&binary);
    new.tell("calls 2 10");
    old.tell("calls 1 10");
    let mut processes = lanes
        .look()
        .iter()
        .map(|lane| lane.owner.pid)
        .collect::<Vec<_>>();
    processes.sort_unstable();
    let mut wanted = [new.id(), new.id(), old.id()];
    wanted.sort_unstable();
    assert_eq!(processes, wanted);
    // What comes next has no such function.
    std::fs::copy("/bin/true", &next).expect("a file");
    std::fs::rename(&next, &binary).expect("one file system");
    let changes = wait(|| Some(uprobes.refresh()).filter(|changes| !changes.is_empty()));
    assert!(matches!(changes[..], [Change::Lost(_)]), "{changes:?}");
}

#[test]
fn exceptions_pass_through_a_function_that_is_watched() {
    if !can_watch() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let binary = dir.path().join("throws");
    program::build("c++", &["-O2"], &program::source("throws.cpp"), &binary);
    let (mut uprobes, mut lanes) = attach(&[probe(&binary, "search::evaluate", 0)]);
    let ends = uprobes.sites().map(|(_, site)| site.ends.clone()).next();
    assert!(
        matches!(&ends, Some(Ends::Instructions(ends)) if !ends.is_empty()),
        "{ends:?}"
    );
    let mut program = Running::start(&binary);
    program.tell("return 20");
    assert_eq!(lanes.look()[0].kinds(), pairs(20, 0));
    assert!(lanes.look()[0].is_outside());
    program.tell("throw 3");
    program.tell("return 1");
    assert_eq!(lanes.look()[0].kinds(), pairs(24, 0));
    program.tell("throw 1");
    wait(|| {
        uprobes.refresh();
        Some(()).filter(|()| lanes.look()[0].is_outside())
    });
    // A promise that does not hold.
    let promised = Probe {
        no_unwinding: true,
        ..probe(&binary, "search::evaluate", 0)
    };
    let (uprobes, mut lanes) = attach(&[promised]);
    assert!(uprobes.sites().all(|(_, site)| site.ends == Ends::Kernel));
    program.tell("return 20");
    assert_eq!(lanes.look()[0].kinds(), pairs(20, 0));
}

#[test]
fn a_thread_that_becomes_another_program_is_inside_no_more() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (_uprobes, mut lanes) = attach(&[probe(&binary, "becomer", 0), probe(&binary, "hot", 1)]);
    let mut program = Running::start(&binary);
    program.say("exec");
    program.hear("ready");
    assert_eq!(lanes.look(), []);
    program.tell("recurse 1");
    let [seen] = &lanes.look()[..] else {
        panic!("one thread");
    };
    assert!(seen.is_outside());
    assert_eq!(seen.kinds().last(), Some(&(Leave, 1)));
}

#[test]
fn a_child_that_was_made_inside_is_not_taken_for_its_parent() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (_uprobes, mut lanes) = attach(&[probe(&binary, "becomer", 0)]);
    let mut program = Running::start(&binary);
    program.tell("fork");
    let [seen] = &lanes.look()[..] else {
        panic!("one thread");
    };
    assert_eq!(seen.kinds(), pairs(1, 0));
    assert_eq!(seen.owner.pid, program.id());
}

#[test]
fn no_lane_is_left_by_programs_that_are_killed_at_any_moment() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (uprobes, mut lanes) = attach(&[probe(&binary, "hot", 0)]);
    for round in 0..100 {
        let mut program = Running::start(&binary);
        program.tell("hammer 4");
        std::thread::sleep(Duration::from_micros(round * 97));
        program.kill();
        assert_eq!(lanes.look(), [], "round {round}");
    }
    assert_eq!(uprobes.counts().no_lane, 0);
}

#[test]
fn a_lane_that_was_taken_from_a_thread_by_mistake_is_its_own_again_at_its_next_call() {
    if !can_watch() {
        return;
    }
    let (_dir, binary) = hot_c();
    let (_uprobes, mut lanes) = attach(&[probe(&binary, "hot", 0)]);
    let mut program = Running::start(&binary);
    program.tell("recurse 0");
    let [seen] = &lanes.look()[..] else {
        panic!("one thread");
    };
    assert!(lanes.free(seen));
    assert_eq!(lanes.look(), []);
    program.tell("recurse 0");
    let [again] = &lanes.look()[..] else {
        panic!("one thread");
    };
    assert_eq!((again.owner, again.started), (seen.owner, seen.started));
    assert_eq!(again.kinds(), pairs(1, 0));
}

/// Tries to watch, and says why not.
fn refusal(binary: &Path, symbol: &str) -> String {
    let tried = Uprobes::attach(&[probe(binary, symbol, 0)], Geometry::default());
    let Err(error) = tried else {
        panic!("it was attached");
    };
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn a_function_that_is_not_there_is_refused_with_those_that_are_near() {
    let (dir, binary) = hot_c();
    let text = refusal(&binary, "jumpr");
    let start = format!("{}: function `jumpr`: none of its ", binary.display());
    assert!(text.starts_with(&start), "{text}");
    assert!(
        text.contains("; it may be inlined, or in a library; near it: jumper"),
        "{text}"
    );
    let text = refusal(&binary, "nothing::like::that");
    assert!(!text.contains("near"), "{text}");
    // Without its symbols it has what it exports, which is nothing.
    let stripped = dir.path().join("stripped");
    cc(&["-s"], "hot.c", &stripped);
    let text = refusal(&stripped, "hot");
    assert!(text.contains("the file is stripped"), "{text}");
    let text = refusal(&dir.path().join("absent"), "hot");
    assert!(text.contains("absent: No such file"), "{text}");
    let text = refusal(&program::source("hot.c"), "hot");
    assert!(text.contains("hot.c: "), "{text}");
    let text = refusal(&binary, "0x0");
    assert!(text.contains("no code is at this offset"), "{text}");
}

#[test]
fn an_offset_in_the_file_does_for_a_name() {
    if !can_watch() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let (binary, stripped) = (dir.path().join("hot"), dir.path().join("stripped"));
    cc(&[], "hot.c", &binary);
    cc(&["-s"], "hot.c", &stripped);
    let offset = {
        let (uprobes, _) = attach(&[probe(&binary, "hot", 0)]);
        uprobes
            .sites()
            .map(|(_, site)| site.offset)
            .next()
            .expect("one")
    };
    let (_uprobes, mut lanes) = attach(&[probe(&stripped, &format!("{offset:#x}"), 0)]);
    let mut program = Running::start(&stripped);
    program.tell("calls 2 20");
    assert_eq!(lanes.look().len(), 2);
    assert!(lanes.look().iter().all(|seen| seen.kinds() == pairs(20, 0)));
}

#[test]
fn who_may_not_watch_is_told_what_it_takes() {
    // Set where this test runs itself as another user.
    const AS_NOBODY: &str = "WEIR_TEST_AS_NOBODY";
    const NOBODY: u32 = 65534;
    if std::env::var_os(AS_NOBODY).is_some() {
        let error = weir_uprobe::doctor().expect_err("nobody may not");
        let wanted = "not permitted: run as root, or with CAP_SYS_ADMIN";
        assert!(error.to_string().ends_with(wanted), "{error}");
        return;
    }
    if !can_watch() {
        return;
    }
    // This test's own binary may be where nobody cannot reach.
    let dir = tempfile::tempdir().expect("a directory");
    let own = dir.path().join("watch");
    std::fs::copy(std::env::current_exe().expect("a path"), &own).expect("a copy");
    for path in [dir.path(), &own] {
        let world = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(path, world).expect("its own");
    }
    let said = Command::new(&own)
        .args(["--exact", "who_may_not_watch_is_told_what_it_takes"])
        .env(AS_NOBODY, "1")
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .expect("it runs");
    let output = String::from_utf8_lossy(&said.stdout);
    assert!(
        said.status.success() && output.contains("1 passed"),
        "{output}"
    );
}

/// Asks until there is an answer.
#[track_caller]
fn wait<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(answer) = ask() {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("no answer in half a minute");
}
