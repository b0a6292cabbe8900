// SPDX-License-Identifier: Apache-2.0
//! Jobs' part of the L3 cache and of the bandwidth of memory: one group of resctrl, remembered before, removed at the
//! end.
//!
//! ```text
//!  plan ──> schemata    ways that jobs may fill, percent of bandwidth that their cores may use
//!  jobs ──> tasks       each thread, once a second; one that comes is in the group of the one that has started it
//!           mon_data ──> what jobs and everybody read from memory and wrote
//! ```
//! Nothing but this group is made or changed: the service and everybody else may fill all ways, also the jobs'. The kernel
//! puts the threads of a group that is removed where they were, into the default one; those that are found in another
//! group stay there. No machine here has resctrl: that is seen on made-up files alone.

mod counters;
mod offered;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use self::counters::Counters;
pub use self::offered::{Offered, Part};
use super::groups::{Groups, named};
use crate::root::{Root, line};
use crate::sensed::{Bandwidth, Nanos};
use crate::state::{self, Held, Remembered};

/// In the state directory.
const FILE: &str = "resctrl.json";
/// The jobs' group.
const GROUP: &str = "weir-jobs";

/// Why caches and bandwidth of memory cannot be divided.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The group is somebody else's, or cannot be made.
    #[error("resctrl: {0}")]
    Group(#[from] io::Error),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] state::Error),
}

/// That a group was made: nothing else was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {}

/// What jobs may have: ways, and percent of bandwidth; none is no matter of the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Limits {
    ways: Option<u32>,
    bandwidth: Option<u32>,
}

/// The jobs' group, while it is ours.
#[derive(Debug)]
pub struct Resctrl {
    root: Root,
    group: PathBuf,
    offered: Offered,
    remembered: Remembered<Found>,
    wanted: Limits,
    /// What holds; none while a write failed.
    written: Option<Limits>,
    counters: Counters,
    bandwidth: Option<Bandwidth>,
    write_errors: u64,
    /// What was last said to fail.
    trouble: Option<String>,
}

impl Resctrl {
    /// Reads what there is. What a killed run has left was removed before ([`restore`]).
    pub fn find(root: &Root, held: &Held) -> Result<Resctrl, Error> {
        let group = folder(root).join(GROUP);
        if group.exists() {
            let reason = "is there already, of a governor with another state_directory or of somebody else; end that, or remove the group with rmdir";
            return Err(named(&group, io::Error::other(reason)).into());
        }
        Ok(Resctrl {
            root: root.clone(),
            offered: Offered::read(root),
            remembered: held.remembered(FILE)?,
            counters: Counters::new(folder(root), GROUP),
            group,
            wanted: Limits::default(),
            written: Some(Limits::default()),
            bandwidth: None,
            write_errors: 0,
            trouble: None,
        })
    }

    /// From here on there is a group. That there is one is on disk before it is made.
    pub fn take(&mut self) -> Result<(), Error> {
        self.remembered.remember([(GROUP.to_owned(), Found {})])?;
        let made = self.make();
        if made.is_err() {
            // It is not ours to remove.
            self.remembered.forget(&[GROUP.to_owned()])?;
        }
        Ok(made?)
    }

    fn make(&self) -> io::Result<()> {
        fs::create_dir(&self.group).map_err(|error| {
            let hint = match error.kind() {
                ErrorKind::StorageFull => {
                    "; the processor has no class of service left, remove a group"
                }
                _ => "",
            };
            self.refused(&self.group, &error, hint)
        })
    }

    /// What all jobs together may have from now on: written on change.
    pub fn want(&mut self, ways: Option<u32>, bandwidth: Option<u32>) {
        let wanted = Limits { ways, bandwidth };
        if self.wanted == wanted {
            return;
        }
        self.wanted = wanted;
        let done = self.write();
        self.tell(done);
    }

    /// Once a second: whether what was written holds, who has come, and what was read from memory.
    pub fn look(&mut self, now: Nanos, groups: &Groups, jobs: &[Pid]) {
        let held = self.hold();
        let moved = self.take_in(groups, jobs);
        self.bandwidth = self.counters.read(now);
        self.tell(held.and(moved));
    }

    /// What memory was read and written, while that is known.
    pub fn bandwidth(&self) -> Option<Bandwidth> {
        self.bandwidth
    }

    /// Writes that failed.
    pub fn write_errors(&self) -> u64 {
        self.write_errors
    }

    /// It is as it was found; what is not.
    pub fn end(&mut self) -> Vec<(String, io::Error)> {
        put_back(&mut self.remembered, &self.root)
    }

    /// Once for each trouble.
    fn tell(&mut self, done: io::Result<()>) {
        let trouble = done.err().map(|error| error.to_string());
        if let Some(error) = &trouble
            && self.trouble != trouble
        {
            warn!(
                error,
                "jobs' cache and bandwidth of memory are not as planned"
            );
        }
        self.trouble = trouble;
    }

