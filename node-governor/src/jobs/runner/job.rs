// SPDX-License-Identifier: Apache-2.0
//! One job.

use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Pid;
use tracing::{debug, warn};

use super::{Error, Facts, Shared, failed};
use crate::apply::groups::{Found, Group, Members};
use crate::cores::{Act, Cores, JobPlan};
use crate::jobs::State;
use crate::jobs::record::{Ended, Folder, Process, Started};
use crate::jobs::spec::{Source, Spec};
use crate::jobs::stat::Stat;
use crate::sensed::Nanos;

/// Before a start is tried again that the machine refused.
const REST: Duration = Duration::from_secs(1);

const KILLED: &str = "its keeper was killed, so how it ended is not known";

/// How a job lives.
#[derive(Debug)]
enum Life {
    /// Not yet.
    Waits,
    /// Its keeper was started and may not have taken it yet.
    Begins(Child),
    /// Its keeper lives.
    Kept,
    /// Its keeper was killed, and there are processes still.
    Unkept,
    /// A cgroup of somebody else's has processes.
    Foreign,
    /// For good.
    Ended(State),
}

/// One job.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) spec: Spec,
    pub(super) facts: Facts,
    /// As last written; none where that is not known.
    pub(super) cores: Option<Cores>,
    folder: Folder,
    life: Life,
    /// While it runs and can be reached.
    group: Option<Group>,
    /// Of a cgroup of somebody else's.
    found: Option<Found>,
    /// As last told.
    frozen: bool,
    /// Nothing is tried before.
    rest: Nanos,
    /// Its processes when it was last looked at, but for its keeper.
    processes: Vec<Pid>,
    keeper: Option<Process>,
    /// Its cgroup may be there still when it has ended.
    leaves: bool,
}

impl Job {
    /// As it is found on disk and in the kernel.
    pub(super) fn open(spec: Spec, folder: &Path, shared: &mut Shared) -> Result<Job, Error> {
        let path = folder.join(&spec.job.name);
        let folder = Folder::make(&path).map_err(failed(&path))?;
        let mut job = Job {
            spec,
            facts: Facts::default(),
            cores: None,
            folder,
            life: Life::Waits,
            group: None,
            found: None,
            frozen: false,
            rest: Nanos::default(),
            processes: Vec::new(),
            keeper: None,
            leaves: true,
        };
        match job.resume(shared).map_err(failed(&path))? {
            Some(started) if started.source != job.spec.source => Err(job.changed(&started)),
            _ => Ok(job),
        }
    }

    fn changed(&self, started: &Started) -> Error {
        let keeper = started.keeper.map_or(0, |keeper| keeper.pid);
        Error::Job {
            name: self.spec.job.name.clone(),
            reason: format!(
                "runs with another command than is configured, kept by process {keeper}: configure it as before, \
                 let it end, or give the new one another name"
            ),
        }
    }

    /// What it was started with, if it runs.
    fn resume(&mut self, shared: &mut Shared) -> io::Result<Option<Started>> {
        if self.is_free()? {
            self.settle(shared, false)?;
        } else {
            self.life = Life::Kept;
            self.attach(shared)?;
        }
        match self.is_alive() {
            true => self.folder.started(),
            false => Ok(None),
        }
    }

    /// No keeper has its lock.
    fn is_free(&self) -> io::Result<bool> {
        Ok(self.folder.hold()?.is_some())
    }

