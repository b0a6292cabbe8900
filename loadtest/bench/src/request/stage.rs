// SPDX-License-Identifier: Apache-2.0
//! The processes of a group, all at once: hosts, weir-control, pickers and a sidecar for each way.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use weir_stage::control::{self, Control};
use weir_stage::envoy::{self, Envoy};
use weir_stage::ports;
use weir_stage::processes::Processes;
use weir_stage::usage::Process;

use crate::bench::Bench;
use crate::epp::{self, Epp};
use crate::load::{Pace, Pool};
use crate::programs::Programs;
use crate::request::case::Group;
use crate::request::lua;
use crate::request::way::Way;
use crate::sidecar::filters::Sent;
use crate::sidecar::{HOSTS, bootstrap, clusters, filters};

/// From the start of a sidecar to right answers only.
const SETTLED: Duration = Duration::from_secs(30);
const TRY: Duration = Duration::from_millis(300);

pub(super) struct Stage {
    pub(super) hosts: Vec<SocketAddr>,
    pub(super) control: Control,
    sidecars: BTreeMap<Way, Sidecar>,
    _epp: Option<Epp>,
    // Dropped last: everything above uses them.
    processes: Processes,
}

/// One way, ready to be measured.
#[derive(Clone, Copy)]
pub(super) struct Sidecar {
    pub(super) envoy: Envoy,
    /// Whom it asks for every request.
    pub(super) picker: Option<Process>,
}

/// Starts what ways need, once each.
struct Starter<'a> {
    programs: &'a Programs,
    group: &'a Group,
    folder: &'a Path,
    processes: Processes,
    hosts: Vec<SocketAddr>,
    control: Control,
    epp: Option<Epp>,
}

impl Stage {
    pub(super) fn start(bench: &Bench, group: &Group, folder: PathBuf) -> Result<Self> {
        eprintln!("request: starting the processes of `{}`", group.name);
        let programs = &bench.programs;
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let mut processes = Processes::new(folder.clone())?;
        let hosts = start_hosts(&mut processes, programs, group, &folder)?;
        let program = programs.release("weir-control")?;
        let config = control_config(&hosts);
        let control = control::start(&mut processes, &program, &config, &folder)?;
        let mut starter = Starter {
            programs,
            group,
            folder: &folder,
            processes,
            hosts,
            control,
            epp: None,
        };
        let mut sidecars = BTreeMap::new();
        for way in group.ways {
            let sidecar = match way {
                // It shares Weir's, which comes before it.
                Way::WeirLoads => sidecars.get(&Way::Weir).copied(),
                _ => None,
            };
            let sidecar = match sidecar {
                Some(sidecar) => sidecar,
                None => starter.sidecar(*way).context(way.name())?,
            };
            sidecars.insert(*way, sidecar);
        }
        let mut stage = Self {
            hosts: starter.hosts,
            control: starter.control,
            sidecars,
            _epp: starter.epp,
            processes: starter.processes,
        };
        for way in group.ways {
            stage.settle(*way, group).context(way.name())?;
        }
        Ok(stage)
    }

    /// Whether all of them still live: one that has ended would be taken for one that costs nothing.
    pub(super) fn check(&mut self) -> Result<()> {
        self.processes.check()
    }

    pub(super) fn sidecar(&self, way: Way) -> Result<Sidecar> {
        let sidecar = self.sidecars.get(&way).copied();
        sidecar.with_context(|| format!("{} was not started", way.name()))
    }

    /// Sends requests of no consequence until all answers are right.
    fn settle(&mut self, way: Way, group: &Group) -> Result<()> {
        let started = Instant::now();
        let case = group.cases.first().context("the group has no case")?;
        let work = case.work(way, &self.hosts, group.keys)?;
        let target = self.sidecar(way)?.envoy.listener;
        loop {
            self.check()?;
            let mut pool = Pool::connect(target, 16, work.clone())?;
            match pool.send(Pace::Closed, TRY) {
                Ok(_) => return Ok(()),
                Err(error) if started.elapsed() > SETTLED => {
                    let limit = SETTLED.as_secs();
                    return Err(error.context(format!("no right answers within {limit} s")));
                }
                Err(_) => std::thread::sleep(TRY),
            }
        }
    }
}

