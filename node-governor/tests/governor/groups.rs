// SPDX-License-Identifier: Apache-2.0
//! Groups on plain files that stand for cgroups, and on this machine's own cgroups and processes.

mod machine;

use std::path::PathBuf;
use std::time::SystemTime;

use weir_governor::apply::groups::{Groups, Members};
use weir_governor::cores::Cores;
use weir_governor::root::Root;

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
    assert!(!found.frozen);
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
