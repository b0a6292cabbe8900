// SPDX-License-Identifier: Apache-2.0
use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::core::v3::{HealthStatus, TypedExtensionConfig};
use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_types::pb::envoy::config::route::v3::{RouteConfiguration, route::Action};
use envoy_types::pb::envoy::extensions::filters::http::dynamic_modules::v3::DynamicModuleFilter;
use envoy_types::pb::envoy::extensions::filters::http::wasm::v3::Wasm;
use envoy_types::pb::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
use envoy_types::pb::envoy::extensions::wasm::v3::PluginConfig;
use envoy_types::pb::google::protobuf::StringValue;
use prost::Name;
use serde_json::{Value, json};
use std::net::SocketAddr;
use weir_fleet::standalone::{Health, Standalone as _};

use super::config::{Delivery, Fallback};
use super::*;

const LEAST: &str = "
filter: { wasm: weir_filter.wasm }
listeners: [ { name: egress, address: '127.0.0.1:15001', cluster: rules } ]
";

fn written(yaml: &str) -> Written {
    serde_saphyr::from_str(yaml).unwrap()
}

fn config(yaml: &str) -> Config {
    written(yaml).check(&["rules", "search"]).unwrap()
}

fn standalone(yaml: &str) -> Standalone {
    Standalone::new(
        &config(yaml),
        Code::Path("f.wasm".to_owned()),
        ["rules", "search"],
    )
}

fn host(address: &str, health: Health) -> (SocketAddr, Health) {
    (address.parse().unwrap(), health)
}

fn rules(hosts: &[(SocketAddr, Health)]) -> [ClusterHosts; 1] {
    [ClusterHosts {
        name: "rules".to_owned(),
        hosts: hosts.to_vec(),
    }]
}

#[test]
fn defaults_are_the_documented_ones() {
    let config = config(LEAST);
    assert_eq!(config.delivery, Delivery::Inline);
    assert_eq!(config.fallback, Fallback::LeastRequest);
    assert_eq!(config.control_cluster, "weir-control");
    assert_eq!(config.max_requests, 100_000);
    assert_eq!(config.listeners[0].domains, ["*"]);
    assert_eq!(config.listeners[0].timeout.as_secs(), 300);
    assert_eq!(config.listeners[0].request_timeout.as_secs(), 300);
}

#[test]
fn a_wrong_value_is_refused_by_the_name_of_its_field() {
    let listener =
        |more: &str| format!("{{ name: egress, address: '127.0.0.1:1', cluster: rules, {more} }}");
    let with = |listeners: &str, more: &str| {
        format!("filter: {{ wasm: f.wasm }}\nlisteners: [ {listeners} ]\n{more}")
    };
    let one = listener("");
    let cases = [
        ("filter.wasm", format!("listeners: [ {one} ]")),
        ("listeners", with("", "")),
        (
            "filter.delivery",
            format!("filter: {{ wasm: f, delivery: post }}\nlisteners: [ {one} ]"),
        ),
        (
            "filter.native",
            format!("filter: {{ wasm: f, native: /f.so }}\nlisteners: [ {one} ]"),
        ),
        (
            "filter.native",
            format!("filter: {{ native: f.so }}\nlisteners: [ {one} ]"),
        ),
        (
            "filter.delivery",
            format!("filter: {{ native: /f.so, delivery: path }}\nlisteners: [ {one} ]"),
        ),
        (
            "filter.wasm",
            format!("filter: {{ wasm: f.wasm, delivery: path }}\nlisteners: [ {one} ]"),
        ),
        (
            // What looks after attempts has none then.
            "filter.config",
            format!(
                "filter: {{ wasm: f.wasm, config: {{ clusters: {{ rules: null }} }} }}\nlisteners: [ {one} ]"
            ),
        ),
        ("fallback", with(&one, "fallback: magic")),
        ("protocol", with(&one, "protocol: gopher")),
        ("control_cluster", with(&one, "control_cluster: rules")),
        ("max_requests", with(&one, "max_requests: 0")),
        ("connect_timeout", with(&one, "connect_timeout: 0s")),
        (
            "listeners[0].cluster",
            with(&listener("").replace("rules", "other"), ""),
        ),
        (
            "listeners[0].address",
            with(&listener("").replace("127.0.0.1:1", "here"), ""),
        ),
        ("listeners[0].timeout", with(&listener("timeout: soon"), "")),
        (
            "listeners[0].timeout",
            with(&listener("timeout: 99999999999999999999m"), ""),
        ),
        (
            "listeners[0].request_timeout",
            with(&listener("request_timeout: 0s"), ""),
        ),
        ("listeners[0].domains", with(&listener("domains: []"), "")),
        (
            "listeners[0].domains",
            with(&listener("domains: [a, a]"), ""),
        ),
        ("listeners[1].name", with(&format!("{one}, {one}"), "")),
        (
            "listeners[1].address",
            with(&format!("{one}, {}", one.replace("egress", "e")), ""),
        ),
    ];
    for (field, yaml) in cases {
        let (refused, reason) = written(&yaml).check(&["rules"]).expect_err(field);
        assert_eq!(refused, field, "{yaml}");
        assert!(!reason.is_empty());
    }
}

