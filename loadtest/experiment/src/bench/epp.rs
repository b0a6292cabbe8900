// SPDX-License-Identifier: Apache-2.0
//! The endpoint picker of the Kubernetes inference gateway, as a process without a cluster.
//!
//! ```text
//!  sidecar ── ext_proc: headers and bodies ──> EPP ── scrapes /metrics ──> hosts
//!                                               └──── reads pods ──> a Kubernetes API of ours
//! ```

mod kubernetes;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use weir_mesh::Ports;
use weir_stage::http;
use weir_stage::processes::Processes;
use weir_stage::usage::Process;

use crate::bench::epp::kubernetes::Kubernetes;
use crate::sidecar::filters::Sent;
use crate::sidecar::{bootstrap, clusters, filters};

/// It says what it knows of its pods every 5 s.
const READY: Duration = Duration::from_secs(30);

/// One pod of one Kubernetes API has at most so many ports.
pub(crate) const MOST_HOSTS: usize = 8;

/// The configuration that its Helm chart installs.
pub(crate) const CHART_CONFIG: &str = include_str!("epp/chart.yaml");

/// An endpoint picker that knows its hosts. It needs the value to live as long as it is used.
pub(crate) struct Epp {
    /// For what it costs.
    pub(crate) process: Process,
    /// Where sidecars ask.
    pub(crate) grpc: SocketAddr,
    _ports: Ports,
    _kubernetes: Kubernetes,
}

/// Starts it with this configuration (`epp.yaml`) and these flags, and waits until it has found all hosts, which
/// are on 127.0.0.1 and must answer `/metrics`. Only one at a time among `processes`.
pub(crate) fn start(
    processes: &mut Processes,
    program: &Path,
    config: &str,
    flags: &[String],
    hosts: &[SocketAddr],
    folder: &Path,
) -> Result<Epp> {
    ensure!(
        (1..=MOST_HOSTS).contains(&hosts.len()),
        "the endpoint picker takes 1 to {MOST_HOSTS} hosts, not {}",
        hosts.len()
    );
    let local = |host: &SocketAddr| host.ip() == Ipv4Addr::LOCALHOST;
    ensure!(hosts.iter().all(local), "a host is not on 127.0.0.1");
    let kubernetes = Kubernetes::start()?;
    let kubeconfig = folder.join("epp.kubeconfig");
    write(&kubeconfig, &kubernetes.kubeconfig().to_string())?;
    let config_file = folder.join("epp.yaml");
    write(&config_file, config)?;
    // It cannot be told to take free ports by itself.
    let mut ports = Ports::of_this_process();
    let [grpc, health, metrics] = [ports.take()?, ports.take()?, ports.take()?];
    let mut command = Command::new(program);
    command
        .env("KUBECONFIG", &kubeconfig)
        .env("POD_NAME", "epp-abc-def")
        .env("NAMESPACE", kubernetes::NAMESPACE)
        .args(arguments(hosts, [grpc, health, metrics]))
        .args(flags)
        .arg("--config-file")
        .arg(&config_file);
    let process = processes.start("epp", command)?;
    processes.wait_until("the endpoint picker's hosts", READY, || {
        let page = http::get(loopback(metrics), "/metrics").ok()?;
        (ready_hosts(&page.body)? == hosts.len()).then_some(())
    })?;
    Ok(Epp {
        process,
        grpc: loopback(grpc),
        _ports: ports,
        _kubernetes: kubernetes,
    })
}

/// A sidecar whose hosts the picker at `epp` names, as the inference gateway sets Envoy up. What it can be asked nothing of
/// fails (the gateway's default), or, where it `fails_open`, goes to any host.
pub(crate) fn sidecar(
    node: &str,
    hosts: &[SocketAddr],
    epp: SocketAddr,
    fails_open: bool,
) -> Value {
    let mut filter = filters::ext_proc("epp", Sent::Everything);
    filter["typed_config"]["failure_mode_allow"] = fails_open.into();
    let clusters = vec![clusters::named(hosts), clusters::grpc("epp", epp)];
    bootstrap(node, vec![filter], clusters)
}

fn arguments(hosts: &[SocketAddr], [grpc, health, metrics]: [u16; 3]) -> Vec<String> {
    let ports: Vec<String> = hosts.iter().map(|host| host.port().to_string()).collect();
    let flags = [
        ("endpoint-selector", kubernetes::SELECTOR.to_owned()),
        ("endpoint-target-ports", ports.join(",")),
        ("grpc-port", grpc.to_string()),
        ("grpc-health-port", health.to_string()),
        ("metrics-port", metrics.to_string()),
        ("metrics-endpoint-auth", "false".to_owned()),
        ("secure-serving", "false".to_owned()),
        ("tracing", "false".to_owned()),
        ("enable-pprof", "false".to_owned()),
        ("health-checking", "true".to_owned()),
        ("v", "1".to_owned()),
    ];
    let flag = |(name, value): (&str, String)| format!("--{name}={value}");
    flags.into_iter().map(flag).collect()
}

/// How many hosts it has found, by its metrics.
fn ready_hosts(page: &str) -> Option<usize> {
    let hosts = weir_exposition::sum(page, "inference_pool_ready_pods", &[])?;
    Some(hosts as usize)
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> [SocketAddr; 2] {
        [loopback(9001), loopback(9002)]
    }

    #[test]
    fn every_host_is_a_port_of_the_one_pod() {
        let arguments = arguments(&hosts(), [1, 2, 3]);
        for flag in ["--endpoint-target-ports=9001,9002", "--grpc-port=1"] {
            assert!(arguments.iter().any(|said| said == flag), "{arguments:?}");
        }
    }

    #[test]
    fn the_picker_is_sent_bodies_in_a_stream_and_its_header_names_the_host() {
        let bootstrap = sidecar("s", &hosts(), loopback(7), false);
        let resources = &bootstrap["static_resources"];
        let filters = resources["listeners"][0].pointer(
            "/filter_chains/0/filters/0/typed_config/http_filters/0/typed_config/processing_mode",
        );
        let mode = filters.unwrap();
        assert_eq!(mode["request_body_mode"], "FULL_DUPLEX_STREAMED");
        assert_eq!(mode["response_body_mode"], "FULL_DUPLEX_STREAMED");
        let policy = &resources["clusters"][0]["load_balancing_policy"]["policies"][0];
        let source = policy.pointer("/typed_extension_config/typed_config/override_host_sources/0");
        assert_eq!(source.unwrap()["header"], "x-gateway-destination-endpoint");
    }

    #[test]
    fn its_hosts_are_read_from_its_metrics() {
        let page =
            "# TYPE inference_pool_ready_pods gauge\ninference_pool_ready_pods{name=\"\"} 2\n";
        assert_eq!(ready_hosts(page), Some(2));
        assert_eq!(ready_hosts("other 1\n"), None);
    }
}
