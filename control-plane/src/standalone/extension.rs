// SPDX-License-Identifier: Apache-2.0
//! ECDS: the filter's code and configuration.

use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::{self as core, data_source};
use envoy_types::pb::envoy::extensions::dynamic_modules::v3::DynamicModuleConfig;
use envoy_types::pb::envoy::extensions::filters::http::dynamic_modules::v3::DynamicModuleFilter;
use envoy_types::pb::envoy::extensions::filters::http::wasm::v3::Wasm;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpFilter, http_filter::ConfigType,
};
use envoy_types::pb::envoy::extensions::wasm::v3 as wasm;
use envoy_types::pb::google::protobuf::{Any, BoolValue, StringValue};
use prost::Name;
use serde_json::{Map, Value, json};
use weir_filter::config::Config as FilterConfig;

use super::code::Code;
use super::config::Config;
use super::protobuf;

/// Never changes: another id is another shared data with another stream owner.
const VM_ID: &str = "weir";

/// Least time between two reloads of a VM. Its requests are refused meanwhile, so it is short;
/// Envoy's default is a second.
const RELOAD_INTERVAL: Duration = Duration::from_millis(50);

/// What the filter is told: the configured clusters, with the file's `filter.config` merged over.
pub(super) fn plugin_configuration<'a>(
    config: &Config,
    clusters: impl IntoIterator<Item = &'a str>,
) -> Value {
    let table = |name: &str| (name.to_owned(), json!({ "table": name }));
    let clusters: Map<_, _> = clusters.into_iter().map(table).collect();
    let mut plugin = json!({ "control_cluster": config.control_cluster, "clusters": clusters });
    merge(&mut plugin, &Value::Object(config.plugin.clone()));
    plugin
}

/// What the filter is told where it looks after attempts: whose, as the other one. The rest comes from its VM.
pub(super) fn attempt_configuration(plugin: &Value) -> Value {
    json!({ "role": "attempt", "clusters": plugin["clusters"] })
}

/// A JSON merge patch (RFC 7396): objects are merged, `null` removes, anything else replaces.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else {
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// The same code and VM for every name, so that all of them know the same requests.
pub(super) fn extension(name: &str, code: Code, plugin: String) -> core::TypedExtensionConfig {
    let typed_config = match code {
        Code::Inline(bytes) => wasm(name, data_source::Specifier::InlineBytes(bytes), plugin),
        Code::Path(path) => wasm(name, data_source::Specifier::Filename(path), plugin),
        Code::Native(path) => native(name, path, plugin),
    };
    core::TypedExtensionConfig {
        name: name.to_owned(),
        typed_config,
    }
}

fn wasm(name: &str, code: data_source::Specifier, plugin: String) -> Option<Any> {
    let vm = wasm::VmConfig {
        vm_id: VM_ID.to_owned(),
        runtime: "envoy.wasm.runtime.v8".to_owned(),
        code: Some(local(code)),
        ..Default::default()
    };
    let backoff = core::BackoffStrategy {
        base_interval: protobuf::duration(RELOAD_INTERVAL),
        max_interval: None,
    };
    let reads_bodies = FilterConfig::parse(plugin.as_bytes()).is_ok_and(|it| it.reads_bodies());
    let config = wasm::PluginConfig {
        allow_on_headers_stop_iteration: reads_bodies.then_some(BoolValue { value: true }),
        name: name.to_owned(),
        root_id: name.to_owned(),
        configuration: protobuf::any(StringValue { value: plugin }),
        failure_policy: wasm::FailurePolicy::FailReload.into(),
        reload_config: Some(wasm::ReloadConfig {
            backoff: Some(backoff),
        }),
        vm: Some(wasm::plugin_config::Vm::VmConfig(vm)),
        ..Default::default()
    };
    protobuf::any(Wasm {
        config: Some(config),
    })
}

fn native(name: &str, path: String, plugin: String) -> Option<Any> {
    let module = DynamicModuleConfig {
        module: Some(local(data_source::Specifier::Filename(path))),
        // Its thread and what it knows outlive a configuration.
        do_not_close: true,
        ..Default::default()
    };
    protobuf::any(DynamicModuleFilter {
        dynamic_module_config: Some(module),
        filter_name: name.to_owned(),
        filter_config: protobuf::any(StringValue { value: plugin }),
        ..Default::default()
    })
}

/// Code that comes with the configuration, or is on the sidecar's machine.
fn local(code: data_source::Specifier) -> core::AsyncDataSource {
    let source = core::DataSource {
        specifier: Some(code),
        ..Default::default()
    };
    core::AsyncDataSource {
        specifier: Some(core::async_data_source::Specifier::Local(source)),
    }
}

/// A filter of the name that comes by ECDS: a change of its configuration or code then drains no listener and replaces
/// no cluster.
pub(super) fn discovered(name: &str) -> HttpFilter {
    let source = core::ExtensionConfigSource {
        config_source: protobuf::ads(),
        type_urls: vec![Wasm::type_url(), DynamicModuleFilter::type_url()],
        ..Default::default()
    };
    named(name, ConfigType::ConfigDiscovery(source))
}

/// A filter that is configured where it stands.
pub(super) fn filter(name: &str, config: Any) -> HttpFilter {
    named(name, ConfigType::TypedConfig(config))
}

fn named(name: &str, config: ConfigType) -> HttpFilter {
    HttpFilter {
        name: name.to_owned(),
        config_type: Some(config),
        ..Default::default()
    }
}
