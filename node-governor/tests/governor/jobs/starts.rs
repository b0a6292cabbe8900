// SPDX-License-Identifier: Apache-2.0
//! How jobs begin, and how they end by themselves.

use std::collections::BTreeMap;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::geteuid;
use weir_governor::jobs::State;
use weir_governor::jobs::spec::{Source, Spec};
use weir_needs::{Need, skip};

use super::place::{By, Place, is, pause, round, run, spec, until, until_ended};

fn with(mut spec: Spec, change: impl FnOnce(&mut weir_governor::jobs::spec::Command)) -> Spec {
    if let Source::Command(command) = &mut spec.source {
        change(command);
    }
    spec
}

#[test]
fn a_command_is_told_its_threads_and_its_log_and_exit_code_are_kept() {
    for place in Place::both() {
        let script = "echo $0 $OMP; echo wrong >&2; exit 3";
        let job = with(
            spec("a", &["/bin/sh", "-c", script, "-t{threads}"]),
            |command| {
                command.environment = BTreeMap::from([("OMP".to_owned(), "{threads}".to_owned())]);
            },
        );
        let mut runner = place.open(&[job]).unwrap();
        assert_eq!(runner.states(), [State::Waiting]);
        until_ended(&mut runner);
        assert_eq!(runner.states(), [State::Failed]);
        assert_eq!(place.log("a"), "-t3 3\nwrong\n");
        let facts = runner.facts(0);
        assert_eq!((facts.code, facts.threads), (Some(3), 3));
        assert_eq!(facts.trouble, None);
    }
}

#[test]
fn a_signal_is_told_by_128_and_its_number() {
    let place = Place::new(By::Nothing).unwrap();
    let mut runner = place.open(&[place.shell("a", "kill -9 $$")]).unwrap();
    until_ended(&mut runner);
    assert_eq!(runner.facts(0).code, Some(137));
    assert_eq!(runner.states(), [State::Failed]);
}

#[test]
fn what_cannot_be_executed_fails_with_the_reason_and_the_rest_goes_on() {
    for place in Place::both() {
        std::fs::write(place.path("text"), "no program").unwrap();
        let text = place.path("text").to_str().unwrap().to_owned();
        let jobs = [
            spec("missing", &["/nowhere/at/all"]),
            spec("text", &[&text]),
            with(spec("directory", &["/bin/true"]), |command| {
                command.directory = Some(place.path("text"));
            }),
            with(spec("log", &["/bin/true"]), |_| {
                std::fs::create_dir_all(place.path("logs")).unwrap();
                std::os::unix::fs::symlink(place.path("text"), place.path("logs/log.log")).unwrap();
            }),
            place.shell("good", "exit 0"),
        ];
        let mut runner = place.open(&jobs).unwrap();
        until_ended(&mut runner);
        let told = [
            "/nowhere/at/all: No such file",
            "text: Permission denied",
            "text: not a directory",
            "log.log: ",
        ];
        for (job, told) in told.iter().enumerate() {
            let trouble = runner.facts(job).trouble.clone().unwrap_or_default();
            assert!(trouble.contains(told), "{job} {trouble}");
            assert_eq!(runner.states()[job], State::Failed);
        }
        assert_eq!(runner.states()[4], State::Finished);
        assert_eq!(place.read("text"), "no program", "a link was followed");
    }
}

