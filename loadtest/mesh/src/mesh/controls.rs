// SPDX-License-Identifier: Apache-2.0
//! weir-controls: instances of one service, each with a sidecar.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;
use weir_consul::Sidecar;

use crate::control::{self, Control};
use crate::mesh::Mesh;
use crate::network::Place;
use crate::{CONTROL, sidecar};

impl Mesh {
    pub(super) fn start_control(&mut self) -> Result<()> {
        let name = match self.controls.len() {
            0 => CONTROL.to_owned(),
            before => format!("{CONTROL}-{}", before + 1),
        };
        let place = match &mut self.network {
            Some(network) => network.place(&name)?,
            None => Place::loopback(),
        };
        let control = Control {
            name,
            xds: place.at(self.ports.take()?),
            admin: place.at(self.ports.take()?),
            sidecar: place.at(self.ports.take()?),
            namespace: place.namespace.clone(),
        };
        let file = self.write_control(&control)?;
        let command = control::command(&self.programs.control, &file);
        let command = self.surroundings.with_clock(&control.name, command)?;
        let command = place.command(self.surroundings.on_disk(command));
        self.processes.start(&control.name, command)?;
        self.register_control(&control)?;
        let admin = control.sidecar.port();
        let file = self
            .sidecars
            .bootstrap(&self.consul, &control.name, &place, admin)?;
        let mut command = self.sidecars.command(&file, 1);
        command.args(control::SIDECAR_ARGUMENTS);
        let command = place.command(self.surroundings.on_disk(command));
        let process = sidecar::name(&control.name);
        self.processes.start(&process, command)?;
        self.controls.push(control);
        Ok(())
    }

    fn register_control(&mut self, control: &Control) -> Result<()> {
        let sidecar = Sidecar {
            id: control.name.clone(),
            service: CONTROL.to_owned(),
            address: control.xds.ip(),
            port: self.ports.take()?,
        };
        // Consul's agent, which checks it, may be in another namespace.
        let service = sidecar.control(control.xds, control.admin);
        self.consul.register(&service)
    }

    /// Writes what a weir-control is told.
    fn write_control(&self, control: &Control) -> Result<PathBuf> {
        let config = control::config(control, self.consul.http().port(), &self.plan);
        let file = self.folder.join(format!("{}.yaml", control.name));
        control::write(&file, &config)?;
        Ok(file)
    }

    /// Tells every weir-control something else of the cluster `rules`, as `Plan::cluster` does at first.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn tell_controls(&mut self, cluster: Value) -> Result<()> {
        self.plan.cluster = cluster;
        self.write_controls()
    }

    /// Tells every weir-control this beside, merged over the whole of its configuration (RFC 7396).
    ///
    /// # Errors
    /// As [`Self::tell_controls`].
    pub fn tell_controls_beside(&mut self, control: Value) -> Result<()> {
        self.plan.control = control;
        self.write_controls()
    }

    fn write_controls(&self) -> Result<()> {
        for control in &self.controls {
            self.write_control(control)
                .with_context(|| format!("the configuration of {}", control.name))?;
        }
        Ok(())
    }
}
