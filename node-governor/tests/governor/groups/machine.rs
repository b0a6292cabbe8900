// SPDX-License-Identifier: Apache-2.0
//! On this machine's cgroups. Groups have names of their own, and go with the test, whatever becomes of it.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::Signal;
use weir_governor::apply::groups::{Group, Groups};
use weir_governor::apply::shares::Shares;
use weir_governor::cores::{Act, CorePlan, JobPlan};
use weir_governor::root::Root;
use weir_governor::sensed::Nanos;
use weir_governor::state::Held;
use weir_needs::{Need, skip};

use super::{cgroup, cores};
use crate::kernel::wait_for;

/// A name that nothing else on the machine has.
fn name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("weir-groups-{}-{count}", std::process::id())
}

/// Cgroups whose names begin alike, and processes in them.
pub(super) struct World {
    pub(super) groups: Groups,
    name: String,
    made: Vec<String>,
    pub(super) children: Vec<Child>,
}

impl World {
    /// None where this machine has no cgroups that the test may make, or one core.
    pub(super) fn new(root: &Root) -> Option<World> {
        let world = World {
            groups: Groups::find(root).unwrap(),
            name: name(),
            made: Vec::new(),
            children: Vec::new(),
        };
        let two = rustix::thread::sched_getaffinity(None).unwrap();
        if !two.is_set(0) || !two.is_set(1) {
            skip(Need::Cores, "this process has not cores 0 and 1");
            return None;
        }
        Some(world)
    }

    /// One of the machine's own, with cores by a cpuset.
    pub(super) fn machine() -> Option<World> {
        let mut world = World::new(&Root::new("/"))?;
        let divides = world.groups.can_divide();
        if !divides || world.make("probe").is_none() {
            skip(Need::Cgroups, "no cgroups with cores that can be written");
            return None;
        }
        Some(world)
    }

    fn path(&self, group: &str) -> String {
        format!("{}/{group}", self.name)
    }

    pub(super) fn make(&mut self, group: &str) -> Option<Group> {
        self.made.push(self.path(group));
        self.groups.make(&self.path(group)).unwrap()
    }

    fn open(&self, group: &str) -> Group {
        self.groups.existing(&cgroup(&self.path(group))).unwrap()
    }

    /// Commands of a shell, in the group.
    pub(super) fn run(&mut self, group: &Group, commands: &str) -> i32 {
        let join = "for door in \"$@\"; do echo 0 > \"$door\" || exit 9; done; echo joined";
        let (pid, out) = self.shell(&format!("{join}; {commands}"), group.doors());
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).unwrap();
        assert_eq!(line, "joined\n");
        pid
    }

    /// One that has both cores, one below it that has the second, and a process in that.
    fn pod_with_half(&mut self) -> (Group, Group, i32) {
        let mut pod = self.make("pod").unwrap();
        pod.set_cores(&cores([0, 1])).unwrap();
        let mut half = self.make("pod/half").unwrap();
        half.set_cores(&cores([1])).unwrap();
        let pid = self.run(&half, "sleep 1000");
        (pod, half, pid)
    }

    /// The same in none.
    pub(super) fn start(&mut self, commands: &str) -> i32 {
        self.shell(commands, Vec::new()).0
    }

    fn shell(&mut self, commands: &str, arguments: Vec<PathBuf>) -> (i32, ChildStdout) {
        let mut shell = Command::new("sh");
        shell.args(["-c", commands, "sh"]).args(arguments);
        // With what it starts, so that all of them go with the test.
        shell.stdout(Stdio::piped()).process_group(0);
        let mut child = shell.spawn().unwrap();
        let (pid, out) = (child.id() as i32, child.stdout.take().unwrap());
        self.children.push(child);
        (pid, out)
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
            let group = rustix::process::Pid::from_child(child);
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
            let _ = child.kill();
            let _ = child.wait();
        }
        let top = cgroup(&self.name);
        for _ in 0..1000 {
            let Ok(group) = self.groups.existing(&top) else {
                return;
            };
            for pid in group.processes().unwrap_or_default() {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
            if group.remove().is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        eprintln!("{} is left", self.name);
    }
}

pub(super) const BUSY: &str = "while :; do :; done";

/// A field of `/proc/PID/status`.
pub(super) fn status(pid: i32, field: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.unwrap().trim_start_matches(':').trim().to_owned()
}

pub(super) fn allowed(pid: i32) -> String {
    status(pid, "Cpus_allowed_list")
}

/// All cores that this machine can have.
pub(super) fn possible() -> String {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap();
    text.trim().to_owned()
}

/// CPU time in ticks of the clock, fields 14 and 15 of `stat`.
pub(super) fn used(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = text.rsplit(')').next().unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    [11, 12]
        .map(|field: usize| fields[field].parse::<u64>().unwrap())
        .iter()
        .sum()
}