#[test]
fn a_job_that_forks_away_goes_on_until_all_of_it_has_ended() {
    for place in Place::both() {
        let away =
            "(setsid sh -c 'until [ -e go ]; do sleep 0.01; done; echo late >> out') & exit 0";
        let mut runner = place.open(&[place.shell("a", away)]).unwrap();
        let plans = [run([0])];
        until(&mut runner, &plans, is(0, State::Running));
        // The shell that was started is gone before long: the keeper has another child.
        let others = || {
            let keeper = place.keeper("a").map(|pid| pid.as_raw_nonzero());
            let children = keeper.map(|pid| format!("/proc/{pid}/task/{pid}/children"));
            children.map_or(String::new(), |path| {
                std::fs::read_to_string(path).unwrap_or_default()
            })
        };
        until(&mut runner, &plans, |_| {
            let children = others();
            let mut children = children.split_whitespace();
            let is_away = |child: &str| {
                let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
                line.starts_with(b"sh\0-c\0until")
            };
            children.next().is_some_and(is_away)
        });
        assert_eq!(runner.states(), [State::Running]);
        std::fs::write(place.path("go"), "").unwrap();
        until_ended(&mut runner);
        assert_eq!(runner.states(), [State::Finished]);
        assert_eq!(place.read("out"), "late\n");
    }
}

#[test]
fn nothing_of_the_governor_is_handed_on() {
    let place = Place::new(By::Nothing).unwrap();
    let open = std::fs::File::create(place.path("secret")).unwrap();
    fcntl_setfd(&open, FdFlags::empty()).unwrap();
    let look = "ls -l /proc/self/fd; cat; env; echo session $(ps -o sid= -p $$)";
    let mut runner = place.open(&[place.shell("a", look)]).unwrap();
    until_ended(&mut runner);
    let log = place.log("a");
    assert!(
        log.contains("0 -> /dev/null") && log.contains("PATH="),
        "{log}"
    );
    for other in ["secret", "jobs/a/lock", "CARGO", "HOME="] {
        assert!(!log.contains(other), "{other} in {log}");
    }
    // Not by getsid: of a session that began outside the namespace it gives 0,
    // which rustix does not take.
    let own = std::fs::read_to_string("/proc/self/stat").unwrap();
    let own = own.rsplit(") ").next().unwrap().split(' ').nth(3).unwrap();
    let own = format!("session {own}\n");
    assert!(!log.replace("  ", "").ends_with(&own), "{log}");
}

#[test]
fn what_the_governor_has_so_that_nothing_holds_it_up_is_not_for_its_jobs() {
    let place = Place::new(By::Nothing).unwrap();
    let has = "nice; cat /proc/self/oom_score_adj; ulimit -Sn";
    let job = place.shell("a", has);
    // As its unit starts it, where that is allowed: to a niceness of -5, whatever the test's own is.
    let up = format!(
        "ulimit -Sn $(ulimit -Hn); echo -900 > /proc/self/oom_score_adj\n\
         exec nice -n $((-5 - $(nice))) sh -c '({has}) > {}; exec \"$0\" \"$@\"' $KEEPER \"$@\"",
        place.path("had").display()
    );
    let mut runner = place.open_kept_by(&[job], &up);
    until_ended(&mut runner);
    let numbers = |text: &str| -> Vec<i64> { text.lines().map(|n| n.parse().unwrap()).collect() };
    let had = numbers(&std::fs::read_to_string(place.path("had")).unwrap());
    let [nice, killed, files] = had[..] else {
        panic!("{had:?}");
    };
    let ordinary = [nice.max(0), killed.max(0), files.min(1024)];
    assert_eq!(numbers(&place.log("a")), ordinary, "of {had:?}");
}

#[test]
fn another_user_runs_it_when_that_is_asked_for() {
    if !geteuid().is_root() {
        return skip(Need::Root, "a job runs as somebody else");
    }
    let place = Place::new(By::Nothing).unwrap();
    let job = with(
        spec(
            "a",
            &[
                "/bin/sh",
                "-c",
                "id -u; id -g; id -G; grep -E 'NoNewPrivs|Cap(Prm|Eff|Inh|Amb)' /proc/self/status",
            ],
        ),
        |command| {
            command.user = Some((65534, 65533));
        },
    );
    let mut runner = place.open(&[job]).unwrap();
    until_ended(&mut runner);
    let nothing = "0000000000000000";
    let wanted = format!(
        "65534\n65533\n65533\nCapInh:\t{nothing}\nCapPrm:\t{nothing}\nCapEff:\t{nothing}\nCapAmb:\t{nothing}\nNoNewPrivs:\t1\n"
    );
    assert_eq!(place.log("a"), wanted);
}

