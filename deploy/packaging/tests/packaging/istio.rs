// SPDX-License-Identifier: Apache-2.0
//! envoy-config/istio: what its patches make of Istio's configuration is what Envoy takes.

use serde_json::{Value, json};

use crate::Test;
use crate::envoy;
use crate::needs::{ENVOY, FILTER};
use crate::patch;
use crate::yaml;

pub(crate) const TESTS: &[Test] = &[
    (
        "envoy_takes_what_the_envoy_filter_makes_of_istios_configuration",
        &[ENVOY, FILTER],
        envoy_takes_what_the_patches_make,
    ),
    (
        "envoy_refuses_the_cluster_without_what_the_destination_rule_says",
        &[ENVOY],
        envoy_refuses_the_cluster_without_the_destination_rule,
    ),
    (
        "a_typo_in_a_patch_of_istios_is_refused",
        &[ENVOY],
        a_typo_in_a_patch_is_refused,
    ),
    (
        "istios_resources_name_the_same_hosts_and_callers",
        &[],
        the_resources_agree,
    ),
    (
        "the_filter_takes_the_plugin_configurations_for_meshes",
        &[],
        the_filter_takes_the_plugin_configurations,
    ),
];

const FOLDER: &str = "envoy-config/istio";
const OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

fn resource(file: &str, kind: &str) -> Value {
    yaml::resource(&format!("{FOLDER}/{file}"), kind)
}

/// Istio's cluster for a port of a Service, as far as patches touch it.
fn outbound(name: &str, port: u32, localities: bool) -> Value {
    let mut cluster = json!({
        "name": format!("outbound|{port}||{name}"),
        "type": "EDS",
        "eds_cluster_config": {
            "eds_config": { "ads": {}, "resource_api_version": "V3" },
            "service_name": format!("outbound|{port}||{name}"),
        },
        "connect_timeout": "1s",
        "lb_policy": "LEAST_REQUEST",
        "common_lb_config": {},
        "typed_extension_protocol_options": { OPTIONS: {
            "@type": format!("type.googleapis.com/{OPTIONS}"),
            "explicit_http_config": { "http_protocol_options": {} },
        } },
    });
    if localities {
        cluster["common_lb_config"]["locality_weighted_lb_config"] = json!({});
    }
    cluster
}

fn sidecar(localities: bool) -> Value {
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "outbound",
        "route_config": { "name": "outbound" },
        "http_filters": [wasm(), {
            "name": "envoy.filters.http.router",
            "typed_config": { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" },
        }],
    });
    let listener = json!({
        "name": "virtualOutbound",
        "address": { "socket_address": { "address": "127.0.0.1", "port_value": 15001 } },
        "filter_chains": [{ "filters": [{
            "name": "envoy.filters.network.http_connection_manager",
            "typed_config": manager,
        }] }],
    });
    let clusters = vec![
        outbound("rules.default.svc.cluster.local", 8080, localities),
        outbound(
            "weir-control.weir-system.svc.cluster.local",
            18000,
            localities,
        ),
    ];
    envoy::bootstrap(clusters, vec![listener])
}

/// The filter as Istio makes it of a WasmPlugin (`convertToWasmPluginWrapper`), with the file that its agent would
/// have fetched.
fn wasm() -> Value {
    let plugin = &resource("wasmplugin.yaml", "WasmPlugin")["spec"];
    let file = std::env::var("WEIR_FILTER_WASM").unwrap_or_default();
    json!({ "name": "default.weir", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
        "config": {
            "name": "default.weir",
            "root_id": plugin["pluginName"],
            "failure_policy": "FAIL_OPEN",
            "vm_config": {
                "runtime": "envoy.wasm.runtime.v8",
                "code": { "local": { "filename": file } },
            },
            "configuration": {
                "@type": "type.googleapis.com/google.protobuf.StringValue",
                "value": plugin["pluginConfig"].to_string(),
            },
        },
    } })
}