/// While another process works, this one does not, or does.
pub(super) fn works(world: &mut World, pid: i32) -> bool {
    let other = world.start(BUSY);
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
    let (found, before) = (group.found().unwrap(), allowed(pid));
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
    assert_eq!(world.open("job").found().unwrap().frozen, Some(true));
    group.thaw().unwrap();
    assert!(!group.is_frozen().unwrap());
    wait_for("it to go on", || used(pid) > stopped);
    group.freeze().unwrap();
    // As one who knows nothing but what is on disk.
    let mut stranger = world.open("job");
    stranger.restore(&found).unwrap();
    let now = stranger.found().unwrap();
    // Version 2 refuses to take the cores of processes away: one that inherited is left with all.
    let same = now.cores == found.cores || found.cores.is_empty() && now.cores == possible();
    assert!(same && now.frozen == Some(false), "{now:?} {found:?}");
    assert_eq!(allowed(pid), before);
    let stopped = used(pid);
    wait_for("it to go on", || used(pid) > stopped);
}

fn v1_cpuset() -> Option<PathBuf> {
    let path = PathBuf::from("/sys/fs/cgroup/cpuset");
    let mounted = path.join("cpuset.cpus").exists();
    if !mounted {
        skip(Need::Cgroups, "no cpuset of version 1");
    }
    mounted.then_some(path)
}

#[test]
fn what_is_below_a_group_shrinks_and_grows_with_it_and_is_put_back() {
    let Some(mut world) = World::machine() else {
        return;
    };
    let mut pod = world.make("pod").unwrap();
    pod.set_cores(&cores([0, 1])).unwrap();
    let all = world.make("pod/all").unwrap();
    let mut half = world.make("pod/half").unwrap();
    half.set_cores(&cores([1])).unwrap();
    let (in_all, in_half) = (
        world.run(&all, "sleep 1000"),
        world.run(&half, "sleep 1000"),
    );
    let found = pod.found().unwrap();
    pod.set_cores(&cores([0])).unwrap();
    assert_eq!([allowed(in_all), allowed(in_half)], ["0", "0"]);
    // One that comes meanwhile, and has all that there is then.
    let late = world.make("pod/late").unwrap();
    let in_late = world.run(&late, "sleep 1000");
    assert_eq!(allowed(in_late), "0");
    pod.set_cores(&cores([1])).unwrap();
    let now = [in_all, in_half, in_late].map(allowed);
    assert_eq!(now, ["1", "1", "1"]);
    pod.set_cores(&cores([0, 1])).unwrap();
    let now = [in_all, in_half, in_late].map(allowed);
    assert_eq!(now, ["0-1", "1", "0-1"]);
    pod.set_cores(&cores([0])).unwrap();
    pod.restore(&found).unwrap();
    let now = [in_all, in_half, in_late].map(allowed);
    assert_eq!(now, ["0-1", "1", "0-1"]);
    assert_eq!(pod.found().unwrap(), found);
}

/// What divides the first two cores between this service and no jobs.
fn governed(folder: &Path, service: &str) -> Shares {
    let policy = "core_policy: { blocks: { reserved: 0, small: 1, large: none } }";
    divided(folder, &format!("service: {{ {service} }}\n{policy}\n"))
}

fn divided(folder: &Path, text: &str) -> Shares {
    let file = folder.join("g.yaml");
    std::fs::write(&file, text).unwrap();
    let config = weir_governor::config::load(&file).unwrap();
    let root = Root::new("/");
    let held = Held::take(&folder.join("run"), &root).unwrap();
    let shares = config.shares.unwrap();
    Shares::find(&shares, &cores([0, 1]), &root, &held).unwrap()
}

/// The service has one of them.
fn on_the_first() -> CorePlan {
    CorePlan {
        service: cores([0]),
        ..CorePlan::default()
    }
}

#[test]
fn what_is_below_a_service_is_as_it_was_found_after_the_end_of_the_governor() {
    let Some(mut world) = World::machine() else {
        return;
    };
    let (_pod, _half, pid) = world.pod_with_half();
    let folder = tempfile::tempdir().unwrap();
    let service = format!("cgroup: {}", world.path("pod"));
    let mut shares = governed(folder.path(), &service);
    shares.look(Nanos(0));
    shares.apply(&on_the_first(), Nanos(0));
    assert_eq!(allowed(pid), "0");
    assert_eq!(shares.end(), 0);
    assert_eq!(allowed(pid), "1");
}

