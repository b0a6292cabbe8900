// SPDX-License-Identifier: Apache-2.0
//! Another plugin configuration and another build of the filter, from a file that Envoy watches.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::client::Answer;
use crate::module::{created, put, replace};
use crate::sidecar::Sidecar;
use crate::steady::Steady;
use crate::tools::{self, shell};
use crate::world::{Plan, World};

/// Where the filter finds the key, and the file of its code.
fn write(folder: &Path, header: &str, module: &Path) {
    let rules = json!({"table": "rules", "key": {"header": header}}).to_string();
    let replaced = [
        ("/etc/weir/weir_filter.wasm", module.to_str().unwrap()),
        (r#"{ "table": "rules" }"#, &rules),
        (
            r#""control_cluster""#,
            r#""debug": true, "control_cluster""#,
        ),
    ];
    let text = tools::envoy_config("static/filter.yaml", &replaced);
    let text = match shell::native() {
        Some(_) => shell::exchanged(&text).to_string(),
        None => text,
    };
    replace(&folder.join("filter.yaml"), text.as_bytes());
}

/// envoy.yaml with the filter in a file of this folder, beside the sidecar of the world, and the first build's file.
async fn start(world: &World, folder: &Path) -> (Sidecar, PathBuf) {
    let first = put(folder, 0);
    write(folder, "x-weir-key", &first);
    let port = |address: std::net::SocketAddr| format!("port_value: {} }}", address.port());
    let (xds, hosts) = (port(world.xds), world.addresses());
    let replaced = [
        // Of the filter of attempts, which stays as it is.
        ("/etc/weir/weir_filter.wasm", first.to_str().unwrap()),
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
    let config = config.replace("/etc/weir", folder.to_str().unwrap());
    (Sidecar::start_with(&config, 2).await, first)
}

#[tokio::test(flavor = "multi_thread")]
async fn configurations_in_a_watched_file_follow_each_other() {
    let world = Plan::workers(2, &[]).start().await;
    let folder = tempfile::tempdir().unwrap();
    let (sidecar, first) = start(&world, folder.path()).await;
    let load = Steady::start(sidecar.listener("egress").await).await;
    for _ in 0..3 {
        write(folder.path(), "x-project", &first);
        load.until("no key", |answer| answer.reason == "no_key")
            .await;
        load.next(20).await;
        write(folder.path(), "x-weir-key", &first);
        load.until("a key", |answer| answer.reason == "known_cached")
            .await;
        load.next(20).await;
    }
    load.assert_informed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn builds_that_a_watched_file_names_follow_each_other() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    let world = Plan::workers(2, &[]).start().await;
    let folder = tempfile::tempdir().unwrap();
    let (sidecar, _) = start(&world, folder.path()).await;
    let load = Steady::start(sidecar.listener("egress").await).await;
    for number in 1..=3 {
        let before = created(&sidecar).await;
        let build = put(folder.path(), number);
        write(folder.path(), "x-weir-key", &build);
        let runs = async |sidecar: &Sidecar| match shell::native() {
            Some(_) => sidecar.maps(&build).then_some(()),
            None => (created(sidecar).await? >= before? + 3.0).then_some(()),
        };
        sidecar.wait("the new build", runs).await;
        if shell::native().is_some() {
            // Another file shares nothing with the one before: it serves without tables until its own have come.
            let by_cache = |answer: &Answer| answer.reason == "known_cached";
            load.until("a choice by cache", by_cache).await;
        }
        load.next(30).await;
    }
    match shell::native() {
        Some(_) => drop(load.assert_ok().await),
        None => load.assert_informed().await,
    }
    // One of each sidecar: the build before has none any more.
    world
        .until_control("weir_xds_streams{kind=\"weir\"}", |streams| streams == 2.0)
        .await;
}
