// SPDX-License-Identifier: Apache-2.0
//! The mesh as a value: its processes, and what can be done to it.

mod controls;
mod federation;
mod links;
mod members;
mod static_control;
mod transparent;
mod upsets;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use weir_consul::{Calls, Module, Sidecar, StaticCluster, Upstream, Weir, merge};
use weir_needs::Ports;
use weir_stage::control::hosts_up;
use weir_stage::http::Request;
use weir_stage::processes::Processes;
use weir_stage::record;

use crate::caller::Caller;
use crate::consul::Consul;
use crate::control::Control;
use crate::description::Description;
use crate::host::Host;
use crate::network::{Network, Place};
use crate::plan::Plan;
use crate::programs::Programs;
use crate::sidecar::{self, Sidecars};
use crate::surroundings::Surroundings;
use crate::{CALLERS, CONTROL, HOSTS, network, prometheus};

pub use self::federation::Far;
pub use self::static_control::Certificates;

/// The record of the processes, in the mesh's folder.
pub(crate) const RECORD: &str = record::FILE;
/// From the last sidecar's readiness to tables with every host, and to the first informed choice of each caller.
const INFORMED: Duration = Duration::from_secs(60);

/// A mesh that is up. All of it ends when the value is dropped.
pub struct Mesh {
    /// First, so that nothing runs any more when the rest is dropped.
    processes: Processes,
    network: Option<Network>,
    folder: PathBuf,
    plan: Plan,
    programs: Programs,
    ports: Ports,
    sidecars: Sidecars,
    surroundings: Surroundings,
    consul: Consul,
    controls: Vec<Control>,
    hosts: Vec<Host>,
    callers: Vec<Caller>,
    prometheus: Option<SocketAddr>,
    /// Hosts and callers are numbered through, also when some have gone.
    hosts_so_far: usize,
    callers_so_far: usize,
}

impl Mesh {
    /// Starts everything in a folder of its own and returns when every caller's requests go where the filter
    /// chose. Minutes at most; logs are in `<folder>/logs`.
    ///
    /// # Errors
    /// The plan cannot be, a program is missing or died, or something took too long; what was started is ended.
    pub fn up(plan: &Plan, programs: &Programs, folder: &Path) -> Result<Self> {
        Self::up_telling(plan, programs, folder, |_| ())
    }

    /// The same, telling of each stage that it begins.
    ///
    /// # Errors
    /// See [`Self::up`].
    pub fn up_telling(
        plan: &Plan,
        programs: &Programs,
        folder: &Path,
        mut tell: impl FnMut(&str),
    ) -> Result<Self> {
        let mut mesh = Self::around_consul(plan, programs, folder, &mut tell)?;
        mesh.write_entries()?;
        mesh.start_members(&mut tell)?;
        tell("sidecars");
        mesh.wait_for_sidecars()?;
        if let (true, Some(program)) = (plan.prometheus, &programs.prometheus) {
            tell("Prometheus");
            mesh.start_prometheus(program)?;
        }
        mesh.describe()?;
        tell("tables of all hosts");
        mesh.wait_until_hosts_are_known()?;
        tell("the first choices");
        for caller in mesh.callers.clone() {
            mesh.wait_until_informed(&caller)?;
        }
        Ok(mesh)
    }

