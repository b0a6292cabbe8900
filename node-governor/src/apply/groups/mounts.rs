// SPDX-License-Identifier: Apache-2.0
//! Where cgroups are mounted: `/proc/self/mountinfo` (`man 5 proc_pid_mountinfo`).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::root::Root;

/// Version 1 has a hierarchy for each. The last has no controller: it is where systemd keeps its units on machines
/// without version 2.
const V1: [&str; 4] = ["cpuset", "freezer", "cpuacct", "name=systemd"];

/// Hierarchies, each by the folder of its root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mounts {
    /// Version 2's only one.
    pub(super) v2: Option<PathBuf>,
    /// Version 1's, by their controllers.
    v1: BTreeMap<&'static str, PathBuf>,
    /// The file with all cores that the machine can have.
    pub(super) possible: PathBuf,
}

impl Mounts {
    /// None where the kernel tells of no mounts.
    pub(super) fn find(root: &Root) -> io::Result<Mounts> {
        let path = root.path("proc/self/mountinfo");
        match std::fs::read(&path) {
            Ok(text) => Ok(Mounts::parse(&text, root)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Mounts::parse(&[], root)),
            Err(error) => Err(super::named(&path, error)),
        }
    }

    fn parse(text: &[u8], root: &Root) -> Mounts {
        let mut mounts = Mounts {
            possible: root.path("sys/devices/system/cpu/possible"),
            ..Mounts::default()
        };
        let mounted = text.split(|byte| *byte == b'\n').filter_map(Mount::parse);
        let mut mounted: Vec<Mount> = mounted.collect();
        // A part of a hierarchy that is mounted elsewhere is used where there is no whole one.
        mounted.sort_by_key(|mount| mount.is_part);
        for mount in mounted {
            let place = mount.place.strip_prefix("/").unwrap_or(&mount.place);
            let folder = root.path(place);
            if !folder.is_dir() {
                continue;
            }
            if mount.version == 2 {
                mounts.v2.get_or_insert(folder);
                continue;
            }
            for name in V1 {
                if mount.controllers.split(',').any(|of| of == name) {
                    mounts.v1.entry(name).or_insert_with(|| folder.clone());
                }
            }
        }
        mounts
    }

    pub(super) fn v1(&self, controller: &str) -> Option<&Path> {
        self.v1.get(controller).map(PathBuf::as_path)
    }

    /// Version 1's hierarchies that say no more than who is in a cgroup.
    pub(super) fn others(&self) -> impl Iterator<Item = &Path> {
        let control = ["cpuset", "freezer"];
        let others = self.v1.iter().filter(move |(of, _)| !control.contains(of));
        others.map(|(_, folder)| folder.as_path())
    }

    /// Where cores are divided, and whether that is by version 2.
    pub(super) fn cpuset(&self) -> Option<(&Path, bool)> {
        let v2 = self.v2_cpuset().map(|root| (root, true));
        v2.or_else(|| Some((self.v1("cpuset")?, false)))
    }

    /// Version 2's root, where it can divide cores: a controller that version 1 has is not there.
    pub(super) fn v2_cpuset(&self) -> Option<&Path> {
        self.v2_with("cpuset")
    }

    /// Version 2's root, where it has this controller.
    pub(super) fn v2_with(&self, controller: &str) -> Option<&Path> {
        let root = self.v2.as_deref()?;
        let controllers = std::fs::read_to_string(root.join("cgroup.controllers")).ok()?;
        let has = controllers
            .split_whitespace()
            .any(|name| name == controller);
        has.then_some(root)
    }
}

struct Mount {
    place: PathBuf,
    /// It is not the hierarchy's own root that is mounted there.
    is_part: bool,
    version: u8,
    controllers: String,
}

impl Mount {
    /// `36 35 98:0 /root /place rw,noatime master:1 - type source rw,options`, with any number of fields before
    /// the dash; none where it is no cgroup.
    fn parse(line: &[u8]) -> Option<Mount> {
        let dash = line.windows(3).position(|part| part == b" - ")?;
        let mut before = line[..dash].split(|byte| *byte == b' ');
        let root = before.nth(3)?;
        let place = unescape(before.next()?);
        let after = String::from_utf8_lossy(&line[dash + 3..]);
        let mut after = after.split(' ');
        let version = match after.next()? {
            "cgroup2" => 2,
            "cgroup" => 1,
            _ => return None,
        };
        Some(Mount {
            place: OsString::from_vec(place).into(),
            is_part: root != b"/",
            version,
            controllers: after.nth(1).unwrap_or_default().to_owned(),
        })
    }
}

