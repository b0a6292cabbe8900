// SPDX-License-Identifier: Apache-2.0
//! The service's group: found when it comes, also again, and given its cores.

mod pid_file;

use std::io;

use rustix::process::Pid;
use tracing::{info, warn};

use super::super::groups::{Found, Group, Groups, Members};
use crate::config;
use crate::cores::Cores;
use crate::sensed::Nanos;

/// A write that failed is tried again after so long.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(1);

/// The service, there or not.
#[derive(Debug)]
pub(super) struct Service {
    who: config::Service,
    /// By a number that was configured: another process that gets it is not the service.
    first: Option<Members>,
    there: Option<There>,
    write_errors: u64,
    /// What was last said of it, so that it is said once.
    trouble: Option<String>,
}

/// While it is there.
#[derive(Debug)]
struct There {
    group: Group,
    found: Found,
    /// What was written last.
    cores: Option<Cores>,
    /// What could not be written, and when.
    failed: Option<(Cores, Nanos)>,
    /// What another program had written there when it was looked at last.
    foreign: Option<Cores>,
}

impl There {
    /// A process that another one has started in its place has the cores that were written for that one: what was found is
    /// what was found of the first.
    fn succeeds(&mut self, gone: &Self) {
        let is_process = |there: &Self| !matches!(there.found.members, Members::Cgroup(_));
        let written = gone.cores.as_ref().map(ToString::to_string);
        if is_process(self) && is_process(gone) && written.as_ref() == Some(&self.found.cores) {
            self.found.cores.clone_from(&gone.found.cores);
        }
    }
}

impl Service {
    pub(super) fn new(who: config::Service) -> Self {
        Self {
            who,
            first: None,
            there: None,
            write_errors: 0,
            trouble: None,
        }
    }

    /// Whether it is still there, and as it was written; finds it where it is not, as `remembered` where that is of the
    /// same one: a run before has changed it since, and could not put it back. True where the one that was there is
    /// gone: another may have come in its place.
    pub(super) fn look(&mut self, groups: &Groups, remembered: Option<&Found>, now: Nanos) -> bool {
        let gone = self.there.take_if(|there| !there.group.is_there());
        if let Some(there) = &gone {
            warn!(members = ?there.group.members(), "the service is gone");
        }
        match &self.there {
            Some(_) => self.hold(now),
            // One that was made anew under the name of one that is gone is not as that one was.
            None => match self.open(groups, remembered.filter(|_| gone.is_none())) {
                Ok(mut there) => {
                    if let Some(gone) = &gone {
                        there.succeeds(gone);
                    }
                    info!(members = ?there.group.members(), "the service is there");
                    self.trouble = None;
                    self.there = Some(there);
                }
                Err(error) => self.trouble("the service is not there", &error),
            },
        }
        gone.is_some()
    }

    fn open(&mut self, groups: &Groups, remembered: Option<&Found>) -> io::Result<There> {
        let members = match &self.who {
            config::Service::Cgroup(path) => Members::Cgroup(path.clone()),
            config::Service::Pid(pid) => {
                let process = groups.process(*pid)?;
                if *self.first.get_or_insert_with(|| process.clone()) != process {
                    let reason = format!("process {pid} is not the one that had this number first");
                    return Err(io::Error::other(reason));
                }
                process
            }
            config::Service::PidFile(path) => pid_file::process(path, groups)?,
        };
        let group = groups.existing(&members)?;
        let is_its = |found: &&Found| found.members == members && !group.is_unfilled(found);
        let found = match remembered.filter(is_its) {
            Some(found) => found.clone(),
            None => group.found()?,
        };
        if group.is_unfilled(&found) {
            let reason = format!("{members:?}: no processes yet");
            return Err(io::Error::new(io::ErrorKind::NotFound, reason));
        }
        // Who stops a service, or lets it go on, is not us.
        let found = Found {
            frozen: None,
            ..found
        };
        Ok(There {
            found,
            group,
            cores: None,
            failed: None,
            foreign: None,
        })
    }

    /// Somebody else may have written there, as a manager of containers that reloads.
    fn hold(&mut self, now: Nanos) {
        let Some(there) = &mut self.there else { return };
        let Some(wanted) = there.cores.clone() else {
            return;
        };
        match there.group.cores() {
            Ok(cores) if cores == wanted => there.foreign = None,
            Ok(cores) => {
                // One that is offline is missing until it is back.
                if there.foreign.as_ref() != Some(&cores) {
                    warn!(%cores, %wanted, "the service's cores are not those that were written");
                }
                there.foreign = Some(cores);
                there.cores = None;
                self.set(&wanted, now);
            }
            Err(error) => self.trouble("the service's cores cannot be read", &error),
        }
    }

    /// On change, and again where it failed.
    pub(super) fn set(&mut self, cores: &Cores, now: Nanos) {
        let Some(there) = &mut self.there else { return };
        let rests = there
            .failed
            .as_ref()
            .is_some_and(|(failed, at)| failed == cores && now.since(*at) < AGAIN);
        if cores.is_empty() || there.cores.as_ref() == Some(cores) || rests {
            return;
        }
        match there.group.set_cores(cores) {
            Ok(()) => {
                (there.cores, there.failed) = (Some(cores.clone()), None);
                self.trouble = None;
            }
            Err(error) => {
                self.write_errors += 1;
                (there.cores, there.failed) = (None, Some((cores.clone(), now)));
                self.trouble("the service does not get its cores", &error);
            }
        }
    }