    /// A mesh of Consul alone, in a folder without anything of the mesh before.
    fn around_consul(
        plan: &Plan,
        programs: &Programs,
        folder: &Path,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self> {
        plan.check()?;
        programs.check()?;
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        let folder = folder
            .canonicalize()
            .with_context(|| format!("finding {}", folder.display()))?;
        forget(&folder, plan.netns)?;
        let mut processes = Processes::new(folder.join("logs"))?.bound(folder.join(RECORD));
        let mut ports = Ports::of_this_process();
        let network = match plan.netns {
            true => Some(Network::make()?),
            false => None,
        };
        tell("Consul");
        let consul = Consul::start(
            &mut processes,
            &programs.consul,
            folder.join("consul"),
            &mut ports,
            network.as_ref().map(Network::gateway),
        )?;
        Ok(Self {
            processes,
            network,
            plan: plan.clone(),
            programs: programs.clone(),
            ports,
            sidecars: Sidecars {
                envoy: programs.envoy.clone(),
                folder: folder.clone(),
            },
            surroundings: Surroundings::of(plan, &folder)?,
            folder,
            consul,
            controls: Vec::new(),
            hosts: Vec::new(),
            callers: Vec::new(),
            prometheus: None,
            hosts_so_far: 0,
            callers_so_far: 0,
        })
    }

    /// Starts the hosts, weir-controls and callers of the plan, with their sidecars.
    fn start_members(&mut self, tell: &mut dyn FnMut(&str)) -> Result<()> {
        tell("hosts and weir-control");
        for _ in 0..self.plan.hosts {
            self.start_host()?;
        }
        for _ in 0..self.plan.controls {
            self.start_control()?;
        }
        tell("callers");
        for _ in 0..self.plan.callers {
            self.start_caller(CALLERS, None)?;
        }
        Ok(())
    }

    fn wait_for_sidecars(&mut self) -> Result<()> {
        let hosts = self.hosts.iter().map(|host| (&host.name, host.admin));
        let controls = self.controls.iter();
        let controls = controls.map(|control| (&control.name, control.sidecar));
        let callers = self.callers.iter();
        let callers = callers.map(|caller| (&caller.name, caller.admin));
        for (id, admin) in hosts.chain(controls).chain(callers) {
            sidecar::wait(&mut self.processes, id, admin)?;
        }
        Ok(())
    }

    fn write_entries(&self) -> Result<()> {
        if let Some(file) = self.surroundings.access_log() {
            self.consul.write_access_log(&file)?;
        }
        let control = weir_consul::Control::Service(CONTROL.to_owned());
        self.let_choose(CALLERS, control, Value::Null)
    }

    /// The sidecars of this service choose hosts by Weir, and have tables from there. `settings` are the filter's.
    fn let_choose(
        &self,
        service: &str,
        control: weir_consul::Control,
        mut settings: Value,
    ) -> Result<()> {
        // The mesh is there to be looked into.
        merge(&mut settings, &json!({"debug": true}));
        let filter = self.programs.filter.to_str();
        let filter = filter.context("the filter's path is not UTF-8")?;
        self.consul.apply(&Weir {
            services: [HOSTS.to_owned()].into(),
            callers: [service.to_owned()].into(),
            control,
            module: Module::File(filter.to_owned()),
            settings,
        })
    }

    fn start_host(&mut self) -> Result<Host> {
        self.hosts_so_far += 1;
        let name = format!("{HOSTS}-{}", self.hosts_so_far);
        let place = match &mut self.network {
            Some(network) => network.place(&name)?,
            None => Place::loopback(),
        };
        let host = Host {
            name,
            address: place.at(self.ports.take()?),
            application: place.at(self.ports.take()?),
            admin: place.at(self.ports.take()?),
            namespace: place.namespace.clone(),
        };
        let command = host.command(&self.programs, &self.plan);
        let command = place.command(self.surroundings.on_disk(command));
        self.processes.start(&host.name, command)?;
        self.register_host(&host)?;
        let Self {
            processes, consul, ..
        } = self;
        let file = self
            .sidecars
            .bootstrap(consul, &host.name, &place, host.admin.port())?;
        let command = self.surroundings.on_disk(self.sidecars.command(&file, 1));
        let command = place.command(command);
        processes.start(&sidecar::name(&host.name), command)?;
        self.hosts.push(host.clone());
        Ok(host)
    }

    fn register_host(&self, host: &Host) -> Result<()> {
        let sidecar = Sidecar {
            id: host.name.clone(),
            service: HOSTS.to_owned(),
            address: host.address.ip(),
            port: host.address.port(),
        };
        let millicores = 1000 * self.plan.cores;
        let service = sidecar.host(host.application.port(), Some(millicores), None);
        self.consul.register(&service)
    }

    /// Registers a caller of a service, which may have a cluster of its own for weir-control, and starts its sidecar.
    fn start_caller(&mut self, service: &str, control: Option<&StaticCluster>) -> Result<Caller> {
        self.callers_so_far += 1;
        let name = format!("{service}-{}", self.callers_so_far);
        let place = Place::loopback();
        let caller = Caller {
            name,
            outbound: place.at(self.ports.take()?),
            admin: place.at(self.ports.take()?),
            namespace: None,
        };
        let sidecar = Sidecar {
            id: caller.name.clone(),
            service: service.to_owned(),
            address: place.address,
            port: self.ports.take()?,
        };
        let upstreams = [
            Upstream::new(HOSTS, caller.outbound.port()),
            Upstream::new(CONTROL, self.ports.take()?),
        ];
        let calls = Calls {
            upstreams: &upstreams,
            control,
            ..Calls::default()
        };
        self.consul.register(&sidecar.caller(&calls))?;
        let (admin, threads) = (caller.admin.port(), self.plan.caller_threads);
        let file = self
            .sidecars
            .bootstrap(&self.consul, &caller.name, &place, admin)?;
        let command = self.sidecars.command(&file, threads);
        let command = self.surroundings.with_clock(&caller.name, command)?;
        let command = place.command(self.surroundings.on_disk(command));
        self.processes
            .start(&sidecar::name(&caller.name), command)?;
        self.callers.push(caller.clone());
        Ok(caller)
    }

    fn start_prometheus(&mut self, program: &Path) -> Result<()> {
        let listen = Place::loopback().at(self.ports.take()?);
        self.prometheus = Some(listen);
        let folder = self.folder.join("prometheus");
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        prometheus::targets(&folder, &self.description())?;
        let Self {
            processes,
            consul,
            controls,
            ..
        } = self;
        prometheus::start(processes, program, &folder, listen, consul, controls)
    }

    /// Waits until the caller's filter has a table and chooses by it.
    /// Consul takes a host for critical until its check has passed once, which takes long on a busy machine.
    fn wait_until_hosts_are_known(&mut self) -> Result<()> {
        let mut wanted: Vec<SocketAddr> = self.hosts.iter().map(|host| host.address).collect();
        wanted.sort();
        let knows_all = |control: &Control| {
            let mut up = hosts_up(control.admin, HOSTS).unwrap_or_default();
            up.sort();
            up == wanted
        };
        let controls = &self.controls;
        let what = "a table with every host";
        self.processes.wait_until(what, INFORMED, || {
            controls.iter().any(knows_all).then_some(())
        })
    }

    fn wait_until_informed(&mut self, caller: &Caller) -> Result<()> {
        // A host that works for real has an answer to this as well.
        let request = Request {
            method: "GET",
            path: "/metrics",
            headers: &[("x-weir-key", "first")],
            body: "",
        };
        let what = format!("an informed choice of {}", caller.name);
        self.processes.wait_until(&what, INFORMED, || {
            let answer = caller.send(&request).ok()?;
            let reason = answer.header("x-weir-reason")?;
            let informed = answer.status == "200" && !["no_table", "stale_table"].contains(&reason);
            informed.then_some(())
        })
    }

    /// The addresses of everything.
    #[must_use]
    pub fn description(&self) -> Description {
        Description {
            consul: self.consul.http(),
            consul_server: self.consul.server(),
            trust_domain: self.consul.trust_domain().to_owned(),
            prometheus: self.prometheus,
            controls: self.controls.clone(),
            callers: self.callers.clone(),
            hosts: self.hosts.clone(),
            logs: self.folder.join("logs"),
            supervisor: std::process::id(),
        }
    }

    /// Writes all addresses where other processes find them.
    fn describe(&self) -> Result<()> {
        let description = self.description();
        if self.prometheus.is_some() {
            prometheus::targets(&self.folder.join("prometheus"), &description)?;
        }
        description.write(&self.folder)
    }

    /// Consul, to ask and to tell.
    #[must_use]
    pub fn consul(&self) -> &Consul {
        &self.consul
    }

    /// weir-control; the first, where there are several.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.controls[0]
    }

    /// All weir-controls.
    #[must_use]
    pub fn controls(&self) -> &[Control] {
        &self.controls
    }

    /// The hosts that are there.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The callers that are there.
    #[must_use]
    pub fn callers(&self) -> &[Caller] {
        &self.callers
    }

    /// Prometheus, where there is one.
    #[must_use]
    pub fn prometheus(&self) -> Option<SocketAddr> {
        self.prometheus
    }

    /// The mesh's folder: logs, configurations, `mesh.json`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its processes: killed, frozen, started again by name (`consul`, `consul-server`, `weir-control`, `rules-1`,
    /// `rules-1-sidecar`, `caller-1-sidecar`, `prometheus`).
    pub fn processes(&mut self) -> &mut Processes {
        &mut self.processes
    }
}

/// Removes what a mesh before this one has left in the folder; its logs are overwritten one by one.
fn forget(folder: &Path, netns: bool) -> Result<()> {
    record::end(&folder.join(RECORD))?;
    network::remove_leftovers(netns)?;
    for name in ["consul", "prometheus"] {
        let folder = folder.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("removing {}", folder.display()))?;
        }
    }
    Ok(())
}
