// SPDX-License-Identifier: Apache-2.0
//! How long a sidecar that starts chooses without knowing. Measured, never asserted:
//! `cargo test -p weir-control --test reloads -- --ignored --nocapture start::`.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::client::{Caller, keyed};
use crate::sidecar::Sidecar;
use crate::steady::is_informed;
use crate::tools;
use crate::world::{Plan, World};

const STARTS: usize = 20;

/// A sidecar that is not informed by then never will be.
const MOST: Duration = Duration::from_secs(60);

/// From `since` to the first request that a table decided. Each comes by a connection of its own, and so to a
/// worker of chance.
async fn until_informed(egress: SocketAddr, since: Instant) -> Duration {
    while since.elapsed() < MOST {
        let answer = Caller::new(egress).send("/", &keyed(0)).await;
        assert_eq!(answer.status, Some(200));
        if is_informed(&answer) {
            return since.elapsed();
        }
    }
    panic!("no informed choice in {MOST:?}");
}

fn show(what: &str, mut times: Vec<Duration>) {
    times.sort();
    // With 20 starts the 99th percentile is the slowest.
    let at = |share: f64| times[((times.len() as f64 * share).ceil() as usize).max(1) - 1];
    println!(
        "{what}, {} starts: p50 {} ms, p99 {} ms",
        times.len(),
        at(0.5).as_millis(),
        at(0.99).as_millis()
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures: run it alone on an idle machine"]
async fn a_sidecar_that_weir_control_configures() {
    let mut world = Plan::workers(3, &[]).start().await;
    let (mut ready, mut started) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let process = Instant::now();
        world.restart_sidecar().await;
        let since = Instant::now();
        ready.push(until_informed(world.egress, since).await);
        started.push(process.elapsed());
    }
    show("from ready to the first informed choice", ready);
    show("from the start of the process", started);
}

/// weir-control's cluster as a file that Envoy watches, with these endpoints.
fn endpoints(folder: &Path, control: Option<SocketAddr>) {
    let endpoint = |address: SocketAddr| {
        let socket = format!("{{ address: 127.0.0.1, port_value: {} }}", address.port());
        format!(
            "[{{ lb_endpoints: [{{ endpoint: {{ address: {{ socket_address: {socket} }} }} }}] }}]"
        )
    };
    let endpoints = control.map_or("[]".to_owned(), endpoint);
    let text = format!(
        "resources:\n- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n  \
         cluster_name: weir-control\n  endpoints: {endpoints}\n"
    );
    crate::module::replace(&folder.join("endpoints.yaml"), text.as_bytes());
}

async fn without_control(world: &World, folder: &Path) -> Sidecar {
    let port = |address: SocketAddr| format!("port_value: {} }}", address.port());
    let (hosts, filter) = (world.addresses(), tools::filter());
    let replaced = [
        ("id: sidecar-1", "id: sidecar-2"),
        ("port_value: 9901 }", "port_value: 0 }"),
        ("port_value: 15001 }", "port_value: 0 }"),
        ("port_value: 9001 }", &port(hosts[0])),
        ("port_value: 9002 }", &port(hosts[1])),
        ("/etc/weir/weir_filter.wasm", filter.to_str().unwrap()),
        (
            "\"control_cluster\"",
            "\"debug\": true, \"control_cluster\"",
        ),
    ];
    let config = tools::envoy_config("static/envoy.yaml", &replaced);
    let (before, control) = config.split_once("    - name: weir-control\n").unwrap();
    let (control, _) = control.split_once("      load_assignment:\n").unwrap();
    let control = control.replace("type: STATIC", "type: EDS");
    let file = folder.join("endpoints.yaml");
    let config = format!(
        "{before}    - name: weir-control\n{control}      eds_cluster_config:\n        eds_config:\n          \
         resource_api_version: V3\n          path_config_source: {{ path: {} }}\n",
        file.display()
    );
    Sidecar::start_with(&config, 2).await
}

/// As in a mesh, where the cluster of weir-control has its endpoints seconds after the sidecar has started.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures: run it alone on an idle machine"]
async fn a_sidecar_whose_control_cluster_comes_late() {
    let world = Plan::workers(2, &[]).start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut times = Vec::new();
    for start in 0..STARTS {
        endpoints(folder.path(), None);
        let sidecar = without_control(&world, folder.path()).await;
        let egress = sidecar.listener("egress").await;
        // Consul's first cluster had none for 4.5 s; a little more each time, so that the end falls anywhere
        // between two attempts.
        tokio::time::sleep(Duration::from_millis(4_500 + 100 * start as u64)).await;
        let answer = Caller::new(egress).send("/", &keyed(0)).await;
        assert_eq!((answer.status, &*answer.reason), (Some(200), "no_table"));
        endpoints(folder.path(), Some(world.xds));
        times.push(until_informed(egress, Instant::now()).await);
    }
    show(
        "from the endpoints of weir-control to the first informed choice",
        times,
    );
}