#[test]
fn a_process_that_another_has_started_in_its_place_gets_back_what_that_one_had() {
    let Some(mut world) = World::machine() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("service.pid");
    let mut started = |cores: &str| {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", cores, "sleep", "1000"]);
        let child = command.spawn().unwrap();
        let pid = child.id() as i32;
        world.children.push(child);
        wait_for("its cores", || allowed(pid) == cores);
        std::fs::write(&pids, format!("{pid}\n")).unwrap();
        pid
    };
    let first = started("0-1");
    let service = format!("pid_file: {}", pids.display());
    let mut shares = governed(folder.path(), &service);
    shares.look(Nanos(0));
    shares.apply(&on_the_first(), Nanos(0));
    assert_eq!(allowed(first), "0");
    // As one that the first has started has them.
    let second = started("0");
    let first = &mut world.children[0];
    first.kill().unwrap();
    first.wait().unwrap();
    shares.look(Nanos(1));
    shares.apply(&on_the_first(), Nanos(1));
    assert_eq!(shares.end(), 0);
    assert_eq!(allowed(second), "0-1");
}

#[test]
fn who_comes_into_the_cgroup_of_a_job_that_has_ended_is_left_alone() {
    let Some(mut world) = World::machine() else {
        return;
    };
    let mut unit = world.make("unit").unwrap();
    unit.set_cores(&cores([0, 1])).unwrap();
    let job = world.run(&unit, "exec sleep 1000");
    let folder = tempfile::tempdir().unwrap();
    let plan = "core_policy: { static_plan: { service: none, steps: [ { job: b, cores: 1 } ] } }";
    let text = format!(
        "jobs: [ {{ name: b, cgroup: {} }} ]\n{plan}\n",
        world.path("unit")
    );
    let mut shares = divided(folder.path(), &text);
    shares.look(Nanos(0));
    let plan = CorePlan {
        jobs: vec![JobPlan {
            act: Act::Run,
            cores: cores([1]),
            ..JobPlan::default()
        }],
        ..CorePlan::default()
    };
    shares.apply(&plan, Nanos(0));
    assert_eq!(allowed(job), "1");
    let child = world.children.last_mut().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    shares.look(Nanos(1));
    // Its owner starts it again, with other cores.
    unit.set_cores(&cores([0])).unwrap();
    let again = world.run(&unit, "exec sleep 1000");
    assert_eq!(shares.end(), 0);
    assert_eq!(allowed(again), "0");
}

#[test]
fn who_puts_back_for_another_gives_what_is_below_all_cores() {
    let (Some(mut world), Some(cpuset)) = (World::machine(), v1_cpuset()) else {
        return;
    };
    let (mut pod, mut half, pid) = world.pod_with_half();
    let found = pod.found().unwrap();
    pod.set_cores(&cores([0])).unwrap();
    world.open("pod").restore(&found).unwrap();
    assert_eq!(pod.found().unwrap(), found);
    assert_eq!(allowed(pid), "0-1");
    // One that was killed when it had put back the upper only.
    pod.set_cores(&cores([0])).unwrap();
    half.set_cores(&cores([0])).unwrap();
    let upper = cpuset.join(world.path("pod")).join("cpuset.cpus");
    std::fs::write(upper, "0-1\n").unwrap();
    assert_eq!(allowed(pid), "0");
    world.open("pod").restore(&found).unwrap();
    assert_eq!(allowed(pid), "0-1");
}

#[test]
fn cores_that_are_refused_are_told_with_what_is_allowed() {
    let Some(mut world) = World::machine() else {
        return;
    };
    let mut pod = world.make("pod").unwrap();
    let mut inner = world.make("pod/inner").unwrap();
    pod.set_cores(&cores([0])).unwrap();
    for absent in [cores([1]), cores([8000])] {
        let error = inner.set_cores(&absent).unwrap_err().to_string();
        let place = format!("{}/inner/cpuset.cpus: ", world.path("pod"));
        assert!(error.contains(&place), "{error}");
        assert!(error.contains(&absent.to_string()), "{error}");
        assert!(error.contains("allows \"0\""), "{error}");
    }
    assert_eq!(inner.cores().unwrap(), cores([0]));
    let error = inner.set_cores(&cores([])).unwrap_err().to_string();
    assert!(error.contains("no cores"), "{error}");
}