impl Starter<'_> {
    fn sidecar(&mut self, way: Way) -> Result<Sidecar> {
        let node = way.node();
        let hosts = &self.hosts;
        let mut picker = None;
        let bootstrap = match way {
            Way::Plain => bootstrap(node, vec![], vec![clusters::least_request(hosts)]),
            Way::NoOp => {
                let module = Programs::needed(&self.programs.no_op, "no-op")?;
                let filter = filters::wasm(node, module, &json!({}));
                bootstrap(node, vec![filter], vec![clusters::least_request(hosts)])
            }
            Way::Weir | Way::WeirLoads => {
                let module = Programs::needed(&self.programs.filter, "filter")?;
                let configuration = json!({
                    "control_cluster": "weir-control",
                    "clusters": {HOSTS: {"table": HOSTS}},
                });
                let clusters = vec![
                    clusters::named_and_stripped(hosts),
                    clusters::grpc("weir-control", self.control.xds),
                ];
                let filter = filters::wasm(node, module, &configuration);
                bootstrap(node, vec![filter], clusters)
            }
            Way::Lua => {
                let filter = filters::lua(&lua::script(hosts, self.group.keys));
                bootstrap(
                    node,
                    vec![filter],
                    vec![clusters::named_and_stripped(hosts)],
                )
            }
            Way::Picker | Way::ToldPicker => {
                let (process, grpc) = self.start_picker(way)?;
                picker = Some(process);
                let clusters = vec![
                    clusters::named_and_stripped(&self.hosts),
                    clusters::grpc("picker", grpc),
                ];
                let sent = match way {
                    Way::ToldPicker => Sent::WeirHeadersAndAnswers,
                    _ => Sent::WeirHeaders,
                };
                let filter = filters::ext_proc("picker", sent);
                bootstrap(node, vec![filter], clusters)
            }
            Way::Epp => {
                let program = Programs::needed(&self.programs.epp, "epp")?;
                let processes = &mut self.processes;
                let epp = epp::start(processes, program, epp::CHART_CONFIG, hosts, self.folder)?;
                picker = Some(epp.process);
                let bootstrap = epp::sidecar(node, hosts, epp.grpc);
                self.epp = Some(epp);
                bootstrap
            }
        };
        let program = Programs::needed(&self.programs.envoy, "envoy")?;
        let text = bootstrap.to_string();
        let envoy = envoy::start(&mut self.processes, program, node, &text, self.folder)?;
        Ok(Sidecar { envoy, picker })
    }

    fn start_picker(&mut self, way: Way) -> Result<(Process, SocketAddr)> {
        #[derive(Deserialize)]
        struct Ports {
            grpc: SocketAddr,
        }
        let name = format!("weir-bench-{}", way.node());
        let file = self.folder.join(format!("{name}.ports"));
        let mut command = Command::new(self.programs.release("weir-bench-picker")?);
        command
            .args(["--cluster", HOSTS])
            .args(["--control", &self.control.xds.to_string()])
            .arg("--ports-file")
            .arg(&file);
        if way == Way::ToldPicker {
            command.arg("--told-of-answers");
        }
        let process = self.processes.start(&name, command)?;
        let ports: Ports = ports::wait(&mut self.processes, &name, &file)?;
        Ok((process, ports.grpc))
    }
}

fn start_hosts(
    processes: &mut Processes,
    programs: &Programs,
    group: &Group,
    folder: &Path,
) -> Result<Vec<SocketAddr>> {
    #[derive(Deserialize)]
    struct Ports {
        hosts: Vec<SocketAddr>,
    }
    let file = folder.join("weir-bench-hosts.ports");
    let mut command = Command::new(programs.release("weir-bench-hosts")?);
    command
        .args(["--hosts", &group.hosts.to_string()])
        .args(["--keys", &group.keys.to_string()])
        .arg("--ports-file")
        .arg(&file);
    processes.start("weir-bench-hosts", command)?;
    let ports: Ports = ports::wait(processes, "weir-bench-hosts", &file)?;
    Ok(ports.hosts)
}

/// The defaults.
fn control_config(hosts: &[SocketAddr]) -> Value {
    let hosts: Vec<Value> = hosts.iter().map(|host| json!({"address": host})).collect();
    json!({
        "xds": {"listen": "127.0.0.1:0"},
        "admin": {"listen": "127.0.0.1:0"},
        "clusters": {HOSTS: {
            // Whoever has it, then whoever has least: what the pickers beside it do.
            "policy": {"selection": "dynamic"}, "hosts": hosts, "scrape": {}, "cache": {},
        }},
    })
}