#[test]
fn a_job_is_frozen_moved_and_let_go_on_and_loses_nothing() {
    for place in Place::both() {
        let count = "i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo $i >> out; sleep 0.002; done";
        let mut runner = place.open(&[place.shell("a", count)]).unwrap();
        until(&mut runner, &[run([0])], |_| place.lines("out") > 3);
        until(&mut runner, &[pause()], is(0, State::Paused));
        // It stops some time after it was told to.
        let mut seen = (usize::MAX, 0);
        until(&mut runner, &[pause()], |_| {
            let lines = place.lines("out");
            seen = if seen.0 == lines {
                (lines, seen.1 + 1)
            } else {
                (lines, 0)
            };
            seen.1 >= 20
        });
        assert!(seen.0 < 300);
        until(&mut runner, &[run([0])], |_| place.lines("out") > seen.0);
        assert_eq!(runner.states(), [State::Running]);
        until_ended(&mut runner);
        let lines: Vec<String> = (1..=300).map(|line| line.to_string()).collect();
        assert_eq!(place.read("out").lines().collect::<Vec<_>>(), lines);
        assert_eq!(runner.write_errors(), 0);
    }
}

fn allowed(pid: rustix::process::Pid) -> String {
    let path = format!("/proc/{}/status", pid.as_raw_nonzero());
    let status = std::fs::read_to_string(path).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:\t"));
    line.unwrap_or_default().to_owned()
}

#[test]
fn no_instruction_of_it_runs_on_other_cores_than_planned() {
    let cores = std::thread::available_parallelism().unwrap().get();
    if cores < 2 {
        return skip(Need::Cores, "this machine has one");
    }
    for place in Place::both() {
        let tell = "grep Cpus_allowed_list /proc/self/status; until [ -e go ]; do sleep 0.01; done";
        let mut runner = place.open(&[place.shell("a", tell)]).unwrap();
        until(&mut runner, &[run([1])], |_| place.log("a").ends_with('\n'));
        assert_eq!(place.log("a"), "Cpus_allowed_list:\t1\n");
        let keeper = place.keeper("a").unwrap();
        until(&mut runner, &[run([0])], |_| allowed(keeper) == "0");
        assert_eq!(runner.states(), [State::Running]);
        std::fs::write(place.path("go"), "").unwrap();
        until_ended(&mut runner);
    }
}

#[test]
fn cpu_time_is_known_while_it_runs_and_at_its_end() {
    for place in Place::both() {
        let spin = "until [ -e go ]; do :; done; true | true";
        let mut runner = place.open(&[place.shell("a", spin)]).unwrap();
        let least = std::time::Duration::from_millis(50);
        until(&mut runner, &[run([0])], |runner| {
            runner.facts(0).cpu >= Some(least)
        });
        std::fs::write(place.path("go"), "").unwrap();
        until_ended(&mut runner);
        assert!(runner.facts(0).cpu >= Some(least));
    }
}

#[test]
fn a_cgroup_that_has_processes_already_is_left_to_them() {
    let Some(place) = Place::new(By::Cgroups) else {
        return;
    };
    let path = format!("{}/a", place.batch.cgroup);
    let group = place.groups.make(&path).unwrap().unwrap();
    let mut stranger = std::process::Command::new("/bin/sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    for door in group.doors() {
        std::fs::write(door, stranger.id().to_string()).unwrap();
    }
    let mut runner = place.open(&[place.shell("a", "echo ran >> out")]).unwrap();
    round(&mut runner, &[run([0])]);
    let trouble = runner.facts(0).trouble.clone().unwrap();
    assert!(trouble.contains("of somebody's"), "{trouble}");
    assert_eq!(runner.states(), [State::Waiting]);
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    until_ended(&mut runner);
    assert_eq!(place.lines("out"), 1);
}
