// SPDX-License-Identifier: Apache-2.0
//! Groups on plain files that stand for cgroups, and on this machine's own cgroups and processes.

mod machine;
mod processes;

use std::path::PathBuf;
use std::time::SystemTime;

use weir_governor::apply::groups::{Found, Groups, Members};
use weir_governor::apply::shares::Shares;
use weir_governor::cores::{Cores, Limit, Limits};
use weir_governor::root::Root;
use weir_governor::state::Held;

fn cgroup(path: &str) -> Members {
    Members::Cgroup(path.to_owned())
}

fn cores<const N: usize>(numbers: [u32; N]) -> Cores {
    Cores::from(numbers)
}

/// A kernel of plain files.
struct Fake(tempfile::TempDir);

impl Fake {
    /// With these mounted below `sys/fs/cgroup`: `cgroup2` or version 1's controllers.
    fn new(mounts: &[(&str, &str)]) -> Fake {
        let fake = Fake(tempfile::tempdir().unwrap());
        let mut text = String::new();
        for (place, what) in mounts {
            let place = format!("sys/fs/cgroup{place}");
            std::fs::create_dir_all(fake.path(&place)).unwrap();
            let (kind, controllers) = match *what {
                "cgroup2" => ("cgroup2", ""),
                controllers => ("cgroup", controllers),
            };
            text += &format!("31 24 0:27 / /{place} rw - {kind} {kind} rw,{controllers}\n");
        }
        fake.write("proc/self/mountinfo", &text);
        fake
    }

    /// Version 2 alone, with cpuset, and nothing enabled.
    fn v2() -> Fake {
        let fake = Fake::new(&[("", "cgroup2")]);
        fake.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory");
        fake.write("sys/fs/cgroup/cgroup.subtree_control", "memory");
        fake.write("sys/fs/cgroup/cpuset.cpus.effective", "0-7");
        fake
    }

    /// A cgroup of version 2 below it, as the kernel makes it.
    fn v2_group(&self, path: &str) {
        let at = |file| format!("sys/fs/cgroup/{path}/{file}");
        self.write(&at("cgroup.procs"), "");
        self.write(&at("cgroup.freeze"), "0");
        self.write(&at("cgroup.subtree_control"), "");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }

    /// The first line: a plain file keeps the end of a longer one.
    fn read(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.path(name)).unwrap();
        text.lines().next().unwrap_or_default().to_owned()
    }

    fn groups(&self) -> Groups {
        Groups::find(&Root::new(self.0.path())).unwrap()
    }
}