    fn trouble(&mut self, what: &str, error: &io::Error) {
        let error = error.to_string();
        if self.trouble.as_ref() != Some(&error) {
            warn!(error, "{what}");
            self.trouble = Some(error);
        }
    }

    /// True where it was put back. What fails is remembered, and tried again by who puts back what is remembered.
    pub(super) fn let_go(&mut self) -> bool {
        let there = self.there.take();
        there.is_some_and(|mut there| there.group.restore(&there.found).is_ok())
    }

    pub(super) fn is_there(&self) -> bool {
        self.there.is_some()
    }

    pub(super) fn found(&self) -> Option<&Found> {
        self.there.as_ref().map(|there| &there.found)
    }

    /// It was found as is remembered.
    pub(super) fn is_known(&self, remembered: Option<&Found>) -> bool {
        self.found().map(|found| &found.members) == remembered.map(|found| &found.members)
    }

    pub(super) fn cores(&self) -> Option<&Cores> {
        self.there.as_ref()?.cores.as_ref()
    }

    pub(super) fn processes(&self) -> Vec<Pid> {
        let processes = self.there.as_ref().map(|there| there.group.processes());
        processes.and_then(Result::ok).unwrap_or_default()
    }

    pub(super) fn write_errors(&self) -> u64 {
        self.write_errors
    }
}

#[cfg(test)]
mod tests {
    use super::pid_file::tests::Sleeping;
    use rustix::process::Signal;

    use super::*;
    use crate::root::Root;

    /// Another process cannot be made to get a number: one that did would have started at another time.
    #[test]
    fn a_process_that_gets_the_number_of_the_service_is_not_the_service() {
        let groups = Groups::find(&Root::new("/")).unwrap();
        let child = Sleeping::new();
        let pid = child.pid();
        let mut service = Service::new(config::Service::Pid(pid));
        service.look(&groups, None, Nanos(0));
        assert!(service.is_there());
        service.there = None;
        service.look(&groups, None, Nanos(1));
        assert!(service.is_there(), "the same one");
        service.there = None;
        service.first = Some(Members::Process { pid, started: 1 });
        service.look(&groups, None, Nanos(2));
        assert!(!service.is_there());
    }

    #[test]
    fn what_a_run_before_has_remembered_is_what_was_found() {
        let groups = Groups::find(&Root::new("/")).unwrap();
        let child = Sleeping::new();
        let pid = child.pid();
        let here = groups.process(pid).unwrap();
        let found = Found {
            frozen: None,
            ..groups.existing(&here).unwrap().found().unwrap()
        };
        let looks = |remembered: &Found| {
            let mut service = Service::new(config::Service::Pid(pid));
            service.look(&groups, Some(remembered), Nanos(0));
            service.found().unwrap().clone()
        };
        let before = Found {
            cores: "0-4095".to_owned(),
            ..found.clone()
        };
        assert_eq!(looks(&before), before);
        let of_another = Found {
            members: Members::Process { pid, started: 1 },
            ..before
        };
        assert_eq!(looks(&of_another), found);
    }

    /// It is stopped when it is found, or later: by whom it may be, it is as they want it.
    #[test]
    fn a_service_that_another_stops_and_lets_go_on_stays_as_it_is() {
        let groups = Groups::find(&Root::new("/")).unwrap();
        let send = |child: &Sleeping, signal| {
            let pid = Pid::from_raw(child.pid()).unwrap();
            rustix::process::kill_process(pid, signal).unwrap();
        };
        let is_frozen = |child: &Sleeping| {
            let members = groups.process(child.pid()).unwrap();
            groups.existing(&members).unwrap().is_frozen().unwrap()
        };
        let until = |child: &Sleeping, frozen: bool| {
            while is_frozen(child) != frozen {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        };
        for stopped_first in [true, false] {
            let child = Sleeping::new();
            let mut service = Service::new(config::Service::Pid(child.pid()));
            let mut signals = [Signal::STOP, Signal::CONT];
            if !stopped_first {
                send(&child, Signal::CONT);
                signals.reverse();
            }
            let [first, then] = signals;
            send(&child, first);
            until(&child, stopped_first);
            service.look(&groups, None, Nanos(0));
            send(&child, then);
            until(&child, !stopped_first);
            assert!(service.let_go());
            assert_eq!(is_frozen(&child), !stopped_first);
        }
    }

    #[test]
    fn a_cgroup_without_processes_is_no_service_where_affinity_is_all_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let mounted = folder.path().join("cgroup/unit");
        std::fs::create_dir_all(&mounted).unwrap();
        std::fs::create_dir_all(folder.path().join("proc/self")).unwrap();
        let mounts = "31 24 0:27 / /cgroup rw - cgroup cgroup rw,name=systemd\n";
        std::fs::write(folder.path().join("proc/self/mountinfo"), mounts).unwrap();
        std::fs::write(mounted.join("cgroup.procs"), "").unwrap();
        let groups = Groups::find(&Root::new(folder.path())).unwrap();
        let mut service = Service::new(config::Service::Cgroup("unit".to_owned()));
        service.look(&groups, None, Nanos(0));
        assert!(!service.is_there());
        let trouble = service.trouble.unwrap();
        assert!(trouble.contains("no processes yet"), "{trouble}");
    }
}