    /// No keeper has its lock: how it stands. `began`: one was started here, and is gone.
    fn settle(&mut self, shared: &mut Shared, began: bool) -> io::Result<()> {
        let Some(held) = self.folder.hold()? else {
            return Ok(());
        };
        let (started, ended) = (self.folder.started()?, self.folder.ended()?);
        if let Some(ended) = ended {
            held.unask()?;
            drop(held);
            // Another command is another job.
            if ended.source == self.spec.source {
                self.has_ended(&ended, shared);
            }
            return Ok(());
        }
        self.life = Life::Waits;
        let Some(started) = started else {
            return Ok(());
        };
        let foreign = matches!(started.source, Source::Cgroup(_));
        let never = started.keeper.is_none() && !foreign;
        if started.boot != shared.boot || never && !began {
            return held.unask();
        }
        drop(held);
        self.threads(&started);
        if never {
            return self.end(None, Some("its keeper ended before it began"), shared);
        }
        // A keeper that is gone leads to nobody.
        if started.cgroup.is_some() || foreign {
            self.attach(shared)?;
        }
        if self.is_populated() {
            self.life = if foreign { Life::Foreign } else { Life::Unkept };
            if !foreign {
                warn!(
                    job = self.spec.job.name,
                    "its keeper was killed; it goes on"
                );
            }
            return Ok(());
        }
        if started.source != self.spec.source {
            self.group = None;
            return self.folder.hold()?.map_or(Ok(()), |held| held.unask());
        }
        if foreign {
            return self.end(None, None, shared);
        }
        if started.cgroup.is_none() {
            let processes = &self.processes;
            warn!(
                job = self.spec.job.name,
                ?processes,
                "its keeper was killed; these may go on"
            );
        }
        self.end(None, Some(KILLED), shared)
    }

    fn threads(&mut self, started: &Started) {
        self.facts.threads = started.threads;
        self.keeper = started.keeper;
    }

    fn is_populated(&self) -> bool {
        let processes = self.group.as_ref().and_then(|group| group.processes().ok());
        processes.is_some_and(|processes| !processes.is_empty())
    }