/// Blanks, newlines and backslashes of paths are written as three octal digits after a backslash.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let code = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With these folders under a root; places are told relative to it.
    fn found(mountinfo: &str, folders: &[&str]) -> (Option<String>, Vec<(String, String)>) {
        let folder = tempfile::tempdir().unwrap();
        for name in folders {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        std::fs::create_dir_all(folder.path().join("proc/self")).unwrap();
        std::fs::write(folder.path().join("proc/self/mountinfo"), mountinfo).unwrap();
        let mounts = Mounts::find(&Root::new(folder.path())).unwrap();
        let below = |path: &Path| {
            let below = path.strip_prefix(folder.path()).unwrap();
            below.to_str().unwrap().to_owned()
        };
        let v1 = mounts.v1.iter();
        let v1 = v1.map(|(name, path)| ((*name).to_owned(), below(path)));
        (mounts.v2.as_deref().map(below), v1.collect())
    }

    fn pair(name: &str, path: &str) -> (String, String) {
        (name.to_owned(), path.to_owned())
    }

    #[test]
    fn version_2_alone_is_found() {
        let text = "24 1 0:22 / /sys rw shared:7 - sysfs sysfs rw\n\
            31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:4 master:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        let (v2, v1) = found(text, &["sys/fs/cgroup"]);
        assert_eq!(v2.as_deref(), Some("sys/fs/cgroup"));
        assert_eq!(v1, []);
    }

    #[test]
    fn hierarchies_of_both_versions_are_found_side_by_side() {
        let text = "30 24 0:1 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n\
            31 30 0:2 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
            32 30 0:3 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
            33 30 0:4 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
            34 30 0:5 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n\
            35 30 0:6 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n";
        let folders = ["unified", "cpu,cpuacct", "cpuset", "systemd"];
        let folders = folders.map(|name| format!("sys/fs/cgroup/{name}"));
        let (v2, v1) = found(text, &folders.each_ref().map(String::as_str));
        assert_eq!(v2.as_deref(), Some("sys/fs/cgroup/unified"));
        let expected = [
            pair("cpuacct", "sys/fs/cgroup/cpu,cpuacct"),
            pair("cpuset", "sys/fs/cgroup/cpuset"),
            pair("name=systemd", "sys/fs/cgroup/systemd"),
        ];
        assert_eq!(v1, expected, "the freezer's folder is not there");
    }

    #[test]
    fn a_whole_hierarchy_goes_before_a_part_of_it() {
        let text = "31 1 0:2 /docker/1 /part rw - cgroup2 cgroup2 rw\n\
            32 1 0:2 / /whole rw - cgroup2 cgroup2 rw\n\
            33 1 0:3 /docker/1 /cpuset rw - cgroup cgroup rw,cpuset\n";
        let (v2, v1) = found(text, &["part", "whole", "cpuset"]);
        assert_eq!(v2.as_deref(), Some("whole"));
        assert_eq!(v1, [pair("cpuset", "cpuset")]);
    }

    #[test]
    fn places_with_blanks_are_read_and_lines_without_sense_are_not() {
        let text = "31 1 0:2 / /my\\040cgroups\\134 rw - cgroup2 cgroup2 rw\n\
            32 1 0:3 / /x - cgroup\nnonsense\n - \n33 1 - cgroup2\n";
        let (v2, v1) = found(text, &["my cgroups\\", "x"]);
        assert_eq!(v2.as_deref(), Some("my cgroups\\"));
        assert_eq!(v1, []);
        assert_eq!(unescape(b"a\\0"), b"a\\0");
        assert_eq!(unescape(b"\\777\\011"), b"\\777\t");
    }

    #[test]
    fn where_the_kernel_tells_of_no_mounts_there_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let mounts = Mounts::find(&Root::new(folder.path())).unwrap();
        assert_eq!((mounts.v2.as_deref(), mounts.v1.len()), (None, 0));
        assert_eq!(mounts.cpuset(), None);
    }
}
