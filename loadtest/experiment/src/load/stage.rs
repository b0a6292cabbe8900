// SPDX-License-Identifier: Apache-2.0
//! The static stage: emulated hosts, callers' Envoys with a static configuration or told by weir-control.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};
use weir_mesh::Mesh;
use weir_stage::envoy::Envoy;
use weir_stage::processes::Processes;

use crate::callers::bootstrap;
use crate::callers::settings::Settings;
use crate::callers::{Sidecars, start_alone, start_told};
use crate::hosts;
use crate::load::ways::{Place, SELECTION, Way, levels, scrape};
use crate::load::{Args, Queue};
use crate::programs::Programs;
use crate::sampler::Sights;

pub(super) const HOSTS: usize = 6;
/// Emulated: a job holds one, asleep.
pub(super) const CORES: usize = 4;
pub(super) const CALLERS: Sidecars = Sidecars::single(2);
/// A first visit of a key costs a fetch of some milliseconds: the runs are the work.
const FETCH_BYTES_PER_SECOND: &str = "1G";
const FETCH_BASE_US: &str = "1000";
/// Room for all keys of all scenarios.
const CACHE_BYTES: &str = "8G";

/// Where to send, and where to look meanwhile.
pub(super) struct Stage {
    pub(super) callers: Vec<SocketAddr>,
    pub(super) sights: Sights,
    /// Ends with it.
    pub(super) mesh: Option<Mesh>,
}

/// Starts a way's processes. After the deadline a caller gives up.
pub(super) fn start(
    args: &Args,
    way: Way,
    deadline_ms: f64,
    processes: &mut Processes,
    folder: &Path,
) -> Result<Stage> {
    let programs = &args.programs.fleet;
    let host = || {
        let mut command = host(&programs.worker, args.queue);
        command.args(way.balancer().host_flags());
        command
    };
    let hosts = hosts::start(processes, HOSTS, host, folder)?;
    let mut stage = Hosts {
        programs,
        hosts: &hosts,
        deadline_ms,
        processes,
        folder,
    };
    let (callers, control) = match way {
        Way::Weir => {
            let (callers, admin) = stage.start_weir()?;
            (callers, Some(admin))
        }
        _ => (stage.start_envoys(way)?, None),
    };
    Ok(Stage {
        callers,
        sights: Sights::of(hosts, control),
        mesh: None,
    })
}

/// Hosts that are up, and what their callers are started with.
struct Hosts<'a> {
    programs: &'a Programs,
    hosts: &'a [SocketAddr],
    deadline_ms: f64,
    processes: &'a mut Processes,
    folder: &'a Path,
}

impl Hosts<'_> {
    /// Callers with the filter, and weir-control's admin page.
    fn start_weir(&mut self) -> Result<(Vec<SocketAddr>, SocketAddr)> {
        let settings = Settings {
            selection: SELECTION,
            overload: "dagor",
            // This policy does not look at it.
            breaker_queued_jobs: 100,
            dagor: levels(),
            scrape: scrape(),
            cores: CORES,
            timeout: &format!("{}ms", self.deadline_ms.ceil()),
        };
        let config = settings.config(self.hosts, self.hosts, &self.programs.filter);
        let (programs, folder) = (self.programs, self.folder);
        let (callers, control) = start_told(self.processes, programs, CALLERS, &config, folder)?;
        Ok((addresses(&callers), control.admin))
    }

    /// Callers that know everything, with the way's filters at them or at the hosts.
    fn start_envoys(&mut self, way: Way) -> Result<Vec<SocketAddr>> {
        let timeout = format!("{:.3}s", self.deadline_ms / 1e3);
        let (place, filters) = way.filters();
        let (before_hosts, of_callers) = match place {
            Place::Callers => (self.hosts.to_vec(), filters),
            Place::Hosts => {
                let filters = (&*timeout, &*filters);
                let (envoy, hosts, folder) = (&self.programs.envoy, self.hosts, self.folder);
                let before = hosts::start_before(self.processes, envoy, hosts, filters, folder)?;
                (addresses(&before), Vec::new())
            }
        };
        let bootstrap = |node: &str| {
            let balancer = way.balancer();
            let mut bootstrap =
                bootstrap::alone(node, balancer, &before_hosts, &timeout, &of_callers);
            if place == Place::Hosts {
                retry_refused(&mut bootstrap);
            }
            bootstrap
        };
        let (programs, folder) = (self.programs, self.folder);
        let callers = start_alone(self.processes, programs, CALLERS, bootstrap, folder)?;
        Ok(addresses(&callers))
    }
}

/// Where they listen.
fn addresses(envoys: &[Envoy]) -> Vec<SocketAddr> {
    envoys.iter().map(|envoy| envoy.listener).collect()
}

/// Callers try another host where one refuses, as the documentation of Envoy's `adaptive_concurrency` advises.
fn retry_refused(bootstrap: &mut Value) {
    let route = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/route_config\
                 /virtual_hosts/0/routes/0/route/retry_policy";
    if let Some(policy) = bootstrap.pointer_mut(route) {
        let on = policy["retry_on"].as_str().unwrap_or_default();
        policy["retry_on"] = format!("{on},retriable-status-codes").into();
        policy["retriable_status_codes"] = json!([503]);
    }
}

fn host(program: &Path, queue: Queue) -> Command {
    let mut command = Command::new(program);
    command
        .arg("--emulate")
        .args(["--cores", &CORES.to_string()])
        .args(host_flags(queue));
    command
}

/// The flags of an emulated host.
pub(super) fn host_flags(queue: Queue) -> Vec<String> {
    let mut flags = vec![
        "--cache-bytes",
        CACHE_BYTES,
        "--fetch-base-us",
        FETCH_BASE_US,
        "--fetch-bytes-per-second",
        FETCH_BYTES_PER_SECOND,
    ];
    if queue == Queue::Arrival {
        flags.extend(["--priority", "high=0", "--priority", "low=0"]);
    }
    flags.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callers::balancer::Balancer;

    #[test]
    fn refused_requests_are_tried_at_another_host_where_hosts_refuse() {
        let least = Balancer::LeastRequest;
        let mut bootstrap = bootstrap::alone("n", least, &[], "2s", &[]);
        retry_refused(&mut bootstrap);
        let text = bootstrap.to_string();
        assert!(
            text.contains("reset-before-request,retriable-status-codes"),
            "{text}"
        );
        assert!(text.contains(r#""retriable_status_codes":[503]"#), "{text}");
    }
}
