// SPDX-License-Identifier: Apache-2.0
//! A caller whose application knows of no proxy: its connections are led to the sidecar (`Plan::netns`).

use anyhow::{Context, Result};
use serde_json::json;
use weir_consul::{Calls, Sidecar};

use crate::caller::Caller;
use crate::mesh::Mesh;
use crate::{CONTROL, HOSTS, sidecar};

/// Consul's name of such callers: their filters are told something else than others'.
const CALLERS: &str = "transparent-caller";

impl Mesh {
    /// A caller in a network namespace of its own, in which Consul leads all connections to the sidecar, and in which
    /// the filter chooses.
    ///
    /// # Errors
    /// There is no network, or no `iptables`; a process could not be started, or died.
    pub fn add_transparent_caller(&mut self) -> Result<Caller> {
        // The application's address is its namespace's: it is not on loopback.
        let trusting = json!({"trust": "any"});
        let control = weir_consul::Control::Service(CONTROL.to_owned());
        self.let_choose(CALLERS, control, trusting)?;
        self.callers_so_far += 1;
        let name = format!("{CALLERS}-{}", self.callers_so_far);
        let network = self.network.as_mut();
        let network = network.context("a transparent caller needs Plan::netns")?;
        let place = network.place(&name)?;
        let namespace = place.namespace.clone().context("a namespace")?;
        network.open(&namespace)?;
        let sidecar = Sidecar {
            id: name.clone(),
            service: CALLERS.to_owned(),
            address: place.address,
            port: self.ports.take()?,
        };
        let calls = Calls {
            transparent: true,
            ..Calls::default()
        };
        self.consul.register(&sidecar.caller(&calls))?;
        let caller = Caller {
            outbound: self.consul.virtual_address(HOSTS)?,
            admin: place.at(self.ports.take()?),
            name,
            namespace: Some(namespace),
        };
        let (id, admin) = (&caller.name, caller.admin.port());
        self.consul.redirect(id, &place, admin)?;
        let file = self.sidecars.bootstrap(&self.consul, id, &place, admin)?;
        let command = self.sidecars.command(&file, self.plan.caller_threads);
        let command = place.command(self.surroundings.on_disk(command));
        self.processes.start(&sidecar::name(id), command)?;
        sidecar::wait(&mut self.processes, id, caller.admin)?;
        self.callers.push(caller.clone());
        self.describe()?;
        self.wait_until_informed(&caller)?;
        Ok(caller)
    }
}
