// SPDX-License-Identifier: Apache-2.0
//! Hosts and callers that come and go.

use anyhow::{Context, Result};

use crate::CALLERS;
use crate::caller::Caller;
use crate::host::Host;
use crate::mesh::Mesh;
use crate::sidecar;

impl Mesh {
    /// A new host, with its sidecar ready. Requests come when weir-control knows it.
    ///
    /// # Errors
    /// A process could not be started, or died.
    pub fn add_host(&mut self) -> Result<Host> {
        let host = self.start_host()?;
        sidecar::wait(&mut self.processes, &host.name, host.admin)?;
        self.describe()?;
        Ok(host)
    }

    /// Takes a host out of Consul's catalog. Its processes go on; [`Self::register`] brings it back.
    ///
    /// # Errors
    /// There is none of this name, or Consul says no.
    pub fn deregister(&self, host: &str) -> Result<()> {
        self.consul.deregister(&self.host(host)?.name)
    }

    /// Puts a host back into Consul's catalog.
    ///
    /// # Errors
    /// As [`Self::deregister`].
    pub fn register(&self, host: &str) -> Result<()> {
        self.register_host(self.host(host)?)
    }

    /// Takes a host out of the catalog and ends its processes.
    ///
    /// # Errors
    /// There is none of this name, or something refuses.
    pub fn remove_host(&mut self, host: &str) -> Result<()> {
        let host = self.host(host)?.clone();
        self.consul.deregister(&host.name)?;
        self.processes.stop(&sidecar::name(&host.name))?;
        self.processes.stop(&host.name)?;
        if let (Some(network), Some(namespace)) = (&mut self.network, &host.namespace) {
            network.remove(namespace)?;
        }
        self.hosts.retain(|other| *other != host);
        self.describe()
    }

    /// A new caller, with its sidecar ready. Whether its requests go where the filter chooses depends on
    /// its having a table.
    ///
    /// # Errors
    /// A process could not be started, or died.
    pub fn add_caller(&mut self) -> Result<Caller> {
        let caller = self.start_caller(CALLERS, None)?;
        sidecar::wait(&mut self.processes, &caller.name, caller.admin)?;
        self.describe()?;
        Ok(caller)
    }

    /// Takes a caller out of the catalog and ends its sidecar.
    ///
    /// # Errors
    /// There is none of this name, or something refuses.
    pub fn remove_caller(&mut self, caller: &str) -> Result<()> {
        self.consul.deregister(caller)?;
        self.processes.stop(&sidecar::name(caller))?;
        self.callers.retain(|other| other.name != caller);
        self.describe()
    }

    pub(super) fn host(&self, name: &str) -> Result<&Host> {
        let host = self.hosts.iter().find(|host| host.name == name);
        host.with_context(|| format!("there is no host `{name}`"))
    }
}