/// Carries out the patches of the EnvoyFilter; each has to find something.
fn patched(mut bootstrap: Value, filter: &Value) -> Value {
    for patch in filter["spec"]["configPatches"].as_array().unwrap() {
        assert_eq!(patch["patch"]["operation"], "MERGE");
        let value = &patch["patch"]["value"];
        match patch["applyTo"].as_str().unwrap() {
            "CLUSTER" => {
                let wanted = &patch["match"]["cluster"];
                let service = wanted["service"].as_str().unwrap();
                let name = format!("outbound|{}||{service}", wanted["portNumber"]);
                let clusters = bootstrap["static_resources"]["clusters"].as_array_mut();
                let cluster = clusters
                    .unwrap()
                    .iter_mut()
                    .find(|cluster| cluster["name"] == *name);
                patch::merge(cluster.expect("no such cluster"), value);
            }
            "NETWORK_FILTER" => {
                let filter = &mut bootstrap["static_resources"]["listeners"][0]["filter_chains"][0]
                    ["filters"][0];
                assert_eq!(
                    filter["name"],
                    patch["match"]["listener"]["filterChain"]["filter"]["name"]
                );
                // Here Istio merges what is in the `Any`.
                patch::merge_any(&mut filter["typed_config"], &value["typed_config"]);
            }
            "BOOTSTRAP" => patch::merge(&mut bootstrap, value),
            other => panic!("no test knows {other}"),
        }
    }
    bootstrap
}

fn filter() -> Value {
    resource("envoyfilter.yaml", "EnvoyFilter")
}

fn envoy_takes_what_the_patches_make() {
    let result = patched(sidecar(false), &filter());
    let manager = &result["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"];
    assert_eq!(manager["request_timeout"], "300s");
    assert_eq!(manager["stat_prefix"], "outbound");
    envoy::accepts(&result);
}

fn envoy_refuses_the_cluster_without_the_destination_rule() {
    let rule = resource("destinationrule.yaml", "DestinationRule");
    let balancer = &rule["spec"]["trafficPolicy"]["loadBalancer"];
    assert_eq!(balancer["localityLbSetting"]["enabled"], false);
    let mut result = patched(sidecar(true), &filter());
    result["static_resources"]["listeners"] = json!([]);
    let refusal = envoy::refusal(&result).expect("Envoy takes both: the rule is not needed");
    assert!(
        refusal.contains("load_balancing_policy cannot be combined"),
        "{refusal}"
    );
}

fn a_typo_in_a_patch_is_refused() {
    let text = filter().to_string();
    for (right, typo) in [
        ("override_host_sources", "override_host_source"),
        ("connection_keepalive", "connection_keep_alive"),
        ("request_mutations", "request_mutation"),
        ("request_timeout", "request_time_out"),
        ("stats_tags", "stat_tags"),
    ] {
        assert!(text.contains(right));
        let wrong = serde_json::from_str(&text.replace(right, typo)).unwrap();
        let mut result = patched(sidecar(false), &wrong);
        // Without the module, which is not needed here.
        let manager =
            &mut result["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0];
        manager["typed_config"]["http_filters"]
            .as_array_mut()
            .unwrap()
            .remove(0);
        let refusal = envoy::refusal(&result).unwrap_or_else(|| panic!("{typo} was let through"));
        assert!(refusal.contains(typo), "{refusal}");
    }
}

/// A name that is written in one file and misspelt in another would leave Weir out in silence.
fn the_resources_agree() {
    let filter = filter();
    let plugin = resource("wasmplugin.yaml", "WasmPlugin");
    let rule = resource("destinationrule.yaml", "DestinationRule");
    let service = resource("virtualservice.yaml", "VirtualService");
    let host = &rule["spec"]["host"];
    let route = &service["spec"]["http"][0]["route"][0]["destination"];
    assert_eq!(*host, service["spec"]["hosts"][0]);
    assert_eq!(*host, route["host"]);
    let cluster = &filter["spec"]["configPatches"][0]["match"]["cluster"];
    assert_eq!(*host, cluster["service"]);
    let outbound = |cluster: &Value| {
        let service = cluster["service"].as_str().unwrap();
        format!("outbound|{}||{service}", cluster["portNumber"])
    };
    let config = &plugin["spec"]["pluginConfig"];
    assert!(config["clusters"].get(outbound(cluster)).is_some());
    let control = &filter["spec"]["configPatches"][1]["match"]["cluster"];
    assert_eq!(config["control_cluster"], outbound(control));
    assert_eq!(
        plugin["spec"]["selector"]["matchLabels"],
        filter["spec"]["workloadSelector"]["labels"]
    );
}

fn the_filter_takes_the_plugin_configurations() {
    let gateway = yaml::resource(
        "envoy-config/envoy-gateway/extensionpolicy.yaml",
        "EnvoyExtensionPolicy",
    );
    let istio = resource("wasmplugin.yaml", "WasmPlugin");
    for config in [
        &istio["spec"]["pluginConfig"],
        &gateway["spec"]["wasm"][0]["config"],
    ] {
        weir_filter::config::Config::parse(config.to_string().as_bytes()).unwrap();
    }
}
