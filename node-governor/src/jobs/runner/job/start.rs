// SPDX-License-Identifier: Apache-2.0
//! How a job begins: it is asked for on disk, and a keeper is started that takes it.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::super::{Facts, Shared};
use super::{Job, Life, REST, STARTS};
use crate::cores::{Cores, JobPlan, Limits};
use crate::jobs::record::Started;
use crate::jobs::spec::Source;
use crate::sensed::Nanos;

/// `PATH` where the governor has none, as `login(1)` sets it.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Job {
    /// What the machine refuses is tried again after a while, and not for ever.
    pub(super) fn start_or_rest(&mut self, plan: &JobPlan, shared: &mut Shared) {
        let own = matches!(self.spec.source, Source::Command(_));
        if !own || shared.now < self.rest {
            return;
        }
        if let Err(error) = self.start(plan, shared) {
            shared.write_errors += 1;
            let reason = format!("cannot be started: {error}");
            if let Err(error) = self.has_not_begun(reason, shared) {
                self.trouble(error.to_string());
            }
        }
    }

    /// It was started, and nothing of it has run.
    pub(super) fn has_not_begun(&mut self, reason: String, shared: &mut Shared) -> io::Result<()> {
        self.starts += 1;
        self.rest = Nanos(shared.now.0 + REST.as_nanos() as u64);
        if self.starts >= STARTS {
            return self.end(Some(&reason), shared);
        }
        self.trouble(reason);
        Ok(())
    }

    fn start(&mut self, plan: &JobPlan, shared: &mut Shared) -> io::Result<()> {
        let path = self.path(shared);
        let mut group = match shared.has_cgroups {
            true => shared.groups.make(&path)?,
            false => None,
        };
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
        let asked = self.ask(shared, cgroup, doors, &plan.cores, plan.threads)?;
        self.life = match asked {
            true => Life::Begins(self.spawn(shared)?),
            false => Life::Kept(None),
        };
        self.facts = Facts {
            threads: plan.threads,
            ..Facts::default()
        };
        self.keeper = None;
        self.group = group;
        self.limits = Limits::default();
        self.frozen = false;
        self.cores = Some(plan.cores.clone());
        Ok(())
    }

    /// Says on disk that it shall be started; false where a keeper has it already.
    pub(super) fn ask(
        &self,
        shared: &Shared,
        cgroup: Option<String>,
        doors: Vec<PathBuf>,
        cores: &Cores,
        threads: u32,
    ) -> io::Result<bool> {
        let Some(held) = self.folder.hold()? else {
            return Ok(false);
        };
        held.forget()?;
        let log = format!("{}.log", self.spec.job.name);
        held.start(&Started {
            boot: shared.boot.clone(),
            source: self.spec.source.clone(),
            threads,
            cgroup,
            doors,
            cores: cores.to_string(),
            log: shared.batch.logs.join(log),
            keeper: None,
        })?;
        Ok(true)
    }

    fn spawn(&self, shared: &Shared) -> io::Result<Child> {
        let path = std::env::var_os("PATH").unwrap_or_else(|| PATH.into());
        let spawned = Command::new(&shared.keeper)
            .arg0("weir-governor")
            .arg("keep")
            .arg(self.folder.path())
            .env_clear()
            .env("PATH", path)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if spawned.is_err()
            && let Some(held) = self.folder.hold()?
        {
            held.unask()?;
        }
        spawned
    }
}