#[test]
fn an_unknown_field_is_refused() {
    let unknown = format!("{LEAST}\nlistener: []");
    assert!(serde_saphyr::from_str::<Written>(&unknown).is_err());
}

#[test]
fn every_type_is_served_and_only_hosts_change_only_endpoints() {
    let standalone = standalone(LEAST);
    let before = standalone.resources(&rules(&[host("127.0.0.1:1", Health::Up)]));
    let after = standalone.resources(&rules(&[host("127.0.0.1:2", Health::Up)]));
    assert_eq!(before.len(), 5);
    for (type_url, resources) in &before {
        assert_eq!(
            *type_url == types::ENDPOINTS,
            *resources != after[type_url],
            "{type_url}"
        );
    }
    assert_eq!(
        before[types::CLUSTER].keys().collect::<Vec<_>>(),
        ["rules", "search"]
    );
}

#[test]
fn the_same_content_has_the_same_version_after_a_restart_and_in_any_order() {
    let (one, two) = (
        host("127.0.0.1:1", Health::Up),
        host("127.0.0.1:2", Health::Down),
    );
    let before = standalone(LEAST).resources(&rules(&[one, two]));
    let after = standalone(LEAST).resources(&rules(&[two, one]));
    assert_eq!(before, after);
}

#[test]
fn a_host_that_is_down_is_unhealthy_and_one_that_drains_is_draining() {
    let hosts = [
        host("127.0.0.1:1", Health::Up),
        host("127.0.0.1:2", Health::Draining),
        host("[::1]:3", Health::Down),
    ];
    let resources = standalone(LEAST).resources(&rules(&hosts));
    let body = resources[types::ENDPOINTS]["rules"].body.clone();
    let assignment = ClusterLoadAssignment::decode(body).unwrap();
    let health: Vec<_> = assignment.endpoints[0]
        .lb_endpoints
        .iter()
        .map(|e| e.health_status())
        .collect();
    assert_eq!(
        health,
        [
            HealthStatus::Healthy,
            HealthStatus::Draining,
            HealthStatus::Unhealthy
        ]
    );
}

fn plugin(resources: &ResourcesByType, name: &str) -> PluginConfig {
    let body = resources[types::EXTENSION][name].body.clone();
    let extension = TypedExtensionConfig::decode(body).unwrap();
    let wasm = extension.typed_config.unwrap().value;
    Wasm::decode(&*wasm).unwrap().config.unwrap()
}

#[test]
fn plugin_configuration_is_merged_over_the_generated_one() {
    let yaml = LEAST.replace(
        "wasm: weir_filter.wasm",
        "wasm: f, config: { debug: true, clusters: { rules: { key: { header: x } }, search: null } }",
    );
    let plugin = extension::plugin_configuration(&config(&yaml), ["rules", "search"]);
    let expected: Value = json!({
        "control_cluster": "weir-control",
        "clusters": { "rules": { "table": "rules", "key": { "header": "x" } } },
        "debug": true,
    });
    assert_eq!(plugin, expected);
}

/// Without it Envoy would show the filter no body.
#[test]
fn where_keys_are_in_bodies_the_filter_is_shown_them() {
    for (key, is_shown) in [
        ("header: x", None),
        ("json: /id", Some(true)),
        ("prompt: {}", Some(true)),
    ] {
        let filter =
            format!("wasm: f, config: {{ clusters: {{ rules: {{ key: {{ {key} }} }} }} }}");
        let yaml = LEAST.replace("wasm: weir_filter.wasm", &filter);
        let resources = standalone(&yaml).resources(&rules(&[]));
        let shown = ["weir", "weir-attempt"].map(|name| {
            let plugin = plugin(&resources, name);
            plugin
                .allow_on_headers_stop_iteration
                .map(|shown| shown.value)
        });
        assert_eq!(shown, [is_shown, None], "{key}");
    }
}

