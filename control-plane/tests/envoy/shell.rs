// SPDX-License-Identifier: Apache-2.0
//! The filter's two shells: every test of the module of WebAssembly is one of the dynamic module where
//! `WEIR_FILTER_NATIVE` names that.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

const WASM: &str = "envoy.extensions.filters.http.wasm.v3.Wasm";
const NATIVE: &str = "envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter";
/// Metrics have the other shell's names with it.
const NAMES: &str = "envoy.reloadable_features.dynamic_modules_strip_custom_stat_prefix";

/// The dynamic module, where that is the one to test.
pub(crate) fn native() -> Option<PathBuf> {
    std::env::var_os("WEIR_FILTER_NATIVE").map(PathBuf::from)
}

/// What the filter has counted so far is in Envoy's statistics: the dynamic module tells it on its ticks.
pub(crate) async fn counted() {
    if native().is_some() {
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// The field of weir-control's `standalone.filter` that names this file.
pub(crate) fn field(filter: &Path) -> &'static str {
    match filter.extension().is_some_and(|kind| kind == "so") {
        true => "native",
        false => "wasm",
    }
}

/// Envoy's configuration for the shell that is tested, and options with it.
pub(crate) fn envoy(config: &str) -> (String, Vec<String>) {
    if native().is_none() {
        return (config.to_owned(), Vec::new());
    }
    let mut config = exchanged(config);
    config["layered_runtime"] =
        json!({"layers": [{"name": "static", "static_layer": {NAMES: true}}]});
    // The module cannot ask Envoy for it.
    let node = config["node"]["id"].as_str().unwrap_or_default().to_owned();
    (config.to_string(), vec!["--service-node".to_owned(), node])
}

/// YAML with the dynamic module where it loads one by the other shell's filter.
pub(crate) fn exchanged(text: &str) -> Value {
    let mut value = serde_saphyr::from_str(text).unwrap();
    exchange(&mut value);
    value
}

/// Puts the dynamic module where a configuration loads one by the other shell's filter, or says that one may come.
fn exchange(value: &mut Value) {
    match value {
        Value::String(text) if *text == type_of(WASM) => *text = type_of(NATIVE),
        Value::Array(values) => values.iter_mut().for_each(exchange),
        Value::Object(fields) => match filter(fields) {
            Some(native) => *value = native,
            None => fields.values_mut().for_each(exchange),
        },
        _ => {}
    }
}

fn filter(fields: &Map<String, Value>) -> Option<Value> {
    fields
        .get("@type")?
        .as_str()?
        .ends_with(WASM)
        .then_some(())?;
    let config = fields.get("config")?;
    let file = &config["vm_config"]["code"]["local"]["filename"];
    (field(Path::new(file.as_str()?)) == "native").then(|| {
        json!({
            "@type": type_of(NATIVE),
            "dynamic_module_config": {"module": {"local": {"filename": file}}, "do_not_close": true},
            "filter_name": config["name"],
            "filter_config": config["configuration"],
        })
    })
}

fn type_of(message: &str) -> String {
    format!("type.googleapis.com/{message}")
}
