// SPDX-License-Identifier: Apache-2.0
//! On this machine's cgroups. Groups have names of their own, and go with the test, whatever becomes of it.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use weir_governor::apply::groups::{Group, Groups};
use weir_governor::root::Root;

use super::{cgroup, cores};
use crate::kernel::wait_for;

/// A name that nothing else on the machine has.
fn name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("weir-test-{}-{count}", std::process::id())
}

/// Why a test says nothing here.
fn skip(reason: &str) {
    eprintln!("SKIPPED: {reason}");
}

/// Cgroups whose names begin alike, and processes in them.
struct World {
    groups: Groups,
    name: String,
    made: Vec<String>,
    children: Vec<Child>,
}

impl World {
    /// None where this machine has no cgroups that the test may make, or one core.
    fn new(root: &Root) -> Option<World> {
        let world = World {
            groups: Groups::find(root).unwrap(),
            name: name(),
            made: Vec::new(),
            children: Vec::new(),
        };
        let two = rustix::thread::sched_getaffinity(None).unwrap();
        if !two.is_set(0) || !two.is_set(1) {
            skip("this process has not cores 0 and 1");
            return None;
        }
        Some(world)
    }

    /// One of the machine's own, with cores by a cpuset.
    fn machine() -> Option<World> {
        let mut world = World::new(&Root::new("/"))?;
        let Some(group) = world.make("probe") else {
            skip("no cgroups that can be written");
            return None;
        };
        match group.found().unwrap().cores.is_empty() {
            // Version 2's are empty at first, and version 1's are not.
            true if !PathBuf::from("/sys/fs/cgroup/cgroup.controllers").exists() => {
                skip("no cpuset");
                None
            }
            _ => Some(world),
        }
    }

    fn path(&self, group: &str) -> String {
        format!("{}/{group}", self.name)
    }

    fn make(&mut self, group: &str) -> Option<Group> {
        self.made.push(self.path(group));
        self.groups.make(&self.path(group)).unwrap()
    }

    fn open(&self, group: &str) -> Group {
        self.groups.existing(&cgroup(&self.path(group))).unwrap()
    }

    /// Commands of a shell, in the group.
    fn run(&mut self, group: &Group, commands: &str) -> i32 {
        let join = "for door in \"$@\"; do echo 0 > \"$door\" || exit 9; done";
        let pid = self.start(&format!("{join}; echo joined; {commands}"), group.doors());
        let last = rustix::process::Pid::from_raw(pid).unwrap();
        wait_for("it to join", || group.processes().unwrap().contains(&last));
        pid
    }

    fn start(&mut self, commands: &str, arguments: Vec<PathBuf>) -> i32 {
        let mut shell = Command::new("sh");
        shell.args(["-c", commands, "sh"]).args(arguments);
        let child = shell.stdout(Stdio::null()).spawn().unwrap();
        self.children.push(child);
        self.children.last().unwrap().id() as i32
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for path in &self.made {
            if let Ok(mut group) = self.groups.existing(&cgroup(path)) {
                let _ = group.thaw();
            }
        }
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        // Those that children have started.
        let top = cgroup(&self.name);
        for _ in 0..1000 {
            let Ok(group) = self.groups.existing(&top) else {
                return;
            };
            for pid in group.processes().unwrap_or_default() {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            if group.remove().is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        eprintln!("{} is left", self.name);
    }
}

const BUSY: &str = "while :; do :; done";

/// A field of `/proc/PID/status`.
fn status(pid: i32, field: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.unwrap().trim_start_matches(':').trim().to_owned()
}

fn allowed(pid: i32) -> String {
    status(pid, "Cpus_allowed_list")
}

/// CPU time in ticks of the clock, fields 14 and 15 of `stat`.
fn used(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = text.rsplit(')').next().unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    [11, 12]
        .map(|field: usize| fields[field].parse::<u64>().unwrap())
        .iter()
        .sum()
}

/// While another process works, this one does not, or does.
fn works(world: &mut World, pid: i32) -> bool {
    let other = world.start(BUSY, Vec::new());
    let (before, own) = (used(other), used(pid));
    wait_for("a process to work", || used(other) >= before + 10);
    let worked = used(pid) > own;
    let index = world
        .children
        .iter()
        .position(|child| child.id() as i32 == other);
    let mut child = world.children.remove(index.unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    worked
}

/// The kernel says that all of it stands still.
fn has_stopped(group: &Group) -> bool {
    let says = |file: &str, what: &str| {
        let files = group
            .doors()
            .into_iter()
            .map(|door| door.with_file_name(file));
        let mut texts = files.filter_map(|file| std::fs::read_to_string(file).ok());
        texts.any(|text| text.contains(what))
    };
    says("cgroup.events", "frozen 1") || says("freezer.state", "FROZEN")
}

#[test]
fn a_group_runs_on_its_cores_stops_and_goes_on() {
    let Some(mut world) = World::machine() else {
        return;
    };
    let mut group = world.make("job").unwrap();
    let pid = world.run(&group, BUSY);
    let found = group.found().unwrap();
    for one in [0, 1] {
        group.set_cores(&cores([one])).unwrap();
        assert_eq!(allowed(pid), one.to_string());
        assert_eq!(group.cores().unwrap(), cores([one]));
    }
    group.freeze().unwrap();
    assert!(group.is_frozen().unwrap());
    wait_for("it to stop", || has_stopped(&group));
    let stopped = used(pid);
    assert!(!works(&mut world, pid));
    assert!(world.open("job").found().unwrap().frozen);
    group.thaw().unwrap();
    assert!(!group.is_frozen().unwrap());
    wait_for("it to go on", || used(pid) > stopped);
    group.freeze().unwrap();
    // As one who knows nothing but what is on disk.
    let mut stranger = world.open("job");
    stranger.restore(&found).unwrap();
    assert_eq!(stranger.found().unwrap(), found);
    assert_eq!(allowed(pid), "0-1");
    let stopped = used(pid);
    wait_for("it to go on", || used(pid) > stopped);
}
