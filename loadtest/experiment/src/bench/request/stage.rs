// SPDX-License-Identifier: Apache-2.0
//! The processes of a group, all at once: hosts, weir-control, pickers and a sidecar for each way.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use weir_stage::control::{self, Control};
use weir_stage::envoy::{self, Envoy};
use weir_stage::ports;
use weir_stage::processes::Processes;
use weir_stage::usage::Process;

use crate::bench::epp::{self, Epp};
use crate::bench::load::{Answers, Pace, Pool, Protocol};
use crate::bench::programs::{self, Programs};
use crate::bench::reasons::Reasons;
use crate::bench::request::case::Group;
use crate::bench::request::lua;
use crate::bench::request::way::{DYNAMIC, ONE, Way};
use crate::bench::setting::Setting;
use crate::bench::weir;
use crate::sidecar::filters::Sent;
use crate::sidecar::{HOSTS, bootstrap, clusters, filters};

/// From the start of a sidecar to right answers only.
const SETTLED: Duration = Duration::from_secs(30);
/// No table of weir-control's.
const UNTOLD: &str = "nothing";
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
pub(super) struct Starter<'a> {
    programs: &'a Programs,
    group: &'a Group,
    folder: &'a Path,
    processes: Processes,
    pub(super) hosts: Vec<SocketAddr>,
    control: Control,
    epp: Option<Epp>,
}

impl Stage {
    pub(super) fn start(setting: &Setting, group: &Group, folder: PathBuf) -> Result<Self> {
        eprintln!("request: starting the processes of `{}`", group.name);
        let programs = &setting.programs;
        let mut starter = Starter::new(programs, group, &folder)?;
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
        let sidecar = self.sidecar(way)?;
        let sent = || {
            let mut pool =
                Pool::connect(sidecar.envoy.listener, Protocol::Http1(16), work.clone())?;
            let earlier = Reasons::read(sidecar.envoy.admin)?;
            let answers = pool.send(Pace::Closed, TRY)?;
            let reasons = sidecar.checked(way, &earlier, &answers)?;
            reasons.check_balance()
        };
        loop {
            self.check()?;
            match sent() {
                Ok(()) => return Ok(()),
                Err(error) if started.elapsed() > SETTLED => {
                    let limit = SETTLED.as_secs();
                    return Err(error.context(format!("no right answers within {limit} s")));
                }
                Err(_) => std::thread::sleep(TRY),
            }
        }
    }
}

impl Sidecar {
    /// Why Weir decided these answers as it did since `earlier`, where it did; fails where they are not right.
    pub(super) fn checked(
        &self,
        way: Way,
        earlier: &Reasons,
        answers: &Answers,
    ) -> Result<Reasons> {
        let reasons = Reasons::read(self.envoy.admin)?.since(earlier);
        if way.is_weir() {
            reasons.check(answers.count - answers.elsewhere, answers.elsewhere)?;
        }
        Ok(reasons)
    }
}

impl<'a> Starter<'a> {
    /// With hosts and weir-control.
    pub(super) fn new(programs: &'a Programs, group: &'a Group, folder: &'a Path) -> Result<Self> {
        let mut processes = Processes::bound_in(folder.to_path_buf())?;
        let hosts = start_hosts(&mut processes, group, folder)?;
        let config = control::config(tables(&hosts));
        let control = control::start(&mut processes, &programs.control, &config, folder)?;
        Ok(Self {
            programs,
            group,
            folder,
            processes,
            hosts,
            control,
            epp: None,
        })
    }

    /// Ends the sidecar of a way.
    pub(super) fn stop(&mut self, way: Way) -> Result<()> {
        self.processes.stop(way.node())
    }

    pub(super) fn sidecar(&mut self, way: Way) -> Result<Sidecar> {
        let (bootstrap, picker) = self.bootstrap(way)?;
        let (node, text) = (way.node(), bootstrap.to_string());
        let program = &self.programs.envoy;
        let (processes, workers) = (&mut self.processes, self.group.workers);
        let envoy =
            envoy::start_with_workers(processes, program, workers, node, &text, self.folder)?;
        Ok(Sidecar { envoy, picker })
    }