#[test]
fn a_cgroup_that_is_removed_under_us_is_known_to_be() {
    let Some(mut world) = World::machine() else {
        return;
    };
    let mut group = world.make("job").unwrap();
    let found = group.found().unwrap();
    world.open("job").remove().unwrap();
    assert!(!group.is_there());
    for error in [
        group.set_cores(&cores([0])).unwrap_err(),
        group.freeze().unwrap_err(),
        group.found().unwrap_err(),
        group.processes().unwrap_err(),
        world.groups.existing(group.members()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
        assert!(error.to_string().contains(&world.path("job")), "{error}");
    }
    group.restore(&found).unwrap();
    let mut anew = world.make("job").unwrap();
    anew.set_cores(&cores([1])).unwrap();
    assert!(!group.is_there() && anew.is_there());
    group.restore(&found).unwrap();
    assert_eq!(anew.cores().unwrap(), cores([1]));
    group.remove().unwrap();
    assert!(anew.is_there());
}

/// With version 1's cpuset only: neither of the other hierarchies knows it.
#[test]
fn a_cgroup_that_one_hierarchy_has_is_frozen_by_signals() {
    let (Some(mut world), Some(cpuset)) = (World::machine(), v1_cpuset()) else {
        return;
    };
    let group = world.make("job").unwrap();
    for door in group.doors() {
        if !door.starts_with(&cpuset) {
            std::fs::remove_dir(door.parent().unwrap()).unwrap();
        }
    }
    let mut group = world.open("job");
    assert_eq!(group.doors().len(), 1);
    let pid = world.run(&group, BUSY);
    group.set_cores(&cores([1])).unwrap();
    assert_eq!(allowed(pid), "1");
    group.freeze().unwrap();
    wait_for("it to stop", || status(pid, "State").starts_with('T'));
    assert!(world.open("job").is_frozen().unwrap());
    assert!(!works(&mut world, pid));
    let stopped = used(pid);
    group.thaw().unwrap();
    assert!(!world.open("job").is_frozen().unwrap());
    wait_for("it to go on", || used(pid) > stopped);
}

/// A machine on which version 1's freezer is all there is.
fn freezer_only() -> Option<super::Fake> {
    let freezer = PathBuf::from("/sys/fs/cgroup/freezer");
    if !freezer.join("cgroup.procs").exists() {
        skip(Need::Cgroups, "no freezer of version 1");
        return None;
    }
    let fake = super::Fake::new(&[]);
    std::fs::create_dir_all(fake.path("sys/fs/cgroup")).unwrap();
    std::os::unix::fs::symlink(freezer, fake.path("sys/fs/cgroup/freezer")).unwrap();
    let mounted = "31 24 0:27 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer";
    fake.write("proc/self/mountinfo", mounted);
    Some(fake)
}

#[test]
fn without_version_2_the_freezer_stops_and_affinity_confines() {
    let Some(fake) = freezer_only() else {
        return;
    };
    let Some(mut world) = World::new(&Root::new(fake.path(""))) else {
        return;
    };
    let Some(mut group) = world.make("job") else {
        return skip(Need::Cgroups, "no cgroups that can be written");
    };
    assert_eq!(group.found().unwrap().cores, "", "there is nobody");
    let pid = world.run(&group, BUSY);
    let own = |name: &str| {
        std::os::unix::fs::symlink(format!("/proc/{name}"), fake.path(&format!("proc/{name}")))
    };
    own(&pid.to_string()).unwrap();
    let found = group.found().unwrap();
    assert_eq!(found.cores, allowed(pid));
    group.set_cores(&cores([1])).unwrap();
    assert_eq!(allowed(pid), "1");
    group.freeze().unwrap();
    assert!(group.is_frozen().unwrap());
    wait_for("it to stop", || has_stopped(&group));
    let stopped = used(pid);
    assert!(!works(&mut world, pid));
    world.open("job").restore(&found).unwrap();
    assert_eq!(group.found().unwrap(), found);
    wait_for("it to go on", || used(pid) > stopped);
}

#[test]
fn jobs_that_are_known_give_their_cores_while_a_new_one_cannot_be_remembered() {
    let Some(mut world) = World::machine() else {
        return;
    };
    let first = world.make("first").unwrap();
    world.run(&first, "exec sleep 1000");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| world.path(name);
    let text = format!(
        "service: {{ cgroup: {} }}\ncore_policy: {{ blocks: {{ reserved: 0, small: 1, large: none }} }}\n\
         jobs: [ {{ name: a, cgroup: {} }}, {{ name: b, cgroup: {} }} ]\n",
        path("service"),
        path("first"),
        path("second")
    );
    let mut shares = divided(folder.path(), &text);
    shares.look(Nanos(0));
    let job = |act| JobPlan {
        act,
        cores: cores([1]),
        ..JobPlan::default()
    };
    let plan = |acts: [Act; 2]| CorePlan {
        jobs: acts.map(job).into(),
        ..CorePlan::default()
    };
    shares.apply(&plan([Act::Run, Act::Pause]), Nanos(0));
    assert!(!world.open("first").is_frozen().unwrap());
    // Where the next record would be written.
    std::fs::create_dir(folder.path().join("run/groups.json.partial")).unwrap();
    let second = world.make("second").unwrap();
    world.run(&second, "exec sleep 1000");
    shares.look(Nanos(1));
    shares.apply(&plan([Act::Pause, Act::Pause]), Nanos(1));
    assert!(world.open("first").is_frozen().unwrap());
    assert!(!world.open("second").is_frozen().unwrap(), "left alone");
    drop(shares);
    assert!(!world.open("first").is_frozen().unwrap());
}