#[test]
fn the_other_shell_is_a_file_that_is_there_with_the_same_configuration() {
    let yaml = LEAST.replace("wasm: weir_filter.wasm", "native: /etc/weir/f.so");
    let config = config(&yaml);
    let code = Code::load(&config, std::path::Path::new("/nowhere")).unwrap();
    assert_eq!(code, Code::Native("/etc/weir/f.so".to_owned()));
    let resources = Standalone::new(&config, code, ["rules"]).resources(&rules(&[]));
    let body = resources[types::EXTENSION]["weir"].body.clone();
    let extension = TypedExtensionConfig::decode(body).unwrap();
    let filter = extension.typed_config.unwrap();
    assert_eq!(filter.type_url, DynamicModuleFilter::type_url());
    let filter = DynamicModuleFilter::decode(&*filter.value).unwrap();
    let module = filter.dynamic_module_config.unwrap();
    assert!(module.do_not_close);
    let file = module.module.unwrap().specifier.unwrap();
    assert!(format!("{file:?}").contains("/etc/weir/f.so"), "{file:?}");
    let plugin = StringValue::decode(&*filter.filter_config.unwrap().value).unwrap();
    let expected = extension::plugin_configuration(&config, ["rules"]).to_string();
    assert_eq!(plugin.value, expected);
}

/// Hosts that give requests back need nothing more of their callers' sidecars.
#[test]
fn attempts_are_looked_after_in_the_vm_that_chooses_and_what_is_given_back_is_tried_again() {
    let resources = standalone(LEAST).resources(&rules(&[]));
    let [caller, attempt] = ["weir", "weir-attempt"].map(|name| plugin(&resources, name));
    assert_eq!(caller.vm, attempt.vm);
    assert_ne!(caller.root_id, attempt.root_id);
    let configuration = attempt.configuration.unwrap().value;
    let configuration = StringValue::decode(&*configuration).unwrap();
    let expected = json!({
        "role": "attempt",
        "clusters": { "rules": { "table": "rules" }, "search": { "table": "search" } },
    });
    assert_eq!(configuration.value, expected.to_string());

    let cluster = &resources[types::CLUSTER]["rules"];
    let cluster = Cluster::decode(cluster.body.clone()).unwrap();
    let options = &cluster.typed_extension_protocol_options[&HttpProtocolOptions::full_name()];
    let options = HttpProtocolOptions::decode(&*options.value).unwrap();
    assert_eq!(options.http_filters[0].name, "weir-attempt");

    let routes = &resources[types::ROUTE]["egress"];
    let routes = RouteConfiguration::decode(routes.body.clone()).unwrap();
    let Some(Action::Route(route)) = &routes.virtual_hosts[0].routes[0].action else {
        panic!("{routes:?}");
    };
    let retries = route.retry_policy.as_ref().unwrap();
    assert!(retries.retry_on.ends_with(",retriable-headers"));
    assert_eq!(retries.retriable_headers[0].name, "x-weir-bounced");
    assert_eq!(retries.num_retries.as_ref().unwrap().value, 4);
}

#[test]
fn code_travels_inline_or_as_a_path_and_must_be_a_module() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(LEAST);
    let missing = Code::load(&config, folder.path()).unwrap_err().to_string();
    assert!(missing.contains("weir_filter.wasm"), "{missing}");
    let file = folder.path().join("weir_filter.wasm");
    std::fs::write(&file, "text").unwrap();
    assert!(matches!(
        Code::load(&config, folder.path()),
        Err(CodeError::NotWasm(_))
    ));
    // Two custom sections, named `a` and `b`.
    let module = b"\0asm\x01\0\0\0\0\x02\x01a\0\x02\x01b".to_vec();
    for cut in (0..module.len()).filter(|cut| *cut != 12) {
        std::fs::write(&file, &module[..cut]).unwrap();
        let refused = Code::load(&config, folder.path());
        assert!(matches!(refused, Err(CodeError::NotWasm(_))), "{cut}");
    }
    std::fs::write(&file, &module).unwrap();
    let code = Code::load(&config, folder.path()).unwrap();
    assert_eq!(code, Code::Inline(module));
    let by_path = Config {
        delivery: Delivery::Path,
        ..config
    };
    let code = Code::load(&by_path, folder.path()).unwrap();
    assert_eq!(code, Code::Path("weir_filter.wasm".to_owned()));
    let extension = extension::extension(FILTER, code, "{}".to_owned());
    let extension = TypedExtensionConfig::decode(&*extension.encode_to_vec());
    assert_eq!(extension.unwrap().name, "weir");
}
