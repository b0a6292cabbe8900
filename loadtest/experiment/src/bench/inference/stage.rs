// SPDX-License-Identifier: Apache-2.0
//! The processes of one run: hosts with empty caches, a sidecar, and whom it asks.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use weir_stage::control;
use weir_stage::envoy::{self, Envoy};
use weir_stage::http;
use weir_stage::ports;
use weir_stage::processes::Processes;
use weir_stage::usage::Process;

use crate::bench::epp::{self, Epp};
use crate::bench::inference::plan::Plan;
use crate::bench::inference::way::Way;
use crate::bench::reasons::Reasons;
use crate::bench::setting::Setting;
use crate::bench::weir;
use crate::costs::Costs;
use crate::sidecar::{self, HOSTS, bootstrap, clusters};

/// Of what hosts say in `kv_events`, beside the configuration.
const TOKENIZER: &str = "tokenizer.json";
/// The sidecar's counter of requests.
const CAME: &str = "http.caller.downstream_rq_total";
/// From the start of a sidecar until it chooses as it should.
const SETTLED: Duration = Duration::from_secs(30);
/// The chart's, with what the documentation of the prefix scorer says for prompts such as these.
const EPP_CONFIG: &str = include_str!("epp.yaml");

pub(super) struct Stage {
    /// A sidecar for each caller.
    pub(super) envoys: Vec<Envoy>,
    /// The picker, or weir-control.
    pub(super) asked: Option<Process>,
    /// As it is called among the processes.
    asked_name: &'static str,
    pub(super) request_log: PathBuf,
    pub(super) processes: Processes,
    _epp: Option<Epp>,
}

impl Stage {
    pub(super) fn start(setting: &Setting, plan: &Plan, way: Way, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        let programs = &setting.programs;
        let mut processes = Processes::bound_in(folder.to_owned())?;
        let request_log = folder.join("requests.ndjson");
        let started = start_hosts(
            &mut processes,
            &programs.llm_host,
            plan,
            way,
            &request_log,
            folder,
        )?;
        let hosts = &started.hosts;
        let (mut epp, mut asked, mut asked_name) = (None, None, "");
        let sidecar: Box<dyn Fn(&str) -> Value + '_> = match way {
            Way::LeastRequest => {
                Box::new(|node| bootstrap(node, vec![], vec![clusters::least_request(hosts)]))
            }
            Way::Weighted => {
                let cluster = clusters::weighted(hosts, plan.blackout, plan.weights);
                Box::new(move |node| bootstrap(node, vec![], vec![cluster.clone()]))
            }
            Way::RingHash | Way::BoundedRingHash | Way::Maglev => {
                let cluster = match way {
                    Way::Maglev => clusters::maglev(hosts),
                    Way::BoundedRingHash => {
                        clusters::bounded_ring_hash(hosts, plan.balance_percent)
                    }
                    _ => clusters::ring_hash(hosts),
                };
                Box::new(move |node| {
                    let bootstrap = bootstrap(node, vec![], vec![cluster.clone()]);
                    sidecar::hashed_by(bootstrap, "x-weir-key")
                })
            }
            Way::Epp | Way::EppOpen | Way::EppOfEight => {
                let program = programs.epp()?;
                let flags = [format!("--refresh-metrics-interval={}", plan.epp_poll)];
                let started = &mut processes;
                let picker = epp::start(started, program, EPP_CONFIG, &flags, hosts, folder)?;
                (asked, asked_name) = (Some(picker.process), "epp");
                let grpc = picker.grpc;
                epp = Some(picker);
                let fails_open = way == Way::EppOpen;
                Box::new(move |node| epp::sidecar(node, hosts, grpc, fails_open))
            }
            Way::Weir
            | Way::Prompt
            | Way::Events
            | Way::EventsOfEight
            | Way::Levels
            | Way::ShortLevels
            | Way::Dynamic => {
                let clusters = json!({HOSTS: cluster(plan, way, &started)});
                let config = control::config(clusters);
                let control = control::start(&mut processes, &programs.control, &config, folder)?;
                (asked, asked_name) = (Some(control.process), "weir-control");
                let xds = control.xds;
                let key = json!({"block_bytes": plan.block_bytes, "max_bytes": "512KiB"});
                let (kind, configuration): (weir::Sidecar, _) = match way.reads_prompts() {
                    true => (weir::reading_sidecar, weir::prompts(&key)),
                    false => (weir::sidecar, weir::cluster_of(HOSTS)),
                };
                Box::new(move |node| kind(node, programs, configuration.clone(), hosts, xds))
            }
        };
        let envoys = (1..=way.callers()).map(|caller| {
            let node = format!("{}-{caller}", way.node());
            let text = sidecar(&node).to_string();
            envoy::start(&mut processes, &programs.envoy, &node, &text, folder)
        });
        let envoys = envoys.collect::<Result<_>>()?;
        drop(sidecar);
        let mut stage = Self {
            envoys,
            asked,
            asked_name,
            request_log,
            processes,
            _epp: epp,
        };
        stage.settle(way)?;
        Ok(stage)
    }

    /// Costs of the sidecars and of whom they ask, from now on.
    pub(super) fn costs(&self) -> Result<(Vec<Costs>, Option<Costs>)> {
        let asked = self.asked.map(Costs::of).transpose()?;
        let sidecars = self.envoys.iter().map(|envoy| Costs::of(envoy.process));
        Ok((sidecars.collect::<Result<_>>()?, asked))
    }

    /// Why the sidecars chose as they did.
    pub(super) fn reasons(&self) -> Result<Reasons> {
        let mut all = Reasons::default();
        for envoy in &self.envoys {
            all.add(&Reasons::read(envoy.admin)?);
        }
        Ok(all)
    }

    /// Runs what sends requests, and kills whom the sidecars ask when so many of them have come: how many it were then.
    pub(super) fn run_and_kill(
        &mut self,
        name: &str,
        command: Command,
        when: usize,
    ) -> Result<usize> {
        let admins: Vec<SocketAddr> = self.envoys.iter().map(|envoy| envoy.admin).collect();
        let earlier = came(&admins)?;
        let asked = self.asked_name;
        let mut killed = None;
        self.processes.run_beside(name, command, |processes| {
            if killed.is_some() {
                return Ok(());
            }
            // A page that is late comes with the next look.
            let now = came(&admins).map_or(0, |now| now - earlier);
            if now >= when {
                processes.kill(asked)?;
                killed = Some(now);
            }
            Ok(())
        })?;
        killed.with_context(|| format!("{name} had ended before {when} requests had come"))
    }

    /// Asks for pages of the hosts until they come by this way.
    fn settle(&mut self, way: Way) -> Result<()> {
        for envoy in &self.envoys {
            let (caller, admin) = (envoy.listener, envoy.admin);
            let what = format!("the first choice of {}", way.name());
            self.processes.wait_until(&what, SETTLED, || {
                http::get(caller, "/metrics").ok()?;
                let chosen = || Reasons::read(admin).is_ok_and(|reasons| reasons.with_table());
                (!way.is_weir() || chosen()).then_some(())
            })?;
        }
        Ok(())
    }
}

