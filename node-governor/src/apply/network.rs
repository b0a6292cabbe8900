// SPDX-License-Identifier: Apache-2.0
//! What jobs may send by an interface, and what the others send: classes of HTB, remembered before, removed at the end.
//!
//! ```text
//!  a job's packet ──> marks: its class by its cgroup ──> classes ┬ jobs    no more than their ceiling
//!  any other ────────────────────────────────────────────────────┴ others  first, as much as they like, and counted
//! ```
//! A class of the kernel's belongs to no process: who comes after a killed governor removes the classes. The marks go
//! with the process that has made them.

mod classes;
mod marks;

use std::io;

use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use self::classes::Classes;
use self::marks::Marks;
use super::groups::Groups;
use crate::config;
use crate::cores::heracles::network::least;
use crate::jobs::spec::{Batch, Source, Spec};
use crate::root::Root;
use crate::sensed::Nanos;
use crate::state::{self, Held, Remembered};

/// In the state directory.
const FILE: &str = "network.json";

/// Why what jobs send cannot be limited.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The interface, the program or the kernel's part is not there, or is somebody else's.
    #[error("network{0}")]
    Refused(
        /// Begins with the field, as `.interface: `, or with `: `.
        String,
    ),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] state::Error),
}

/// How an interface was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// Its queuing discipline, the kernel's default: it comes back when another is removed.
    pub discipline: String,
}

/// The version of what sets classes; an error where it is not there.
pub fn program() -> io::Result<String> {
    classes::version()
}

/// The interface, while its classes are ours.
#[derive(Debug)]
pub struct Network {
    classes: Classes,
    marks: Marks,
    remembered: Remembered<Found>,
    found: Found,
    /// What jobs may send, as wanted and as written.
    wanted: u64,
    written: Option<u64>,
    /// What the others had sent, in bytes, when it was read last.
    counted: Option<(Nanos, u64)>,
    egress: Option<f64>,
    write_errors: u64,
    /// It was said that something fails.
    trouble: bool,
}

impl Network {
    /// Reads what there is. What a killed run has left was removed before ([`restore`]).
    pub fn find(
        config: &config::Network,
        (batch, jobs): (&Batch, &[Spec]),
        groups: &Groups,
        root: &Root,
        held: &Held,
    ) -> Result<Network, Error> {
        let classes = Classes::of(&config.interface, root);
        let discipline = classes.default();
        let discipline =
            discipline.map_err(|error| Error::Refused(format!(".interface: {error}")))?;
        let none = ": no cgroup v2 is mounted, by which jobs' packets are known";
        let mount = groups.v2().ok_or_else(|| Error::Refused(none.to_owned()))?;
        let mut paths: Vec<&str> = Vec::new();
        for job in jobs {
            paths.push(match &job.source {
                Source::Command(_) => &batch.cgroup,
                Source::Cgroup(path) => path,
            });
        }
        paths.sort_unstable();
        paths.dedup();
        let folders = paths.into_iter().map(|path| mount.join(path)).collect();
        let marks = Marks::load(folders).map_err(|error| {
            Error::Refused(format!(": jobs' packets cannot be marked: {error}"))
        })?;
        Ok(Network {
            classes,
            marks,
            remembered: held.remembered(FILE)?,
            found: Found { discipline },
            wanted: least(config.link),
            written: None,
            counted: None,
            egress: None,
            write_errors: 0,
            trouble: false,
        })
    }

    /// From here on it is ours. How it was found is on disk before anything is changed.
    pub fn take(&mut self) -> Result<(), Error> {
        let found = [(self.classes.interface().to_owned(), self.found.clone())];
        self.remembered.remember(found)?;
        let refused = |error: io::Error| Error::Refused(format!(": {error}"));
        let made = self.classes.make(self.wanted);
        made.map_err(refused)?;
        self.written = Some(self.wanted);
        self.marks.look().map_err(refused)
    }

    /// What all jobs together may send from the next [`look`](Self::look) on, in bits a second.
    pub fn want(&mut self, ceiling: u64) {
        self.wanted = ceiling;
    }

    /// Once a second: what the others have sent, what jobs may, and whose cgroups have come.
    pub fn look(&mut self, now: Nanos) {
        let done = self.look_at_all(now);
        let said = std::mem::replace(&mut self.trouble, done.is_err());
        if let Err(error) = done
            && !said
        {
            warn!(%error, "what jobs may send is not as planned");
        }
    }

    fn look_at_all(&mut self, now: Nanos) -> io::Result<()> {
        let marked = self.marks.look();
        let counted = self.classes.others();
        self.egress = match (&counted, self.counted) {
            (Ok(bytes), Some((before, last))) => rate(now, *bytes, before, last),
            _ => None,
        };
        self.counted = counted.as_ref().ok().map(|bytes| (now, *bytes));
        if self.written != Some(self.wanted) {
            let set = self.classes.set(self.wanted);
            self.written = set.is_ok().then_some(self.wanted);
            self.write_errors += u64::from(set.is_err());
            set?;
        }
        counted.and(marked)
    }

    /// Bits a second that others than jobs have sent of late; none while that is not known.
    pub fn egress(&self) -> Option<f64> {
        self.egress
    }

    /// Writes that failed.
    pub fn write_errors(&self) -> u64 {
        self.write_errors
    }

    /// It is as it was found; what is not.
    pub fn end(&mut self) -> Vec<(String, io::Error)> {
        self.marks.clear();
        put_back(&mut self.remembered, self.classes.root())
    }
}

/// In bits a second. A counter that is lower than it was belongs to classes that were made anew.
fn rate(now: Nanos, bytes: u64, before: Nanos, last: u64) -> Option<f64> {
    let seconds = now.since(before).as_secs_f64();
    let sent = bytes.checked_sub(last)?;
    (seconds > 0.0).then(|| sent as f64 * 8.0 / seconds)
}

/// Removes the classes that a run has left which was killed: of which they could not be removed, which are remembered
/// still.
pub fn restore(root: &Root, held: &Held) -> Result<Vec<(String, io::Error)>, state::Error> {
    Ok(put_back(&mut held.remembered(FILE)?, root))
}

fn put_back(remembered: &mut Remembered<Found>, root: &Root) -> Vec<(String, io::Error)> {
    let (mut back, mut left) = (Vec::new(), Vec::new());
    for interface in remembered.found().keys() {
        match Classes::of(interface, root).remove() {
            Ok(()) => back.push(interface.clone()),
            Err(error) => left.push((interface.clone(), error)),
        }
    }
    if !back.is_empty() {
        if let Err(error) = remembered.forget(&back) {
            left.push((FILE.to_owned(), io::Error::other(error)));
        }
        info!(?back, "the network is as found");
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_others_send_is_known_between_two_readings_of_one_counter() {
        let second = |seconds: u64| Nanos(seconds * 1_000_000_000);
        assert_eq!(rate(second(3), 3000, second(1), 1000), Some(8000.0));
        assert_eq!(rate(second(3), 1000, second(1), 1000), Some(0.0));
        assert_eq!(rate(second(3), 10, second(1), 1000), None, "made anew");
        assert_eq!(rate(second(1), 2000, second(1), 1000), None);
    }
}
