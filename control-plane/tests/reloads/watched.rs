// SPDX-License-Identifier: Apache-2.0
//! Another plugin configuration and another build of the filter, from a file that Envoy watches.

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::module::{build, replace};
use crate::sidecar::Sidecar;
use crate::steady::Steady;
use crate::tools;
use crate::world::{Plan, World, sum};

/// Where the filter finds the key, and the name of its code.
fn write(folder: &Path, header: &str, module: &str) {
    let path = folder.join(module);
    let rules = json!({"table": "rules", "key": {"header": header}}).to_string();
    let replaced = [
        ("/etc/weir/weir_filter.wasm", path.to_str().unwrap()),
        (r#"{ "table": "rules" }"#, &rules),
        (
            r#""control_cluster""#,
            r#""debug": true, "control_cluster""#,
        ),
    ];
    let text = tools::envoy_config("static/filter.yaml", &replaced);
    replace(&folder.join("filter.yaml"), text.as_bytes());
}

/// envoy.yaml with the filter in a file, beside the sidecar of the world.
async fn start(world: &World) -> (Sidecar, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("0.wasm"), build(0)).unwrap();
    write(folder.path(), "x-weir-key", "0.wasm");
    let port = |address: std::net::SocketAddr| format!("port_value: {} }}", address.port());
    let (xds, hosts) = (port(world.xds), world.addresses());
    let filter = tools::filter();
    let replaced = [
        // Of the filter of attempts, which stays as it is.
        ("/etc/weir/weir_filter.wasm", filter.to_str().unwrap()),
        ("id: sidecar-1", "id: sidecar-2"),
        ("port_value: 9901 }", "port_value: 0 }"),
        ("port_value: 15001 }", "port_value: 0 }"),
        ("port_value: 18000 }", &xds),
        ("port_value: 9001 }", &port(hosts[0])),
        ("port_value: 9002 }", &port(hosts[1])),
    ];
    let config = tools::envoy_config("static/envoy.yaml", &replaced);
    let (before, rest) = config.split_once("                  # WEIR 2:").unwrap();
    let router = "                  - name: envoy.filters.http.router\n";
    let (_, after) = rest.split_once(router).unwrap();
    let watched = tools::envoy_config("static/watched-filter.yaml", &[]);
    let config = format!("{before}{watched}{router}{after}");
    let config = config.replace("/etc/weir", folder.path().to_str().unwrap());
    (Sidecar::start_with(&config, 2).await, folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn configurations_in_a_watched_file_follow_each_other() {
    let world = Plan::workers(2, &[]).start().await;
    let (sidecar, folder) = start(&world).await;
    let load = Steady::start(sidecar.listener("egress").await).await;
    for _ in 0..3 {
        write(folder.path(), "x-project", "0.wasm");
        load.until("no key", |answer| answer.reason == "no_key")
            .await;
        load.next(20).await;
        write(folder.path(), "x-weir-key", "0.wasm");
        load.until("a key", |answer| answer.reason == "known_cached")
            .await;
        load.next(20).await;
    }
    load.assert_informed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn builds_that_a_watched_file_names_follow_each_other() {
    let world = Plan::workers(2, &[]).start().await;
    let (sidecar, folder) = start(&world).await;
    let load = Steady::start(sidecar.listener("egress").await).await;
    for number in 1..=3 {
        let created = async |sidecar: &Sidecar| {
            sum(
                &sidecar.page("/stats/prometheus").await?,
                "envoy_wasm_envoy_wasm_runtime_v8_created",
            )
        };
        let before = created(&sidecar).await.unwrap();
        let name = format!("{number}.wasm");
        std::fs::write(folder.path().join(&name), build(number)).unwrap();
        write(folder.path(), "x-weir-key", &name);
        let all =
            async |sidecar: &Sidecar| created(sidecar).await.filter(|now| *now >= before + 3.0);
        sidecar.wait("VMs of the new build", all).await;
        load.next(30).await;
    }
    load.assert_informed().await;
}
