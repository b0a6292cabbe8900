// SPDX-License-Identifier: Apache-2.0
//! The course of a measurement: all come, a steady minute, all connections are cut, weir-control is killed and
//! started again.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rand::RngExt;
use serde::Deserialize;
use serde_json::{Value, json};
use weir_stage::busy::Busy;
use weir_stage::http::{self, Request};
use weir_stage::processes::Processes;
use weir_stage::usage::Process;
use weir_stage::{control, ports, record};

use crate::costs::Costs;
use crate::fleet::crowd::{Build, State};
use crate::fleet::hosts::Hosts;
use crate::fleet::plan::Plan;
use crate::fleet::result::{Return, Steady, Told};
use crate::fleet::sidecar::CLUSTER;

const CONTROL: &str = "weir-control";
/// Until everybody has a table, on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);
/// CPU is told for so long at a time after a cut.
const WINDOW: Duration = Duration::from_secs(1);
/// Of a core and of the steady use: what is no more than this is as it was.
const AS_BEFORE: (f64, f64) = (0.05, 1.25);

/// Everything that runs.
struct Fleet {
    processes: Processes,
    control: control::Control,
    pages: SocketAddr,
    sidecars: Process,
    count: usize,
}

#[derive(Deserialize)]
struct Ports {
    pages: SocketAddr,
}

/// Measures.
pub(crate) fn run(plan: &Plan, program: &Path, folder: &Path) -> Result<Told> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    // It plays the hosts, and they end with it.
    let runtime = tokio::runtime::Runtime::new()?;
    let hosts = runtime.block_on(Hosts::start(plan.hosts, plan.keys))?;
    let mut fleet = Fleet::start(plan, program, folder, &hosts)?;
    eprintln!("fleet: {} sidecars connect", plan.sidecars);
    let first = fleet.all_fresh()?.fresh_ms;
    wait(&mut fleet, Duration::from_secs(plan.settle))?;

    let steady = steady(&mut fleet, plan)?;
    eprintln!("fleet: all connections are cut");
    let cut = returned(&mut fleet, steady.control_cores, |fleet| fleet.post("/cut"))?;
    eprintln!("fleet: weir-control is killed and started again");
    let restart = returned(&mut fleet, steady.control_cores, |fleet| {
        fleet.post("/mark")?;
        fleet.processes.kill(CONTROL)?;
        fleet.control.process = fleet.processes.again(CONTROL)?;
        Ok(())
    })?;
    Ok(Told {
        plan: plan.clone(),
        machine: weir_stage::machine::describe(),
        first_s: first / 1e3,
        steady,
        cut,
        restart,
        end: fleet.all_current()?,
    })
}

fn steady(fleet: &mut Fleet, plan: &Plan) -> Result<Steady> {
    eprintln!("fleet: {} s of steady changes", plan.seconds);
    let before = fleet.state()?;
    let (control, sidecars) = (
        Costs::of(fleet.control.process)?,
        Costs::of(fleet.sidecars)?,
    );
    let (hosts, busy, began) = (Costs::of(Process::own())?, Busy::start(), Instant::now());
    wait(fleet, Duration::from_secs(plan.seconds))?;
    let (seconds, after) = (began.elapsed().as_secs_f64(), fleet.state()?);
    let per_second =
        |figure: fn(&State) -> u64| (figure(&after) - figure(&before)) as f64 / seconds;
    Ok(Steady {
        control_cores: control.cores()?,
        sidecars_cores: sidecars.cores()?,
        hosts_cores: hosts.cores()?,
        busy: busy.share(),
        resident: fleet.control.process.memory()?.resident,
        tables_per_second: per_second(|state| state.tables) / plan.sidecars as f64,
        shards_per_second: per_second(|state| state.shards) / plan.sidecars as f64,
        bytes_per_second: per_second(|state| state.bytes) / plan.sidecars as f64,
        reports_per_second: per_second(|state| state.reports),
        lost: after.lost - before.lost,
        refused: after.refused,
        fewest: after.fewest - before.fewest.min(after.fewest),
    })
}

