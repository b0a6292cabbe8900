// SPDX-License-Identifier: Apache-2.0
//! The filter in the Envoys that users have beside the pinned one.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::test::summary::Outcome;
use crate::test::whole_envoys::{Shell, Suites};
use crate::tools::Temporary;
use crate::workspace::Workspace;
use crate::{build_filter, tools};

/// By their names among the tools, with the tests of what they do not have.
const OTHERS: [(&str, &[&str]); 4] = [
    // Custom tags of spans by format, which `tracing.yaml` has, came with 1.37.
    (
        "envoy-1.36",
        &["stats::reasons_are_in_metrics_access_log_and_spans"],
    ),
    ("envoy-1.37", &[]),
    ("envoy-1.38", &[]),
    ("envoy-1.39", &[]),
];

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let filter = build_filter::run(workspace)?;
    let native = build_filter::native_debug(workspace)?;
    let suites = Suites::build(workspace, &["envoy", "faults"])?;
    let mut rows = Vec::new();
    for (name, missing) in OTHERS {
        let envoy = tools::build(workspace, name)?;
        println!("== {name}");
        let select: Vec<&str> = missing.iter().flat_map(|name| ["--skip", name]).collect();
        let mut failed = suites.run(&envoy, (Shell::Wasm, &filter), &select);
        if let Err(error) = refuses(workspace, &envoy, &native) {
            eprintln!("{error:#}");
            failed.push("takes the dynamic module");
        }
        rows.push((name, missing, failed));
    }
    for (name, missing, failed) in &rows {
        let told = match failed.as_slice() {
            [] if missing.is_empty() => "all passed".to_owned(),
            [] => format!(
                "all passed but for what it does not have: {}",
                missing.join(", ")
            ),
            failed => format!("FAILED: {}", failed.join(", ")),
        };
        println!("{name:<12} {told}");
    }
    let failed = rows.iter().filter(|(.., failed)| !failed.is_empty());
    let failed: Vec<&str> = failed.map(|(name, ..)| *name).collect();
    ensure!(failed.is_empty(), "tests failed in {}", failed.join(", "));
    Ok(Outcome::Passed)
}

/// The dynamic module is for one release of Envoy. Another one that took it would leave all choices to itself, without a
/// word.
fn refuses(workspace: &Workspace, envoy: &Path, module: &Path) -> Result<()> {
    let filters = json!([
        { "name": "weir", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter",
            "dynamic_module_config": { "name": "weir_native" },
            "filter_name": "weir",
        } },
        { "name": "router", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
        } },
    ]);
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "x",
        "route_config": {},
        "http_filters": filters,
    });
    let bootstrap = json!({ "static_resources": { "listeners": [{
        "name": "x",
        "address": { "socket_address": { "address": "127.0.0.1", "port_value": 0 } },
        "filter_chains": [{ "filters": [{ "name": "x", "typed_config": manager }] }],
    }] } });
    let folder = Temporary::new(&workspace.cache(), "envoys")?;
    let file = folder.0.join("envoy.json");
    fs::write(&file, bootstrap.to_string())?;
    let output = Command::new(envoy)
        .args(["--mode", "validate", "--disable-hot-restart", "-c"])
        .arg(&file)
        .env(
            "ENVOY_DYNAMIC_MODULES_SEARCH_PATH",
            module.parent().unwrap_or(module),
        )
        .output()
        .with_context(|| envoy.display().to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        !output.status.success() && said.contains("undefined symbol"),
        "{} is to be refused, and Envoy said:\n{said}",
        module.display()
    );
    Ok(())
}
