// SPDX-License-Identifier: Apache-2.0
//! Envoys that the dynamic module was not tested with do not take it: it would leave all choices to them, without a word,
//! or end them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::tools::Temporary;
use crate::workspace::Workspace;

/// In Envoy's program, the first of its callbacks that the module does not use.
const UNUSED: &[u8] = b"\0envoy_dynamic_module_callback_access_logger_";
/// Lets the module into any Envoy.
const ANY: &str = "WEIR_NATIVE_ANY_ENVOY";

/// What an Envoy makes of a configuration that loads the module.
struct Verdict {
    takes: bool,
    said: String,
}

/// An older Envoy lacks a callback that the module uses.
pub(super) fn older(workspace: &Workspace, envoy: &Path, module: &Path) -> Result<()> {
    ensure!(module.is_file(), "{}: no such file", module.display());
    let folder = Temporary::new(&workspace.cache(), "untested")?;
    judge(&folder.0, envoy, module, false)?.is_refusal(&[
        "undefined symbol",
        // 1.37 asks the loader for the bare name next, and has the words of that alone.
        "libweir_native.so not found in any search path",
    ])
}

/// A later Envoy has other callbacks. None can be had: the pinned one plays it, of whose callbacks one has another name.
pub(super) fn later(workspace: &Workspace, envoy: &Path, module: &Path) -> Result<()> {
    let folder = Temporary::new(&workspace.cache(), "untested")?;
    let mut program = fs::read(envoy).with_context(|| envoy.display().to_string())?;
    let name = program.windows(UNUSED.len()).position(|at| at == UNUSED);
    let name = name.context("Envoy's program has no callbacks for access loggers")?;
    program[name + 1] = b'E';
    let later = folder.0.join("envoy");
    fs::write(&later, program)?;
    fs::set_permissions(&later, fs::metadata(envoy)?.permissions())?;
    let refused = judge(&folder.0, &later, module, false)?;
    refused.is_refusal(&["this Envoy is not the release that the module was tested with"])?;
    for (envoy, any) in [(&*later, true), (envoy, false)] {
        let Verdict { takes, said } = judge(&folder.0, envoy, module, any)?;
        ensure!(takes, "{}, {ANY}: {any}: {said}", envoy.display());
    }
    Ok(())
}

impl Verdict {
    /// With some of these words.
    fn is_refusal(&self, words: &[&str]) -> Result<()> {
        let Self { takes, said } = self;
        ensure!(
            !takes && words.iter().any(|words| said.contains(words)),
            "the dynamic module is to be refused ({}), and Envoy said:\n{said}",
            words.join(" or ")
        );
        Ok(())
    }
}

fn judge(folder: &Path, envoy: &Path, module: &Path, any: bool) -> Result<Verdict> {
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
    let file = folder.join("envoy.json");
    fs::write(&file, bootstrap.to_string())?;
    let mut command = Command::new(envoy);
    command
        .args(["--mode", "validate", "--disable-hot-restart", "-c"])
        .arg(&file)
        .env(
            "ENVOY_DYNAMIC_MODULES_SEARCH_PATH",
            module.parent().unwrap_or(module),
        );
    if any {
        command.env(ANY, "1");
    }
    let output = command
        .output()
        .with_context(|| envoy.display().to_string())?;
    Ok(Verdict {
        takes: output.status.success(),
        said: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