#[test]
fn cores_of_version_2_are_enabled_above_written_and_put_back_empty() {
    let fake = Fake::v2();
    fake.v2_group("a.slice");
    fake.v2_group("a.slice/b.service");
    let mut group = fake
        .groups()
        .existing(&cgroup("a.slice/b.service"))
        .unwrap();
    let found = group.found().unwrap();
    assert_eq!(found.cores, "");
    assert_eq!(found.frozen, Some(false));
    assert_eq!(group.cores().unwrap(), cores([0, 1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(fake.read("sys/fs/cgroup/cgroup.subtree_control"), "memory");
    // A kernel makes the file when its controller is enabled.
    let error = group.set_cores(&cores([1])).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("b.service/cpuset.cpus: No such file"),
        "{error}"
    );
    for file in ["cgroup.subtree_control", "a.slice/cgroup.subtree_control"] {
        assert_eq!(fake.read(&format!("sys/fs/cgroup/{file}")), "+cpuset");
    }
    let cpus = "sys/fs/cgroup/a.slice/b.service/cpuset.cpus";
    fake.write(cpus, "");
    group.set_cores(&cores([0, 1, 2, 5])).unwrap();
    assert_eq!(fake.read(cpus), "0-2,5");
    group.set_cores(&cores([3])).unwrap();
    assert_eq!(fake.read(cpus), "3");
    assert_eq!(group.cores().unwrap(), cores([3]));
    group.freeze().unwrap();
    assert!(group.is_frozen().unwrap());
    group.restore(&found).unwrap();
    assert_eq!(fake.read(cpus), "");
    assert_eq!(group.found().unwrap(), found);
}

#[test]
fn what_stands_there_already_is_not_written() {
    let fake = Fake::v2();
    fake.v2_group("a");
    let cpus = "sys/fs/cgroup/a/cpuset.cpus";
    fake.write(cpus, "0-1");
    let touched = || {
        std::fs::metadata(fake.path(cpus))
            .unwrap()
            .modified()
            .unwrap()
    };
    let file = std::fs::File::options()
        .write(true)
        .open(fake.path(cpus))
        .unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let mut group = fake.groups().existing(&cgroup("a")).unwrap();
    group.set_cores(&cores([0, 1])).unwrap();
    assert_eq!(touched(), SystemTime::UNIX_EPOCH);
    group.set_cores(&cores([0])).unwrap();
    assert!(touched() > SystemTime::UNIX_EPOCH);
    fake.write(cpus, "2");
    group.set_cores(&cores([0])).unwrap();
    assert_eq!(fake.read(cpus), "0", "another's value does not stay");
}

#[test]
fn cores_that_the_kernel_takes_but_does_not_give_are_an_error() {
    let fake = Fake::v2();
    fake.v2_group("a");
    fake.write("sys/fs/cgroup/a/cpuset.cpus", "");
    fake.write("sys/fs/cgroup/a/cpuset.cpus.effective", "0-7");
    let mut group = fake.groups().existing(&cgroup("a")).unwrap();
    let error = group.set_cores(&cores([9])).unwrap_err().to_string();
    let says = "9 was written, but it runs on 0-7; ";
    assert!(
        error.contains("/a/cpuset.cpus: ") && error.contains(says),
        "{error}"
    );
    assert!(
        error.ends_with("/cgroup/cpuset.cpus.effective allows \"0-7\""),
        "{error}"
    );
}

#[test]
fn a_group_that_was_frozen_before_stays_so() {
    let fake = Fake::v2();
    fake.v2_group("a");
    fake.write("sys/fs/cgroup/a/cpuset.cpus", "0-3");
    fake.write("sys/fs/cgroup/a/cgroup.freeze", "1");
    let mut group = fake.groups().existing(&cgroup("a")).unwrap();
    let found = group.found().unwrap();
    assert_eq!(found.frozen, Some(true));
    group.thaw().unwrap();
    assert_eq!(fake.read("sys/fs/cgroup/a/cgroup.freeze"), "0");
    group.restore(&found).unwrap();
    assert_eq!(group.found().unwrap(), found);
}

#[test]
fn cores_that_cannot_be_put_back_do_not_keep_a_group_frozen() {
    let fake = Fake::v2();
    fake.v2_group("a");
    fake.write("sys/fs/cgroup/a/cpuset.cpus", "0-3");
    let mut group = fake.groups().existing(&cgroup("a")).unwrap();
    let found = group.found().unwrap();
    group.freeze().unwrap();
    for bad in ["many", "3-1", "../.."] {
        let broken = Found {
            cores: bad.to_owned(),
            ..found.clone()
        };
        let error = group.restore(&broken).unwrap_err().to_string();
        assert!(error.contains(bad), "{error}");
        assert!(!group.is_frozen().unwrap());
    }
    assert_eq!(fake.read("sys/fs/cgroup/a/cpuset.cpus"), "0-3");
}

#[test]
fn a_group_is_looked_for_in_every_hierarchy_and_the_error_names_them() {
    let mounts = [
        ("/unified", "cgroup2"),
        ("/cpuset", "cpuset"),
        ("/freezer", "freezer"),
        ("/systemd", "name=systemd"),
    ];
    let fake = Fake::new(&mounts);
    let groups = fake.groups();
    let error = groups.existing(&cgroup("a/b")).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    for (place, _) in mounts {
        let place = fake.path(&format!("sys/fs/cgroup{place}/a/b"));
        assert!(
            error.to_string().contains(place.to_str().unwrap()),
            "{error}"
        );
    }
    // A file is no cgroup, and nothing outside of the mounts is.
    fake.write("sys/fs/cgroup/cpuset/a/b", "");
    fake.write("sys/fs/outside/cgroup.procs", "");
    assert!(groups.existing(&cgroup("a/b")).is_err());
    for bad in [
        "../outside",
        "/sys/fs/outside",
        "",
        "a//b",
        "a/../../../outside",
    ] {
        let error = groups.existing(&cgroup(bad)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{bad}");
        let error = groups.make(bad).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{bad}");
    }
    fake.write(
        "sys/fs/cgroup/systemd/u.service/cgroup.procs",
        "12\n0\n12\n9",
    );
    let group = groups.existing(&cgroup("u.service")).unwrap();
    let door = fake.path("sys/fs/cgroup/systemd/u.service/cgroup.procs");
    assert_eq!(group.doors(), [door]);
    let pids = group.processes().unwrap();
    let pids: Vec<i32> = pids.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
    assert_eq!(pids, [9, 12]);
    let error = Fake::new(&[]).groups().existing(&cgroup("a")).unwrap_err();
    assert_eq!(error.to_string(), "no cgroup a: no cgroups are mounted");
}

#[test]
fn own_groups_are_made_with_their_parents_and_cores_are_enabled_above_them() {
    let fake = Fake::v2();
    fake.v2_group("weir");
    let group = fake.groups().make("weir/a").unwrap().unwrap();
    assert_eq!(
        group.doors(),
        [fake.path("sys/fs/cgroup/weir/a/cgroup.procs")]
    );
    for file in ["cgroup.subtree_control", "weir/cgroup.subtree_control"] {
        assert_eq!(fake.read(&format!("sys/fs/cgroup/{file}")), "+cpuset");
    }
    assert!(fake.groups().make("weir/a").unwrap().unwrap().is_there());
}

#[test]
fn where_no_cgroup_can_be_made_there_is_none() {
    assert!(Fake::new(&[]).groups().make("weir/a").unwrap().is_none());
    // A file system in which no folders can be made, not even by root.
    let fake = Fake::new(&[]);
    std::fs::create_dir_all(fake.path("sys/fs")).unwrap();
    std::os::unix::fs::symlink("/sys/kernel", fake.path("sys/fs/cgroup")).unwrap();
    let mounted = "31 24 0:27 / /sys/fs/cgroup ro - cgroup2 cgroup2 ro\n";
    fake.write("proc/self/mountinfo", mounted);
    assert!(fake.groups().make("weir/a").unwrap().is_none());
}

#[test]
fn a_group_that_was_removed_is_told_with_its_file_and_one_of_its_name_is_another() {
    let fake = Fake::v2();
    fake.v2_group("a");
    fake.write("sys/fs/cgroup/a/cpuset.cpus", "0-3");
    let mut group = fake.groups().existing(&cgroup("a")).unwrap();
    let found = group.found().unwrap();
    assert!(group.is_there());
    std::fs::remove_dir_all(fake.path("sys/fs/cgroup/a")).unwrap();
    fake.v2_group("a");
    fake.write("sys/fs/cgroup/a/cpuset.cpus", "1");
    assert!(!group.is_there());
    group.restore(&found).unwrap();
    let error = group.processes().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    let text = error.to_string();
    assert!(
        text.contains("a/cgroup.procs: No such file or directory"),
        "{text}"
    );
    assert!(group.set_cores(&cores([2])).is_err());
    assert!(group.freeze().is_err());
    assert_eq!(fake.read("sys/fs/cgroup/a/cpuset.cpus"), "1");
    group.remove().unwrap();
    assert!(fake.path("sys/fs/cgroup/a").exists());
}

/// As a governor that sets both finds it, and as the tests of its kernel do.
const BOTH: [Limit; 2] = [Limit::Memory, Limit::Disk];

#[test]
fn memory_and_disk_are_enabled_above_written_and_put_back_as_found() {
    let fake = Fake::v2();
    fake.v2_group("a.slice");
    fake.v2_group("a.slice/b");
    fake.write("sys/fs/cgroup/a.slice/b/memory.high", "73400320");
    fake.write("sys/fs/cgroup/a.slice/b/io.weight", "default 200");
    let mut group = fake.groups().existing(&cgroup("a.slice/b")).unwrap();
    let found = Found {
        limits: group.found_limits(&BOTH).unwrap(),
        ..group.found().unwrap()
    };
    let limits = Limits {
        memory: Some(1 << 20),
        disk: Some(7),
    };
    group.set_limits(limits).unwrap();
    assert_eq!(fake.read("sys/fs/cgroup/a.slice/b/memory.high"), "1048576");
    assert_eq!(fake.read("sys/fs/cgroup/a.slice/b/io.weight"), "default 7");
    // There is no BFQ.
    assert!(!fake.path("sys/fs/cgroup/a.slice/b/io.bfq.weight").exists());

    // Whoever puts it back knows no more than what is on disk.
    let found = serde_json::from_str(&serde_json::to_string(&found).unwrap()).unwrap();
    let mut group = fake.groups().existing(&cgroup("a.slice/b")).unwrap();
    group.restore(&found).unwrap();
    assert_eq!(fake.read("sys/fs/cgroup/a.slice/b/memory.high"), "73400320");
    assert_eq!(
        fake.read("sys/fs/cgroup/a.slice/b/io.weight"),
        "default 200"
    );
}

#[test]
fn a_limit_that_the_kernel_has_no_file_for_is_told_with_the_controller_enabled_for_it() {
    let fake = Fake::v2();
    fake.v2_group("a");
    let mut group = fake.groups().existing(&cgroup("a")).unwrap();
    let limits = Limits {
        disk: Some(7),
        ..Limits::default()
    };
    let error = group.set_limits(limits).unwrap_err().to_string();
    assert!(
        error.contains("sys/fs/cgroup/a: the kernel has no io.weight and no io.bfq.weight"),
        "{error}"
    );
    assert_eq!(fake.read("sys/fs/cgroup/cgroup.subtree_control"), "+io");
    assert!(!fake.groups().can_limit(Limit::Disk));
}

#[test]
fn what_an_earlier_version_has_left_has_no_limits() {
    let text = r#"{"members":{"cgroup":"a"},"cores":"1","frozen":false}"#;
    let found: Found = serde_json::from_str(text).unwrap();
    assert!(found.limits.is_empty());
}

#[test]
fn a_policy_that_limits_what_no_cgroup_can_is_refused_at_the_start() {
    let fake = Fake::v2();
    fake.write("proc/sys/kernel/random/boot_id", "boot");
    let text =
        "service: { cgroup: a }\ncore_policy: { parties: { memory_steps: 2, disk_steps: 2 } }\n";
    fake.write("g.yaml", text);
    let config = weir_governor::config::load(&fake.path("g.yaml")).unwrap();
    let root = Root::new(fake.0.path());
    let held = Held::take(&fake.path("run"), &root).unwrap();
    let shares = config.shares.unwrap();
    let found = Shares::find(&shares, &cores([0, 1, 2, 3]), &root, &held);
    let error = found.unwrap_err().to_string();
    assert!(
        error.contains("no cgroup v2 with the controller io; leave out the steps of it"),
        "{error}"
    );
}
