// SPDX-License-Identifier: Apache-2.0
//! From the plan to who runs where: the service's group and the jobs, remembered before, put back at the end.
//!
//! ```text
//!  CorePlan ──> 1. jobs give: freeze, shrink   2. service gets its cores   3. jobs take: grow, thaw, start
//! ```
//! In this order no core has two owners for longer than the kernel takes to move a thread, and what the service
//! waits for comes before what a job waits for.

mod service;

use std::io::ErrorKind;

use rustix::process::Pid;
use tracing::{error, info};

use super::groups::{Found, Groups};
use super::network::{self, Network};
use super::resctrl::{self, Resctrl};
use crate::config;
use crate::cores::{CorePlan, Cores};
use crate::jobs::State;
use crate::jobs::runner::{self, Facts, Runner};
use crate::root::Root;
use crate::sensed::{Bandwidth, Nanos};
use crate::state::{self, Held, Remembered};
use service::Service;

/// In the state directory.
const FILE: &str = "groups.json";
/// Under which name the service's group is remembered; one beside it has its name behind that, a job's has `job ` in
/// front.
const SERVICE: &str = "service";

/// Why cores are not divided.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine's groups cannot be used.
    #[error("groups of processes: {0}")]
    Groups(#[from] std::io::Error),
    /// The policy sets what the machine's cgroups do not have.
    #[error(
        "core_policy.parties: no cgroup v2 with the controller {0}; leave out the steps of it, or see weir-governor check"
    )]
    Limit(&'static str),
    /// What jobs send cannot be limited.
    #[error(transparent)]
    Network(#[from] network::Error),
    /// Caches and bandwidth of memory cannot be divided.
    #[error(transparent)]
    Resctrl(#[from] resctrl::Error),
    /// The jobs cannot be taken up.
    #[error(transparent)]
    Jobs(#[from] runner::Error),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] state::Error),
}

/// The service's group and the jobs, while they are ours.
#[derive(Debug)]
pub struct Shares {
    groups: Groups,
    service: Option<Service>,
    /// Those beside it, by the names under which they are remembered.
    others: Vec<(String, Service)>,
    runner: Runner,
    network: Option<Network>,
    resctrl: Option<Resctrl>,
    remembered: Remembered<Found>,
    /// Of the jobs, what is remembered.
    version: Option<u64>,
    /// It was said that nothing can be remembered.
    forgetful: bool,
    ended: bool,
}

impl Shares {
    /// Reads what there is. What a killed run has left was put back before ([`restore`]); its jobs go on.
    pub fn find(
        config: &config::Shares,
        machine: &Cores,
        root: &Root,
        held: &Held,
    ) -> Result<Shares, Error> {
        let groups = Groups::find(root)?;
        let limits = config.division.limits();
        if let Some(limit) = limits.iter().find(|limit| !groups.can_limit(**limit)) {
            return Err(Error::Limit(limit.controller()));
        }
        let remembered = held.remembered(FILE)?;
        let who = (&config.batch, &*config.jobs);
        let network = config.network.as_ref();
        let network = network.map(|network| Network::find(network, who, &groups, root, held));
        let network = network.transpose()?;
        let resctrl = match config.division.resctrl()[..] {
            [] => None,
            _ => Some(Resctrl::find(root, held)?),
        };
        let runner = Runner::open(
            config.jobs.clone(),
            config.batch.clone(),
            held.folder(),
            &groups,
            config.jobs_alone(machine),
            limits,
        )?;
        Ok(Shares {
            service: config.service.clone().map(Service::new),
            others: config
                .others
                .iter()
                .map(|other| {
                    let name = format!("{SERVICE} {}", other.name);
                    (name, Service::new(other.service.clone()))
                })
                .collect(),
            groups,
            runner,
            network,
            resctrl,
            remembered,
            version: None,
            forgetful: false,
            ended: false,
        })
    }

    /// From here on they are ours. How they were found is on disk before anything is changed.
    pub fn take(&mut self, now: Nanos) -> Result<(), Error> {
        self.runner.look(now);
        for (name, service) in each(&mut self.service, &mut self.others) {
            service.look(&self.groups, self.remembered.found().get(name), now);
        }
        self.remember()?;
        if let Some(network) = &mut self.network {
            network.take()?;
        }
        if let Some(resctrl) = &mut self.resctrl {
            resctrl.take()?;
        }
        Ok(())
    }

    fn services(&self) -> impl Iterator<Item = (&str, &Service)> {
        let first = self.service.iter().map(|service| (SERVICE, service));
        first.chain(
            self.others
                .iter()
                .map(|(name, service)| (name.as_str(), service)),
        )
    }

    /// Those that are new.
    fn remember(&mut self) -> Result<(), state::Error> {
        let version = self.runner.found_version();
        let service =
            |(name, service): (&str, &Service)| Some((name.to_owned(), service.found()?.clone()));
        let services: Vec<_> = self.services().filter_map(service).collect();
        let jobs = self.runner.found().into_iter();
        let jobs = jobs.map(|(name, found)| (of_job(&name), found));
        let all = services.into_iter().chain(jobs);
        // Who has come anew, as a service that was started again, is not who was found.
        let is_same = |name: &String, found: &Found| {
            let known = self.remembered.found().get(name);
            known.map(|known| known.members == found.members)
        };
        let (mut news, mut gone) = (Vec::new(), Vec::new());
        for (name, found) in all {
            match is_same(&name, &found) {
                Some(true) => continue,
                Some(false) => gone.push(name.clone()),
                None => {}
            }
            news.push((name, found));
        }
        if !gone.is_empty() {
            self.remembered.forget(&gone)?;
        }
        if !news.is_empty() {
            self.remembered.remember(news)?;
        }
        self.version = Some(version);
        Ok(())
    }

    /// Once a second: who has come and gone, and whether what was written holds.
    pub fn look(&mut self, now: Nanos) {
        self.runner.look(now);
        let mut gone = Vec::new();
        for (name, service) in each(&mut self.service, &mut self.others) {
            let remembered = self.remembered.found().get(name);
            if service.look(&self.groups, remembered, now) {
                gone.push(name.to_owned());
            }
        }
        let restored = self.runner.restored().map(of_job);
        gone.extend(restored.filter(|name| self.remembered.found().contains_key(name)));
        if !gone.is_empty() {
            // One that has its name is found in its own way.
            let forgotten = self.remembered.forget(&gone);
            self.remembers(forgotten);
        }
        self.version = None;
        let remembered = self.remember();
        self.remembers(remembered);
        if let Some(network) = &mut self.network {
            network.look(now);
        }
        if let Some(resctrl) = &mut self.resctrl {
            resctrl.look(now, &self.groups, &self.runner.processes());
        }
    }

    /// Bits a second that others than jobs have sent of late, where that is measured.
    pub fn egress(&self) -> Option<f64> {
        self.network.as_ref()?.egress()
    }

    /// What memory was read and written of late, where that is measured.
    pub fn bandwidth(&self) -> Option<Bandwidth> {
        self.resctrl.as_ref()?.bandwidth()
    }

    /// Remembers, before they are touched, those that have come since. Where that fails it is tried again when
    /// everything is looked at.
    fn know(&mut self) {
        if self.ended || self.forgetful || self.knows_jobs() {
            return;
        }
        let remembered = self.remember();
        self.remembers(remembered);
    }

    fn knows_jobs(&self) -> bool {
        self.version == Some(self.runner.found_version())
    }

    /// Jobs that are remembered as they were found, while others are not: they give what the service gets.
    fn known_jobs(&self) -> Vec<String> {
        let remembered = self.remembered.found();
        let jobs = self.runner.found().into_iter();
        let known = jobs.filter(|(name, found)| {
            let known = remembered.get(&of_job(name));
            known.is_some_and(|known| known.members == found.members)
        });
        known.map(|(name, _)| name).collect()
    }

    /// Says once that it does not.
    fn remembers(&mut self, done: Result<(), state::Error>) {
        let forgot = std::mem::replace(&mut self.forgetful, done.is_err());
        if let Err(error) = done
            && !forgot
        {
            error!(%error, "how things were found cannot be remembered: who is new is left alone");
        }
    }

    /// How far the jobs are. Every tick.
    pub fn states(&mut self, now: Nanos) -> &[State] {
        self.runner.tick(now);
        self.know();
        self.runner.states()
    }

    /// The service's processes; empty while it is not there.
    pub fn service(&self) -> Vec<Pid> {
        self.service.as_ref().map_or(Vec::new(), Service::processes)
    }

    /// The jobs' processes, when they were last looked at.
    pub fn jobs(&self) -> Vec<Pid> {
        self.runner.processes()
    }

    /// Whether there are the services that are configured.
    pub fn has_service(&self) -> bool {
        self.services().all(|(_, service)| service.is_there())
    }

    /// Writes what differs from what was written before. What could not be put back by others is not touched.
    pub fn apply(&mut self, plan: &CorePlan, now: Nanos) {
        let knows = self.knows_jobs();
        let known = if knows { Vec::new() } else { self.known_jobs() };
        let may = |name: &str| knows || known.iter().any(|known| known == name);
        self.runner.give(&plan.jobs, may);
        let planned = std::iter::once(&plan.service).chain(&plan.others);
        let remembered = &self.remembered;
        let known = each(&mut self.service, &mut self.others)
            .zip(planned)
            .filter(|((name, service), _)| service.is_known(remembered.found().get(*name)));
        let mut services: Vec<(&mut Service, &Cores)> = known
            .map(|((_, service), cores)| (service, cores))
            .collect();
        // Who gets a core gets it from one that has given it.
        for (service, cores) in &mut services {
            if let Some(kept) = service.cores().map(|had| had.shared(cores)) {
                service.set(&kept, now);
            }
        }
        for (service, cores) in services {
            service.set(cores, now);
        }
        if knows {
            self.runner.take(&plan.jobs, now);
            // Last: the kernel may take its time to get memory back.
            self.runner.limit(&plan.jobs);
        }
        if let (Some(network), Some(ceiling)) = (&mut self.network, plan.ceilings.egress) {
            network.want(ceiling);
        }
        if let Some(resctrl) = &mut self.resctrl {
            resctrl.want(plan.ceilings.ways, plan.ceilings.bandwidth);
        }
    }

    /// What was last written for the service.
    pub fn service_cores(&self) -> Option<&Cores> {
        self.service.as_ref()?.cores()
    }

    /// How a job is doing.
    pub fn facts(&self, job: usize) -> &Facts {
        self.runner.facts(job)
    }

    /// Writes that failed.
    pub fn write_errors(&self) -> u64 {
        let services = self.services().map(|(_, service)| service.write_errors());
        let network = self.network.as_ref().map_or(0, Network::write_errors);
        let resctrl = self.resctrl.as_ref().map_or(0, Resctrl::write_errors);
        services.sum::<u64>() + network + resctrl + self.runner.write_errors()
    }

    /// Services get back what they had, before anything that may take time.
    pub fn let_go(&mut self) {
        let mut back = Vec::new();
        for (name, service) in each(&mut self.service, &mut self.others) {
            if service.let_go() {
                back.push(name.to_owned());
            }
        }
        if !back.is_empty() {
            // Who puts back what is remembered does not know what is below them, and would give that all cores.
            let forgotten = self.remembered.forget(&back);
            self.remembers(forgotten);
        }
    }

    /// Jobs end or go on, as configured, and everything is put back as found; how much is left.
    pub fn end(&mut self) -> usize {
        self.put_all_back(Runner::end)
    }

    fn put_all_back(&mut self, stop: fn(&mut Runner) -> bool) -> usize {
        if std::mem::replace(&mut self.ended, true) {
            return 0;
        }
        self.let_go();
        let network = self.network.as_mut().map_or(Vec::new(), Network::end);
        let resctrl = self.resctrl.as_mut().map_or(Vec::new(), Resctrl::end);
        let jobs = usize::from(!stop(&mut self.runner));
        let mut left = put_back(&mut self.remembered, &self.groups);
        left.extend(network);
        left.extend(resctrl);
        for (name, error) in &left {
            error!(name, %error, "not put back; try weir-governor restore");
        }
        left.len() + jobs
    }
}

/// The first service and those beside it, by the names under which they are remembered.
fn each<'s>(
    service: &'s mut Option<Service>,
    others: &'s mut [(String, Service)],
) -> impl Iterator<Item = (&'s str, &'s mut Service)> {
    let first = service.iter_mut().map(|service| (SERVICE, service));
    let others = others.iter_mut();
    first.chain(others.map(|(name, service)| (name.as_str(), service)))
}

impl Drop for Shares {
    /// For whoever has not called [`Shares::end`], as a thread that panics or a start that fails: nobody has asked
    /// for the jobs to end.
    fn drop(&mut self) {
        self.put_all_back(Runner::keep);
    }
}

/// Puts back what a run has left that was killed: what could not be, which is remembered still.
pub fn restore(root: &Root, held: &Held) -> Result<Vec<(String, std::io::Error)>, Error> {
    let mut remembered = held.remembered(FILE)?;
    Ok(put_back(&mut remembered, &Groups::find(root)?))
}

/// A job's name in what is remembered.
fn of_job(name: &str) -> String {
    format!("job {name}")
}

/// Services before jobs.
fn put_back(remembered: &mut Remembered<Found>, groups: &Groups) -> Vec<(String, std::io::Error)> {
    let (mut back, mut left) = (Vec::new(), Vec::new());
    let (services, jobs): (Vec<_>, Vec<_>) = remembered
        .found()
        .iter()
        .partition(|(name, _)| name.starts_with(SERVICE));
    for (name, found) in services.into_iter().chain(jobs) {
        let group = groups.existing(&found.members);
        match group.and_then(|mut group| group.restore(found)) {
            Ok(()) => back.push(name.clone()),
            // Who is gone has nothing to be put back.
            Err(error) if error.kind() == ErrorKind::NotFound => back.push(name.clone()),
            Err(error) => left.push((name.clone(), error)),
        }
    }
    if !back.is_empty() {
        if let Err(error) = remembered.forget(&back) {
            left.push((FILE.to_owned(), std::io::Error::other(error)));
        }
        info!(
            back = back.len(),
            left = left.len(),
            "cores and jobs put back as found"
        );
    }
    left
}
