// SPDX-License-Identifier: Apache-2.0
//! Envoy's own word on a configuration.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::needs::ENVOY;

/// What Envoy says against a bootstrap; nothing if it is good.
pub(crate) fn refusal(bootstrap: &Value) -> Option<String> {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("envoy.json");
    fs::write(&file, bootstrap.to_string()).unwrap();
    let output = ENVOY
        .command()
        .args(["--mode", "validate", "--disable-hot-restart", "-c"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(said)
}

#[track_caller]
pub(crate) fn accepts(bootstrap: &Value) {
    if let Some(refusal) = refusal(bootstrap) {
        panic!("{refusal}\n{bootstrap:#}");
    }
}

/// A bootstrap with these clusters and listeners, and what serves `"ads": {}` in them.
pub(crate) fn bootstrap(clusters: Vec<Value>, listeners: Vec<Value>) -> Value {
    let mut clusters = clusters;
    clusters.push(json!({
        "name": "xds",
        "type": "STATIC",
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": { "http2_protocol_options": {} },
            },
        },
        "load_assignment": { "cluster_name": "xds" },
    }));
    json!({
        "node": { "id": "x", "cluster": "x" },
        "dynamic_resources": { "ads_config": {
            "api_type": "GRPC",
            "transport_api_version": "V3",
            "grpc_services": [{ "envoy_grpc": { "cluster_name": "xds" } }],
        } },
        "static_resources": { "clusters": clusters, "listeners": listeners },
    })
}