/// Requests that have come to sidecars, by their own count.
fn came(admins: &[SocketAddr]) -> Result<usize> {
    let of = |admin: &SocketAddr| {
        let page = http::get(*admin, &format!("/stats?filter=^{CAME}$"))?;
        counted(&page.body).with_context(|| format!("{CAME} of the sidecar at {admin}"))
    };
    admins.iter().map(of).sum()
}

fn counted(page: &str) -> Option<usize> {
    let line = page.lines().find_map(|line| line.strip_prefix(CAME))?;
    line.strip_prefix(':')?.trim().parse().ok()
}

/// Where hosts listen, and publish where they do.
#[derive(Deserialize)]
struct Started {
    hosts: Vec<SocketAddr>,
    #[serde(default)]
    kv_events: Vec<SocketAddr>,
    #[serde(default)]
    kv_replays: Vec<SocketAddr>,
}

fn start_hosts(
    processes: &mut Processes,
    program: &Path,
    plan: &Plan,
    way: Way,
    request_log: &Path,
    folder: &Path,
) -> Result<Started> {
    let mut command = Command::new(program);
    command
        .args(["--hosts", &plan.hosts.to_string()])
        .args(["--capacity-blocks", &plan.capacity_blocks.to_string()])
        .args([
            "--prefill-tokens-per-second",
            &plan.prefill_tokens_per_second.to_string(),
        ])
        .args(["--speed-up", &plan.speed_up.to_string()])
        .arg("--request-log")
        .arg(request_log);
    if way.is_told() {
        let tokenizer = folder.join(TOKENIZER);
        command
            .arg("--kv-events")
            .arg("--kv-tokenizer")
            .arg(tokenizer);
    }
    let (_, started) = ports::start(processes, "weir-llm-host", command, folder)?;
    Ok(started)
}

/// The defaults, or what is beside them.
fn cluster(plan: &Plan, way: Way, started: &Started) -> Value {
    let mut cluster = weir::cluster(&started.hosts, &json!({"interval": plan.weir_poll}));
    if way.reads_prompts() {
        cluster["cache"] = Value::Null;
        cluster["scrape"]["metrics"] = json!({"engine": "vllm"});
    }
    if way == Way::Prompt {
        cluster["policy"] = json!({"assumed_cached": plan.assumed_cached});
    }
    if let ([publisher, ..], [replays, ..]) = (&*started.kv_events, &*started.kv_replays) {
        cluster["kv_events"] = json!({
            "port": publisher.port(),
            "replay_port": replays.port(),
            "model": "m",
            "tokenizer": TOKENIZER,
            "block_bytes": plan.block_bytes,
        });
    }
    if let Some(wait) = way.wait() {
        cluster["policy"] = json!({"overload": "dagor"});
        cluster["dagor"] = levels(wait, plan.speed_up);
    }
    if way == Way::Dynamic {
        cluster["policy"] = json!({
            "selection": "dynamic",
            "overload": "breaker",
            "breaker_queued_jobs": plan.breaker_queued,
        });
    }
    cluster
}

/// The defaults of `dagor` with this target, sped up.
fn levels(target: u32, speed_up: u32) -> Value {
    let sped_up = |ms: u32| format!("{}ms", ms / speed_up);
    json!({
        "target": sped_up(target),
        "settle": sped_up(120_000),
        "behind": sped_up(6_000),
        "window": sped_up(1_000),
        "half_life": sped_up(10_000),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_came_are_read_from_the_sidecars_page() {
        assert_eq!(counted("http.caller.downstream_rq_total: 42\n"), Some(42));
        assert_eq!(counted("http.caller.downstream_rq_total_x: 42\n"), None);
        assert_eq!(counted(""), None);
    }

    #[test]
    fn the_picker_is_told_what_hosts_have() {
        let capacity = Plan::new(false).capacity_blocks;
        let block = Plan::new(false).block_bytes;
        for told in [
            format!("lruCapacityPerServer: {capacity}\n"),
            format!("blockSize: {block}\n"),
        ] {
            assert!(EPP_CONFIG.contains(&told), "{EPP_CONFIG}");
        }
    }
}
