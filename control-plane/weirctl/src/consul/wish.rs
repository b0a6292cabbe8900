// SPDX-License-Identifier: Apache-2.0
//! What the command line asks for.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use weir_consul::{Control, Datacenter, Module, Weir};

use crate::flags::consul::{Filter, Names};

/// What is to stand in the entries.
pub(super) fn weir(names: &Names, filter: &Filter) -> Result<Weir> {
    let mut settings = match &filter.settings {
        Some(file) => {
            let name = file.display();
            let text = fs::read(file).with_context(|| format!("--settings {name}"))?;
            serde_json::from_slice(&text).with_context(|| format!("--settings {name}"))?
        }
        None => json!({}),
    };
    if let (Some(trust), Some(fields)) = (filter.trust, settings.as_object_mut()) {
        fields.insert("trust".to_owned(), serde_json::to_value(trust)?);
    }
    Ok(named(names, module(filter)?, settings))
}

/// For what is to go, which filter it was does not matter.
pub(super) fn any(names: &Names) -> Weir {
    named(names, Module::File(String::new()), json!({}))
}

fn named(names: &Names, module: Module, settings: Value) -> Weir {
    let control = match &names.control_cluster {
        Some(cluster) => Control::Cluster(cluster.clone()),
        None => Control::Service(names.control_service.clone()),
    };
    Weir {
        services: names.service.iter().cloned().collect(),
        callers: names.caller.iter().cloned().collect(),
        control,
        module,
        settings,
    }
}

fn module(filter: &Filter) -> Result<Module> {
    let is_url = ["http://", "https://"]
        .iter()
        .any(|scheme| filter.module.starts_with(scheme));
    match (is_url, &filter.module_service, &filter.module_sha256) {
        (true, Some(service), Some(sha256)) => Ok(Module::Remote {
            service: service.clone(),
            url: filter.module.clone(),
            sha256: sha256.to_lowercase(),
        }),
        (true, ..) => bail!(
            "--module is a URL: name the service of the mesh that has it (--module-service), and its --module-sha256"
        ),
        (false, None, None) => {
            ensure!(
                filter.module.starts_with('/'),
                "--module {:?} is neither a URL nor an absolute path",
                filter.module
            );
            Ok(Module::File(filter.module.clone()))
        }
        (false, ..) => {
            bail!("--module is a path: --module-service and --module-sha256 are of a URL")
        }
    }
}

/// The filter itself says whether it would take its configuration: in a sidecar nobody reads what it says.
pub(super) fn tried(weir: &Weir, datacenter: &Datacenter) -> Result<()> {
    let text = weir.configuration(datacenter).to_string();
    weir_filter::config::Config::parse(text.as_bytes()).context("--settings")?;
    Ok(())
}
