// SPDX-License-Identifier: Apache-2.0
//! A weir-control with TLS of its own, which sidecars reach over a static cluster instead of the mesh.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use weir_consul::{STATIC_CONTROL, StaticCluster};

use crate::caller::Caller;
use crate::control::{self, Control};
use crate::mesh::Mesh;
use crate::network::Place;
use crate::plan::Plan;
use crate::sidecar;

/// Its process, and Consul's name of the callers that use it.
const CONTROL: &str = "weir-control-tls";
const CALLER: &str = "static-caller";

/// PEM files by which weir-control, whose name is `weir-control`, and a sidecar know each other.
#[derive(Debug, Clone)]
pub struct Certificates {
    /// Of the authority of both.
    pub authority: PathBuf,
    /// weir-control's certificate and key.
    pub control: (PathBuf, PathBuf),
    /// The sidecar's certificate and key.
    pub sidecar: (PathBuf, PathBuf),
}

impl Mesh {
    /// A second weir-control, outside of the mesh and with TLS of its own, and a caller of another service whose
    /// sidecar asks it.
    ///
    /// # Errors
    /// A process could not be started, or died.
    pub fn add_static_caller(&mut self, certificates: &Certificates) -> Result<Caller> {
        let control = self.start_static_control(certificates)?;
        self.let_choose(
            CALLER,
            weir_consul::Control::Cluster(STATIC_CONTROL.to_owned()),
            Value::Null,
        )?;
        let (certificate, key) = &certificates.sidecar;
        let cluster = StaticCluster {
            address: control.xds,
            ca: text(&certificates.authority)?,
            certificate: text(certificate)?,
            key: text(key)?,
        };
        let caller = self.start_caller(CALLER, Some(&cluster))?;
        sidecar::wait(&mut self.processes, &caller.name, caller.admin)?;
        self.describe()?;
        Ok(caller)
    }

    fn start_static_control(&mut self, certificates: &Certificates) -> Result<Control> {
        let place = Place::loopback();
        let control = Control {
            name: CONTROL.to_owned(),
            xds: place.at(self.ports.take()?),
            admin: place.at(self.ports.take()?),
            // It has none.
            sidecar: place.at(0),
            namespace: None,
        };
        let alone = Plan {
            controls: 1,
            ..self.plan.clone()
        };
        let mut config = control::config(&control, self.consul.http().port(), &alone);
        let (certificate, key) = &certificates.control;
        config["xds"]["tls"] =
            json!({"certificate": certificate, "key": key, "client_ca": certificates.authority});
        let file = self.folder.join(format!("{CONTROL}.yaml"));
        control::write(&file, &config)?;
        let command = control::command(&self.programs.control, &file);
        self.processes.start(CONTROL, command)?;
        Ok(control)
    }

    /// Ends what [`Self::add_static_caller`] has started.
    ///
    /// # Errors
    /// There is none, or something refuses.
    pub fn remove_static_caller(&mut self, caller: &str) -> Result<()> {
        self.remove_caller(caller)?;
        self.processes.stop(CONTROL)
    }
}

fn text(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.with_context(|| format!("{} is not UTF-8", path.display()))
}
