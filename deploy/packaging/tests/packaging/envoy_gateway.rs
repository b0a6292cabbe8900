// SPDX-License-Identifier: Apache-2.0
//! envoy-config/envoy-gateway: what its patches make of Envoy Gateway's configuration is what Envoy takes.

mod live;

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Test;
use crate::certificate;
use crate::envoy;
use crate::needs::{CRANE, ENVOY, ENVOY_GATEWAY, FILTER, Need, PROGRAMS};
use crate::patch;
use crate::yaml;

pub(crate) const TESTS: &[Test] = &[
    (
        "envoy_takes_what_the_patches_make_of_envoy_gateways_configuration",
        &[ENVOY],
        envoy_takes_what_the_patches_make,
    ),
    (
        "a_typo_in_a_patch_of_envoy_gateways_is_refused",
        &[ENVOY],
        a_typo_in_a_patch_is_refused,
    ),
    (
        "envoy_gateways_resources_name_the_same_things",
        &[],
        the_resources_agree,
    ),
    (
        live::NAME,
        &[
            ENVOY_GATEWAY,
            ENVOY,
            FILTER,
            PROGRAMS,
            CRANE,
            Need::UserNamespace,
        ],
        live::requests_go_to_the_host_that_has_their_key,
    ),
];

const CLUSTER: &str = "httproute/default/rules/rule/0";

fn resource(file: &str, kind: &str) -> Value {
    yaml::resource(&format!("envoy-config/envoy-gateway/{file}"), kind)
}

/// Envoy Gateway's bootstrap (`bootstrap.yaml.tpl` of 1.9.1), as far as patches touch it, with the cluster that it
/// makes of a rule and a BackendTrafficPolicy with `endpointOverride`.
fn proxy() -> Value {
    let policy = |name: &str, kind: &str, value: Value| {
        let mut config = json!({ "@type": format!("type.googleapis.com/envoy.extensions.load_balancing_policies.{kind}") });
        patch::merge(&mut config, &value);
        json!({ "policies": [{ "typed_extension_config": {
            "name": format!("envoy.load_balancing_policies.{name}"),
            "typed_config": config,
        } }] })
    };
    let traffic = resource("trafficpolicy.yaml", "BackendTrafficPolicy");
    let source = &traffic["spec"]["loadBalancer"]["endpointOverride"]["extractFrom"][0];
    let fallback = policy("least_request", "least_request.v3.LeastRequest", json!({}));
    let cluster = json!({
        "name": CLUSTER,
        "type": "EDS",
        "eds_cluster_config": { "eds_config": { "ads": {}, "resource_api_version": "V3" }, "service_name": CLUSTER },
        "common_lb_config": {},
        "load_balancing_policy": policy("override_host", "override_host.v3.OverrideHost", json!({
            "override_host_sources": [{ "header": source["header"] }],
            "fallback_policy": fallback,
        })),
    });
    let mut bootstrap = envoy::bootstrap(vec![cluster], Vec::new());
    bootstrap["stats_config"] = json!({
        "use_all_default_tags": true,
        "stats_tags": [{ "tag_name": "from_zone", "regex": r"\.zone(\.(([^\.]+)\.))" }],
    });
    bootstrap
}

/// Carries out the patches of both resources; a place that is not there is an error.
fn patched(proxy_patches: &Value, cluster_patches: &Value) -> Value {
    let mut bootstrap = proxy();
    for operation in proxy_patches["spec"]["bootstrap"]["jsonPatches"]
        .as_array()
        .unwrap()
    {
        carry_out(&mut bootstrap, operation);
    }
    for patch in cluster_patches["spec"]["jsonPatches"].as_array().unwrap() {
        assert_eq!(
            patch["type"],
            "type.googleapis.com/envoy.config.cluster.v3.Cluster"
        );
        let clusters = bootstrap["static_resources"]["clusters"]
            .as_array_mut()
            .unwrap();
        let cluster = clusters
            .iter_mut()
            .find(|cluster| cluster["name"] == patch["name"]);
        carry_out(cluster.expect("no such cluster"), &patch["operation"]);
    }
    bootstrap
}

fn carry_out(document: &mut Value, operation: &Value) {
    assert_eq!(operation["op"], "add");
    patch::add(
        document,
        operation["path"].as_str().unwrap(),
        &operation["value"],
    )
    .unwrap();
}

/// With this folder where pods have certificates mounted.
fn placed(folder: &Path, config: &Value) -> Value {
    let mut text = config.to_string();
    for mounted in ["/etc/weir/", "/etc/weir-tls/"] {
        text = text.replace(mounted, &format!("{}/", folder.display()));
    }
    serde_json::from_str(&text).unwrap()
}

fn with_certificates(folder: &TempDir, config: &Value) -> Value {
    certificate::write(folder.path(), ["tls.crt", "tls.key", "ca.crt"]);
    placed(folder.path(), config)
}

fn envoy_takes_what_the_patches_make() {
    let folder = TempDir::new().unwrap();
    let result = patched(
        &resource("proxy.yaml", "EnvoyProxy"),
        &resource("patchpolicy.yaml", "EnvoyPatchPolicy"),
    );
    assert_eq!(
        result["stats_config"]["stats_tags"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    envoy::accepts(&with_certificates(&folder, &result));
}

fn a_typo_in_a_patch_is_refused() {
    let folder = TempDir::new().unwrap();
    let proxy = resource("proxy.yaml", "EnvoyProxy").to_string();
    let policy = resource("patchpolicy.yaml", "EnvoyPatchPolicy").to_string();
    for (right, typo) in [
        ("connection_keepalive", "connection_keep_alive"),
        ("trusted_ca", "trust_ca"),
        ("request_mutations", "request_mutation"),
    ] {
        assert!(proxy.contains(right) || policy.contains(right));
        let wrong = |text: &str| serde_json::from_str(&text.replace(right, typo)).unwrap();
        let result = patched(&wrong(&proxy), &wrong(&policy));
        let refusal = envoy::refusal(&with_certificates(&folder, &result));
        let refusal = refusal.unwrap_or_else(|| panic!("{typo} was let through"));
        assert!(refusal.contains(typo), "{refusal}");
    }
}

/// A name that is written in one file and misspelt in another would leave Weir out in silence.
fn the_resources_agree() {
    let extension = resource("extensionpolicy.yaml", "EnvoyExtensionPolicy");
    let patches = resource("patchpolicy.yaml", "EnvoyPatchPolicy");
    let proxy = resource("proxy.yaml", "EnvoyProxy");
    let traffic = resource("trafficpolicy.yaml", "BackendTrafficPolicy");
    let config = &extension["spec"]["wasm"][0]["config"];
    assert!(config["clusters"].get(CLUSTER).is_some());
    assert_eq!(patches["spec"]["jsonPatches"][0]["name"], CLUSTER);
    let control = &proxy["spec"]["bootstrap"]["jsonPatches"][0]["value"]["name"];
    assert_eq!(config["control_cluster"], *control);
    let source = &traffic["spec"]["loadBalancer"]["endpointOverride"]["extractFrom"][0]["header"];
    assert!(
        patches
            .to_string()
            .contains(&format!("\"remove\":{source}"))
    );
}