    /// Opens its group, if it can be known yet.
    fn attach(&mut self, shared: &mut Shared) -> io::Result<()> {
        let Some(started) = self.folder.started()? else {
            return Ok(());
        };
        self.threads(&started);
        let members = match (&started.source, &started.cgroup, started.keeper) {
            (Source::Cgroup(path), ..) | (_, Some(path), _) => Members::Cgroup(path.clone()),
            (_, None, Some(keeper)) => Members::Process {
                pid: keeper.pid,
                started: keeper.started,
            },
            (_, None, None) => return Ok(()),
        };
        match shared.groups.existing(&members) {
            Ok(group) => self.attached(group, shared)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                self.rest = later(shared.now);
                self.trouble(format!("its group: {error}"));
            }
        }
        Ok(())
    }

    fn attached(&mut self, group: Group, shared: &mut Shared) -> io::Result<()> {
        if let Source::Cgroup(_) = self.spec.source {
            self.found = Some(group.found()?);
        }
        self.cores = group.cores().ok();
        self.frozen = group.is_frozen().unwrap_or_default();
        self.group = Some(group);
        shared.found_version += 1;
        Ok(())
    }

    /// See [`super::Runner::found`].
    pub(super) fn found(&self, shared: &Shared) -> Option<Found> {
        let members = match (&self.life, &self.spec.source, &self.group) {
            (Life::Ended(_), ..) => return None,
            (_, Source::Cgroup(_), _) => return self.found.clone(),
            (_, _, Some(group)) => group.members().clone(),
            _ => Members::Cgroup(self.path(shared)),
        };
        Some(Found {
            members,
            cores: shared.alone.to_string(),
            frozen: false,
        })
    }

    /// Of its own cgroup, below the mount.
    fn path(&self, shared: &Shared) -> String {
        format!("{}/{}", shared.batch.cgroup, self.spec.job.name)
    }

    pub(super) fn state(&self) -> State {
        match self.life {
            Life::Waits => State::Waiting,
            Life::Ended(state) => state,
            _ if self.frozen => State::Paused,
            _ => State::Running,
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        !matches!(self.life, Life::Waits | Life::Ended(_))
    }

    pub(super) fn is_foreign(&self) -> bool {
        matches!(self.life, Life::Foreign)
    }

    /// Started by a governor, and has not ended.
    pub(super) fn is_ours(&self) -> bool {
        self.is_alive() && !self.is_foreign()
    }

    /// Started so lately that there may be nobody to move or to end.
    pub(super) fn begins(&self) -> bool {
        let kept = matches!(self.life, Life::Kept);
        matches!(self.life, Life::Begins(_)) || kept && self.others().is_empty()
    }

    pub(super) fn has_group(&self) -> bool {
        self.group.is_some()
    }

    /// Its processes, but for its keeper.
    pub(super) fn others(&self) -> Vec<Pid> {
        let group = self.group.as_ref();
        let mut all = group
            .and_then(|group| group.processes().ok())
            .unwrap_or_default();
        let keeper = self.keeper.map(|keeper| keeper.pid);
        all.retain(|pid| Some(pid.as_raw_nonzero().get()) != keeper);
        all
    }

    /// As found.
    pub(super) fn put_back(&mut self, shared: &mut Shared) -> bool {
        let Some(found) = self.found.clone() else {
            return true;
        };
        self.write(shared, "cannot be put back", |group| group.restore(&found))
    }

    pub(super) fn tick(&mut self, shared: &mut Shared) {
        if !matches!(self.life, Life::Begins(_) | Life::Kept) {
            return;
        }
        if let Err(error) = self.ask_keeper(shared) {
            self.trouble(error.to_string());
        }
    }

    fn ask_keeper(&mut self, shared: &mut Shared) -> io::Result<()> {
        // Before the lock: a keeper that is gone had all the time to take it.
        let gone = match &mut self.life {
            Life::Begins(child) => child.try_wait()?.is_some(),
            _ => false,
        };
        let free = self.is_free()?;
        match self.life {
            // It is on its way.
            Life::Begins(_) if free && !gone => Ok(()),
            Life::Begins(_) if free => self.settle(shared, true),
            _ if free => self.settle(shared, false),
            _ => {
                self.kept(shared);
                self.reach(shared)
            }
        }
    }

    /// Its keeper has the lock.
    fn kept(&mut self, shared: &mut Shared) {
        let life = std::mem::replace(&mut self.life, Life::Kept);
        if let Life::Begins(child) = life {
            shared.children.push(child);
        }
    }

    /// A job without a cgroup can be reached once its keeper has said who it is.
    fn reach(&mut self, shared: &mut Shared) -> io::Result<()> {
        let unknown = self.group.is_none() || self.keeper.is_none();
        if !unknown || shared.now < self.rest {
            return Ok(());
        }
        match self.group {
            None => self.attach(shared),
            Some(_) => {
                let started = self.folder.started()?;
                started.iter().for_each(|started| self.threads(started));
                Ok(())
            }
        }
    }

    pub(super) fn look(&mut self, shared: &mut Shared) {
        let looked = match self.life {
            Life::Waits => self.look_for(shared),
            Life::Ended(_) => {
                self.leave(shared);
                Ok(())
            }
            _ => self.look_at(shared),
        };
        if let Err(error) = looked {
            self.trouble(error.to_string());
        }
    }

    fn look_at(&mut self, shared: &mut Shared) -> io::Result<()> {
        self.look_unkept(shared);
        let Some(group) = &self.group else {
            return Ok(());
        };
        if !group.is_there() {
            self.group = None;
            self.rest = later(shared.now);
            self.trouble("its cgroup was removed: it can be neither moved nor frozen".to_owned());
            return Ok(());
        }
        let all = group.processes()?;
        self.facts.cpu = cpu(&all).max(self.facts.cpu);
        // What another has written is written over by the next plan.
        self.cores = Some(group.cores()?);
        self.frozen = group.is_frozen()?;
        self.processes = self.others();
        Ok(())
    }

    /// Nobody says when these end.
    pub(super) fn look_unkept(&mut self, shared: &mut Shared) {
        let there = self.group.as_ref().is_some_and(Group::is_there);
        let trouble = match self.life {
            Life::Unkept => Some(KILLED),
            Life::Foreign => None,
            _ => return,
        };
        if there && self.is_populated() {
            return;
        }
        if let Err(error) = self.end(None, trouble, shared) {
            self.trouble(error.to_string());
        }
    }

    /// Its own cgroup is empty once its keeper is gone, also one that another governor has made.
    fn leave(&mut self, shared: &mut Shared) {
        let own = matches!(self.spec.source, Source::Command(_));
        if !std::mem::take(&mut self.leaves) || !own {
            return;
        }
        if let Ok(group) = shared.groups.existing(&Members::Cgroup(self.path(shared))) {
            self.leaves = group.remove().is_err();
        }
    }

    /// A cgroup of somebody else's may have processes by now.
    fn look_for(&mut self, shared: &mut Shared) -> io::Result<()> {
        let Source::Cgroup(path) = &self.spec.source else {
            return Ok(());
        };
        let Ok(group) = shared.groups.existing(&Members::Cgroup(path.clone())) else {
            return Ok(());
        };
        if group.processes()?.is_empty() {
            return Ok(());
        }
        self.attached(group, shared)?;
        self.ask(shared, None, Vec::new(), &Cores::NONE, 0)?;
        self.life = Life::Foreign;
        Ok(())
    }

    /// Says on disk that it shall be started; false where it is already.
    fn ask(
        &self,
        shared: &Shared,
        cgroup: Option<String>,
        doors: Vec<std::path::PathBuf>,
        cores: &Cores,
        threads: u32,
    ) -> io::Result<bool> {
        let Some(held) = self.folder.hold()? else {
            return Ok(false);
        };
        held.forget()?;
        held.start(&Started {
            boot: shared.boot.clone(),
            source: self.spec.source.clone(),
            threads,
            cgroup,
            doors,
            cores: cores.to_string(),
            log: shared
                .batch
                .logs
                .join(format!("{}.log", self.spec.job.name)),
            keeper: None,
        })?;
        Ok(true)
    }

    pub(super) fn give(&mut self, plan: &JobPlan, shared: &mut Shared) {
        if self.frozen || self.group.is_none() {
            return;
        }
        match plan.act {
            Act::Pause => self.freeze(shared),
            Act::Run if !plan.cores.is_empty() => {
                let has = self.cores.take().unwrap_or_default();
                let kept = has.shared(&plan.cores);
                let shrinks = kept != has;
                self.cores = Some(has);
                if kept.is_empty() {
                    self.freeze(shared);
                } else if shrinks {
                    self.set_cores(kept, shared);
                }
            }
            _ => {}
        }
    }

    pub(super) fn take(&mut self, plan: &JobPlan, shared: &mut Shared) {
        if matches!(self.life, Life::Waits) {
            if let Source::Command(_) = self.spec.source
                && shared.now >= self.rest
                && let Err(error) = self.start(plan, shared)
            {
                shared.write_errors += 1;
                self.rest = later(shared.now);
                self.trouble(format!("cannot be started: {error}"));
            }
            return;
        }
        if self.group.is_none() {
            return;
        }
        let set =
            self.cores.as_ref() == Some(&plan.cores) || self.set_cores(plan.cores.clone(), shared);
        if set && self.frozen {
            self.thaw(shared);
        }
    }

    fn start(&mut self, plan: &JobPlan, shared: &mut Shared) -> io::Result<()> {
        let path = self.path(shared);
        let mut group = shared.groups.make(&path)?;
        let mut doors = Vec::new();
        if let Some(group) = &mut group {
            let there = group.processes()?;
            if !there.is_empty() {
                let reason = format!("its cgroup {path} has processes {there:?} of somebody's");
                return Err(io::Error::other(reason));
            }
            group.set_cores(&plan.cores)?;
            group.thaw()?;
            doors = group.doors();
        }
        let cgroup = group.is_some().then_some(path);
        if !self.ask(shared, cgroup, doors, &plan.cores, plan.threads)? {
            self.life = Life::Kept;
            return Ok(());
        }
        let child = Command::new(&shared.keeper)
            .arg0("weir-governor")
            .arg("keep")
            .arg(self.folder.path())
            .env_clear()
            .env(
                "PATH",
                std::env::var_os("PATH").unwrap_or_else(|| PATH.into()),
            )
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = match child {
            Ok(child) => child,
            Err(error) => {
                if let Some(held) = self.folder.hold()? {
                    held.unask()?;
                }
                return Err(error);
            }
        };
        self.life = Life::Begins(child);
        self.facts = Facts {
            threads: plan.threads,
            ..Facts::default()
        };
        self.group = group;
        self.frozen = false;
        self.cores = Some(plan.cores.clone());
        Ok(())
    }

    pub(super) fn freeze(&mut self, shared: &mut Shared) {
        self.frozen |= self.write(shared, "cannot be frozen", Group::freeze);
    }

    pub(super) fn thaw(&mut self, shared: &mut Shared) -> bool {
        self.frozen &= !self.write(shared, "cannot be thawed", Group::thaw);
        !self.frozen
    }

    pub(super) fn set_cores(&mut self, cores: Cores, shared: &mut Shared) -> bool {
        let set = self.write(shared, "cannot be moved", |group| group.set_cores(&cores));
        if set {
            debug!(job = self.spec.job.name, %cores, "cores");
            self.cores = Some(cores);
        }
        set
    }

    fn write(
        &mut self,
        shared: &mut Shared,
        told: &str,
        write: impl FnOnce(&mut Group) -> io::Result<()>,
    ) -> bool {
        let Some(group) = &mut self.group else {
            return false;
        };
        let Err(error) = write(group) else {
            return true;
        };
        shared.write_errors += 1;
        self.trouble(format!("{told}: {error}"));
        false
    }

    /// Told once, until there is another.
    fn trouble(&mut self, trouble: String) {
        if self.facts.trouble.as_ref() != Some(&trouble) {
            warn!(job = self.spec.job.name, trouble, "trouble");
            self.facts.trouble = Some(trouble);
        }
    }

    /// Writes how it has ended: nobody else will.
    fn end(
        &mut self,
        code: Option<i32>,
        trouble: Option<&str>,
        shared: &mut Shared,
    ) -> io::Result<()> {
        let ended = Ended {
            source: self.spec.source.clone(),
            threads: self.facts.threads,
            code,
            trouble: trouble.map(str::to_owned),
            cpu: self.facts.cpu,
        };
        if let Some(held) = self.folder.hold()? {
            held.end(&ended)?;
            held.unask()?;
        }
        self.has_ended(&ended, shared);
        Ok(())
    }

    fn has_ended(&mut self, ended: &Ended, shared: &mut Shared) {
        self.facts = Facts {
            code: ended.code,
            cpu: ended.cpu,
            trouble: ended.trouble.clone(),
            threads: ended.threads,
        };
        let state = if ended.is_well() {
            State::Finished
        } else {
            State::Failed
        };
        self.life = Life::Ended(state);
        self.frozen = false;
        self.cores = None;
        self.group = None;
        self.leaves = true;
        self.leave(shared);
        shared.found_version += 1;
    }
}

/// `PATH` where the governor has none: that of `login(1)`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

fn later(now: Nanos) -> Nanos {
    Nanos(now.0 + REST.as_nanos() as u64)
}

/// Of these processes and of all that they have waited for. Where all are there, and whoever waits for the others
/// is one of them, that is everything.
fn cpu(all: &[Pid]) -> Option<Duration> {
    let of = |pid: &Pid| Some(Stat::read(&pid.as_raw_nonzero().to_string())?.cpu);
    all.iter().filter_map(of).reduce(|sum, one| sum + one)
}