    /// What the sidecar is started with, and the picker that it asks.
    fn bootstrap(&mut self, way: Way) -> Result<(Value, Option<Process>)> {
        let (node, hosts) = (way.node(), &self.hosts);
        let alone = match way {
            Way::Plain => bootstrap(node, vec![], vec![clusters::least_request(hosts)]),
            Way::NoOp => {
                let filter = filters::wasm(node, &self.programs.no_op, &json!({}));
                bootstrap(node, vec![filter], vec![clusters::least_request(hosts)])
            }
            Way::Rules => bootstrap(node, vec![], vec![clusters::named_and_stripped(hosts)]),
            Way::NativeNoOp => {
                let filter = filters::native(node, &self.programs.native_no_op, &json!({}));
                bootstrap(node, vec![filter], vec![clusters::least_request(hosts)])
            }
            Way::Native | Way::NativeOne | Way::NativeUntold | Way::NativeUnasked => {
                self.weir(weir::native_sidecar, way)?
            }
            Way::Weir | Way::WeirLoads | Way::Dynamic | Way::Untold | Way::Unasked => {
                self.weir(weir::sidecar, way)?
            }
            Way::Lua => {
                let filter = filters::lua(&lua::script(hosts, self.group.keys));
                let cluster = clusters::named_and_stripped(hosts);
                bootstrap(node, vec![filter], vec![cluster])
            }
            Way::Picker => return self.picker(way, Sent::WeirHeaders),
            Way::ToldPicker => return self.picker(way, Sent::WeirHeadersAndAnswers),
            Way::Epp => return self.epp(way),
        };
        Ok((alone, None))
    }

    fn weir(&self, sidecar: weir::Sidecar, way: Way) -> Result<Value> {
        let configuration = match way {
            Way::Untold | Way::NativeUntold => weir::cluster_of(UNTOLD),
            Way::Unasked | Way::NativeUnasked => weir::any(table(way)?),
            _ => weir::cluster_of(table(way)?),
        };
        let (hosts, control) = (&self.hosts, self.control.xds);
        Ok(sidecar(
            way.node(),
            self.programs,
            configuration,
            hosts,
            control,
        ))
    }

    fn picker(&mut self, way: Way, sent: Sent) -> Result<(Value, Option<Process>)> {
        #[derive(Deserialize)]
        struct Ports {
            grpc: SocketAddr,
        }
        let node = way.node();
        let mut command = programs::own("bench-picker")?;
        command
            .args(["--cluster", table(way)?])
            .args(["--control", &self.control.xds.to_string()]);
        if sent == Sent::WeirHeadersAndAnswers {
            command.arg("--told-of-answers");
        }
        let (name, processes) = (format!("bench-{node}"), &mut self.processes);
        let (process, Ports { grpc }) = ports::start(processes, &name, command, self.folder)?;
        let clusters = vec![
            clusters::named_and_stripped(&self.hosts),
            clusters::grpc("picker", grpc),
        ];
        let filter = filters::ext_proc("picker", sent);
        Ok((bootstrap(node, vec![filter], clusters), Some(process)))
    }

    fn epp(&mut self, way: Way) -> Result<(Value, Option<Process>)> {
        let (program, hosts) = (self.programs.epp()?, &self.hosts);
        let processes = &mut self.processes;
        let epp = epp::start(
            processes,
            program,
            epp::CHART_CONFIG,
            &[],
            hosts,
            self.folder,
        )?;
        let bootstrap = epp::sidecar(way.node(), hosts, epp.grpc, false);
        let process = epp.process;
        self.epp = Some(epp);
        Ok((bootstrap, Some(process)))
    }
}

fn table(way: Way) -> Result<&'static str> {
    way.table().context("it has no table")
}

fn start_hosts(processes: &mut Processes, group: &Group, folder: &Path) -> Result<Vec<SocketAddr>> {
    let mut command = programs::own("bench-hosts")?;
    command
        .args(["--hosts", &group.hosts.to_string()])
        .args(["--keys", &group.keys.to_string()]);
    programs::hosts(processes, "hosts", command, folder)
}

/// The same hosts with the defaults, with `dynamic`, and with decisions that name one of them.
fn tables(hosts: &[SocketAddr]) -> Value {
    let default = weir::cluster(hosts, &json!({}));
    let with = |policy: Value| {
        let mut cluster = default.clone();
        cluster["policy"] = policy;
        cluster
    };
    json!({
        HOSTS: default,
        DYNAMIC: with(json!({"selection": "dynamic"})),
        ONE: with(json!({"ranked_hosts": 1})),
    })
}