/// After everybody's connection has ended: how long until all have a whole table again, and until weir-control takes
/// no more of a core than before.
fn returned(
    fleet: &mut Fleet,
    usual: f64,
    end: impl FnOnce(&mut Fleet) -> Result<()>,
) -> Result<Return> {
    let began = Instant::now();
    end(fleet)?;
    let spent = Costs::of(fleet.control.process)?;
    let fresh = fleet.all_fresh()?;
    let spent = spent.cpu()?;
    let quiet = AS_BEFORE.0 + AS_BEFORE.1 * usual;
    loop {
        let window = Costs::of(fleet.control.process)?;
        wait(fleet, WINDOW)?;
        if window.cores()? <= quiet || began.elapsed() > LIMIT {
            break;
        }
    }
    let quiet_s = began.elapsed().saturating_sub(WINDOW).as_secs_f64();
    fleet.all_current()?;
    Ok(Return {
        fresh_s: fresh.fresh_ms / 1e3,
        cpu_s: spent.as_secs_f64(),
        quiet_s,
        peak: fleet.control.process.memory()?.peak,
    })
}

impl Fleet {
    fn start(plan: &Plan, program: &Path, folder: &Path, hosts: &Hosts) -> Result<Self> {
        let mut processes = Processes::new(folder.join("logs"))?.bound(folder.join(record::FILE));
        let config = config(plan, &hosts.addresses)?;
        let control = control::start(&mut processes, program, &config, folder)?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("sidecars")
            .args(["--server", &control.xds.to_string()])
            .args(["--sidecars", &plan.sidecars.to_string()])
            .args(["--requests", &plan.requests.to_string()])
            .arg("--hosts")
            .arg(hosts.list(folder)?);
        let (sidecars, Ports { pages }) =
            ports::start(&mut processes, "sidecars", command, folder)?;
        Ok(Self {
            processes,
            control,
            pages,
            sidecars,
            count: plan.sidecars,
        })
    }

    fn state(&self) -> Result<State> {
        // Not `get`, which gives up after two seconds: the sidecars may keep all cores busy.
        let request = Request {
            method: "GET",
            path: "/state",
            headers: &[],
            body: "",
        };
        let page = http::send(self.pages, &request).context("the sidecars")?;
        Ok(serde_json::from_str(&page.body)?)
    }

    fn post(&self, path: &str) -> Result<()> {
        let request = Request {
            method: "POST",
            path,
            headers: &[("content-length", "0")],
            body: "",
        };
        let answer = http::send(self.pages, &request)?;
        ensure!(answer.status == "200", "{path}: {}", answer.status);
        Ok(())
    }

    /// Waits until each has had a whole table since the last cut.
    fn all_fresh(&mut self) -> Result<State> {
        let count = self.count;
        self.until("a whole table at every sidecar", |state| {
            state.fresh == count
        })
    }

    /// Waits until each has the newest table that anybody has now, or a newer one.
    fn all_current(&mut self) -> Result<State> {
        let newest = self.state()?.newest.context("nobody has a table")?;
        let is_newer = |oldest: Build| oldest.epoch == newest.epoch && oldest >= newest;
        self.until("the newest table at every sidecar", |state| {
            state.oldest.is_some_and(is_newer)
        })
    }

    fn until(&mut self, what: &str, wanted: impl Fn(&State) -> bool) -> Result<State> {
        let pages = self.pages;
        let mut last = State::default();
        let found = self.processes.wait_until(what, LIMIT, || {
            let page = http::get(pages, "/state").ok()?;
            last = serde_json::from_str(&page.body).ok()?;
            wanted(&last).then(|| last.clone())
        });
        found.with_context(|| format!("{last:?}"))
    }
}

/// Lets time pass while everybody lives.
fn wait(fleet: &mut Fleet, time: Duration) -> Result<()> {
    let began = Instant::now();
    while began.elapsed() < time {
        fleet.processes.check()?;
        std::thread::sleep(Duration::from_millis(50).min(time - began.elapsed().min(time)));
    }
    Ok(())
}

/// The defaults. The port is fixed, because sidecars come back to it.
fn config(plan: &Plan, hosts: &[SocketAddr]) -> Result<Value> {
    let hosts: Vec<Value> = hosts
        .iter()
        .map(|address| json!({"address": address}))
        .collect();
    let mut cluster = json!({"hosts": hosts, "scrape": {}});
    match plan.keys {
        0 => cluster["cache_shards"] = 0.into(),
        _ => cluster["cache"] = json!({}),
    }
    let mut config = control::config(json!({CLUSTER: cluster}));
    config["xds"]["listen"] = json!(port()?);
    Ok(config)
}

/// A free one below those that the system gives to clients, or one of a thousand sidecars may take it while
/// weir-control is down.
fn port() -> Result<SocketAddr> {
    let mut random = rand::rng();
    for _ in 0..100 {
        let port = random.random_range(10_000..30_000);
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return Ok(listener.local_addr()?);
        }
    }
    anyhow::bail!("no port from 10000 to 30000 is free")
}
