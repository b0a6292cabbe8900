// SPDX-License-Identifier: Apache-2.0
//! Requests through the real Envoy Gateway: standalone, its resources from files, its Envoy a process beside it.
//!
//! ```text
//! registry ─> Envoy Gateway ─(module, clusters, routes)─> Envoy ─> hosts
//!                              weir-control ─(tables, by TLS)─^      │
//!                                   ^───────────(load, caches)───────┘
//! ```

mod stage;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use serde_json::json;
use tempfile::TempDir;
use weir_stage::apart;
use weir_stage::http::{self, Answer, Request};

use super::resource;
use crate::images;
use crate::needs::FILTER;
use crate::registry::Registry;
use stage::Stage;

pub(super) const NAME: &str = "requests_through_envoy_gateway_go_to_the_host_that_has_their_key";

/// Seconds after which it is ended.
const PATIENCE: &str = "600";

/// As the resources name them, and Envoy Gateway itself.
const NAMES: [&str; 2] = [
    "envoy-gateway.envoy-gateway-system.svc.cluster.local",
    "weir-control.weir-system.svc.cluster.local",
];

/// The Gateway's listener. Envoy Gateway's own ports are not free ones either, so it has a network of its own.
const GATEWAY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8888);

/// By which the filter names hosts.
const HEADER: &str = "x-gateway-destination-endpoint";

/// A metric of the filter with the label that proxy.yaml has Envoy make.
const COUNTED: &str = "weir_decisions_total{reason=\"known_cached\"}";

/// In each host's cache.
const KEYS: usize = 8;

fn keys(host: usize) -> Vec<String> {
    (0..KEYS).map(|number| format!("{host}-{number}")).collect()
}

fn ask(headers: &[(&str, &str)]) -> Option<Answer> {
    let request = Request {
        method: "GET",
        path: "/",
        headers,
        body: "",
    };
    http::send(GATEWAY.into(), &request).ok()
}

/// The answers to requests for all keys, if each came from the host that has it, whatever host its caller named.
fn of_right_hosts(hosts: [SocketAddr; 2]) -> Option<Vec<Answer>> {
    let right = |(host, key): (usize, String)| {
        let other = hosts[1 - host].to_string();
        let answer = ask(&[("x-weir-key", &key), (HEADER, &other)])?;
        let is_right = answer.header("x-weir-reason") == Some("known_cached")
            && answer.body.starts_with(&format!("{}\n", hosts[host]));
        is_right.then_some(answer)
    };
    let all = (0..2).flat_map(|host| keys(host).into_iter().map(move |key| (host, key)));
    all.map(right).collect()
}

pub(super) fn requests_go_to_the_host_that_has_their_key() {
    let Some(home) = apart::folder() else {
        let folder = TempDir::new().unwrap();
        let hosts = format!("127.0.0.1 localhost {}\n", NAMES.join(" "));
        fs::write(folder.path().join("hosts"), hosts).unwrap();
        let named = "mount --bind \"$HOME/hosts\" /etc/hosts\n";
        return apart::run(NAME, PATIENCE, named, folder.path()).unwrap();
    };
    let registry = Registry::start();
    let module = fs::read(FILTER.path()).unwrap();
    // The shipped policy with each image, and answers that tell who chose.
    let [compat, mut oci] = images::variants(&module).map(|(name, image)| {
        let mut policy = resource("extensionpolicy.yaml", "EnvoyExtensionPolicy");
        let wasm = &mut policy["spec"]["wasm"][0];
        let digest = image.manifest().digest();
        wasm["code"]["image"]["url"] = json!(registry.push(&image, name, &home));
        wasm["code"]["image"]["sha256"] = json!(digest.trim_start_matches("sha256:"));
        wasm["config"]["debug"] = json!(true);
        policy
    });
    let mut stage = Stage::start(home, [0, 1].map(keys));
    let hosts = [0, 1].map(|host: usize| stage.hosts[host].address);
    stage.apply(&compat);
    stage.start_envoy_gateway();

    // As it is shipped nobody is believed.
    let chosen = || {
        let answer = ask(&[("x-weir-key", "0-0")])?;
        (answer.header("x-weir-reason") == Some("no_key")).then_some(answer)
    };
    let answer = stage.until("a choice without a key", chosen);
    assert_eq!(answer.status, "200");
    assert!(!answer.body.contains("x-weir-key"), "{answer:?}");
    assert!(answer.body.contains(HEADER), "{answer:?}");

    // Both change while Envoy runs: the image, and whom the filter believes.
    oci["spec"]["wasm"][0]["config"]["trust"] = json!("any");
    stage.apply(&oci);
    stage.until("answers of the right hosts", || of_right_hosts(hosts));

    stage.apply(&resource("patchpolicy.yaml", "EnvoyPatchPolicy"));
    let patched = || {
        let answers = of_right_hosts(hosts)?;
        let has_none = |answer: &Answer| !answer.body.contains(HEADER);
        answers.iter().all(has_none).then_some(())
    };
    stage.until("the same without the header", patched);
    let metrics = stage.metrics();
    assert!(metrics.contains(COUNTED), "{metrics}");

    stage.processes.kill("weir-control").unwrap();
    let log = stage.log();
    let goes_on = || {
        of_right_hosts(hosts).expect("a request went elsewhere");
        stage::said(&log)
            .contains("the last tables serve")
            .then_some(())
    };
    stage.until("word of the filter that weir-control is away", goes_on);

    // What one refuses goes to the next one named.
    drop(stage.hosts.pop());
    for key in keys(1) {
        let answer = ask(&[("x-weir-key", &key)]).expect("no answer");
        assert_eq!(answer.status, "200", "{answer:?}");
        assert!(answer.body.starts_with(&format!("{}\n", hosts[0])));
    }
}