    /// Another program may have written there, or removed the group.
    fn hold(&mut self) -> io::Result<()> {
        if !self.group.exists() {
            self.make()?;
            self.written = None;
        }
        let lines = self.offered.lines(self.wanted.ways, self.wanted.bandwidth);
        if lines.is_empty() {
            return Ok(());
        }
        let path = self.group.join("schemata");
        let stands = fs::read_to_string(&path).unwrap_or_default();
        match self.written == Some(self.wanted) && offered::says(&stands, &lines) {
            true => Ok(()),
            false => self.write(),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let lines = self.offered.lines(self.wanted.ways, self.wanted.bandwidth);
        let path = self.group.join("schemata");
        let written = fs::write(&path, lines);
        self.written = written.is_ok().then_some(self.wanted);
        self.write_errors += u64::from(written.is_err());
        written.map_err(|error| self.refused(&path, &error, ""))
    }

    /// Jobs' threads that are not in the group yet.
    fn take_in(&mut self, groups: &Groups, jobs: &[Pid]) -> io::Result<()> {
        let path = self.group.join("tasks");
        let own = fs::read_to_string(&path).unwrap_or_default();
        let own: HashSet<&str> = own.lines().map(str::trim).collect();
        let mut done = Ok(());
        for pid in jobs {
            for thread in groups.threads(*pid)? {
                let thread = thread.as_raw_nonzero().to_string();
                if own.contains(&*thread) {
                    continue;
                }
                let taken = match self.elsewhere(&thread) {
                    Some(group) => Err(io::Error::other(format!(
                        "thread {thread} is in the resctrl group {group} of somebody else's, and stays there"
                    ))),
                    None => {
                        let taken = take_thread(&path, &thread);
                        self.write_errors += u64::from(taken.is_err());
                        taken
                    }
                };
                done = done.and(taken);
            }
        }
        done
    }

    /// The group that a thread is in, where it is neither the default one nor ours. Older kernels do not say.
    fn elsewhere(&self, thread: &str) -> Option<String> {
        let path = self.root.path("proc").join(thread);
        let said = line(&path.join("cpu_resctrl_groups")).ok()?;
        other(&said).map(str::to_owned)
    }

    /// With what the kernel says of the last command.
    fn refused(&self, path: &Path, error: &io::Error, hint: &str) -> io::Error {
        let said = line(&folder(&self.root).join("info/last_cmd_status"));
        let said = said.ok().filter(|said| !said.is_empty() && said != "ok");
        let said = said.map_or(String::new(), |said| format!(" ({said})"));
        let reason = format!("{error}{said}{hint}");
        named(path, io::Error::new(error.kind(), reason))
    }
}

/// Of the first line of `/proc/PID/cpu_resctrl_groups`: a group that is neither the default one nor ours.
fn other(said: &str) -> Option<&str> {
    let group = said.strip_prefix("res:")?.trim_matches('/');
    (!group.is_empty() && group != GROUP).then_some(group)
}

fn take_thread(tasks: &Path, thread: &str) -> io::Result<()> {
    // The kernel takes one in a write.
    let open = File::options().append(true).create(true).open(tasks);
    let written = open.and_then(|mut open| open.write_all(format!("{thread}\n").as_bytes()));
    match written {
        // It has ended.
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(()),
        written => written.map_err(|error| named(tasks, error)),
    }
}

/// Where it is mounted.
fn folder(root: &Root) -> PathBuf {
    root.path("sys/fs/resctrl")
}

/// Removes the group that a run has left which was killed: what could not be, which is remembered still.
pub fn restore(root: &Root, held: &Held) -> Result<Vec<(String, io::Error)>, state::Error> {
    Ok(put_back(&mut held.remembered(FILE)?, root))
}

fn put_back(remembered: &mut Remembered<Found>, root: &Root) -> Vec<(String, io::Error)> {
    if !remembered.found().contains_key(GROUP) {
        return Vec::new();
    }
    let mut left = Vec::new();
    match remove(&folder(root).join(GROUP)) {
        Ok(()) => {
            let forgotten = remembered.forget(&[GROUP.to_owned()]);
            left.extend(
                forgotten
                    .err()
                    .map(|error| (FILE.to_owned(), io::Error::other(error))),
            );
            info!("caches and bandwidth of memory are as found");
        }
        Err(error) => left.push((GROUP.to_owned(), error)),
    }
    left
}

/// The kernel's files go with their folder; those of a made-up kernel are removed first.
fn remove(group: &Path) -> io::Result<()> {
    let removed = match fs::remove_dir(group) {
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => fs::remove_dir_all(group),
        removed => removed,
    };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(|error| named(group, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_somebody_elses_group_is_told_from_others() {
        assert_eq!(other("res:gold"), Some("gold"));
        // Not mounted, the default one, ours, and what no kernel says.
        for said in ["res:", "res:/", "res:weir-jobs", "", "mon:gold"] {
            assert_eq!(other(said), None, "{said}");
        }
    }
}
