// SPDX-License-Identifier: Apache-2.0
//! Taking cgroups away with all that is in them, our own or those of a lab that was killed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{MOUNT, PREFIX, mounts};

/// A killed process takes a while to go.
const REMOVAL: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// Removes what a lab has left that was itself killed, by its process id.
pub fn sweep() {
    let mounts = mounts(Path::new(MOUNT));
    let names = mounts.iter().flat_map(|mount| groups(mount));
    let names: BTreeSet<OsString> = names
        .filter_map(|group| Some(group.file_name()?.to_owned()))
        .collect();
    for name in names.iter().filter_map(|name| name.to_str()) {
        let pid = name.strip_prefix(PREFIX).and_then(|rest| {
            let pid = rest.strip_prefix('-')?.split('-').next()?;
            pid.parse::<u32>().ok()
        });
        if pid.is_some_and(|pid| !is_alive(pid)) {
            clear(&mounts, name);
        }
    }
}

/// Whether it runs; one that has ended and was not waited for does not.
fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
    state.is_some_and(|state| !["Z", "X"].contains(&state))
}

/// Groups right below this one.
pub(super) fn groups(top: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(top).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

/// In this group and those below it.
pub(super) fn processes(top: &Path) -> Vec<i32> {
    let text = fs::read_to_string(top.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    found.extend(groups(top).iter().flat_map(|group| processes(group)));
    found
}

/// Thaws, kills and removes. All of it until the limit: what is frozen by one controller cannot be killed by way of
/// another.
pub(super) fn clear(mounts: &[PathBuf], name: &str) {
    let tops: Vec<PathBuf> = mounts.iter().map(|mount| mount.join(name)).collect();
    let begun = Instant::now();
    while tops.iter().any(|top| top.exists()) && begun.elapsed() < REMOVAL {
        tops.iter().for_each(|top| thaw(top));
        let inside = tops.iter().flat_map(|top| processes(top));
        for pid in inside.filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        tops.iter().for_each(|top| remove(top));
        sleep(POLL);
    }
    for top in tops.iter().filter(|top| top.exists()) {
        eprintln!("colocation: {} cannot be removed", top.display());
    }
}

fn thaw(top: &Path) {
    for (file, word) in [("freezer.state", "THAWED"), ("cgroup.freeze", "0")] {
        if top.join(file).exists() {
            let _ = fs::write(top.join(file), word);
        }
    }
    groups(top).iter().for_each(|group| thaw(group));
}

fn remove(top: &Path) {
    groups(top).iter().for_each(|group| remove(group));
    let _ = fs::remove_dir(top);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_killed_is_not_alive_also_before_it_was_waited_for() {
        assert!(is_alive(std::process::id()));
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        assert!(is_alive(child.id()));
        child.kill().unwrap();
        let begun = Instant::now();
        while is_alive(child.id()) {
            assert!(begun.elapsed() < Duration::from_secs(60));
            sleep(POLL);
        }
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
    }
}
