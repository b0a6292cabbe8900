// SPDX-License-Identifier: Apache-2.0
//! Links of hosts and weir-controls that have their own network namespaces (`Plan::netns`).

use std::time::Duration;

use anyhow::{Context, Result};

use crate::mesh::Mesh;
use crate::network::Network;

impl Mesh {
    /// Cuts the link of a host or a weir-control: what is sent to it and by it is lost, without a word.
    ///
    /// # Errors
    /// There is no such host, or it has no namespace.
    pub fn cut(&self, name: &str) -> Result<()> {
        let (network, namespace) = self.link(name)?;
        network.connect(namespace, false)
    }

    /// Mends a link that was cut.
    ///
    /// # Errors
    /// As [`Self::cut`].
    pub fn mend(&self, name: &str) -> Result<()> {
        let (network, namespace) = self.link(name)?;
        network.connect(namespace, true)
    }

    /// Everything that is sent to a host and by it takes so much longer, each way.
    ///
    /// # Errors
    /// As [`Self::cut`], or the kernel has no `sch_netem`.
    pub fn delay(&self, host: &str, delay: Duration) -> Result<()> {
        let (network, namespace) = self.link(host)?;
        network.delay(namespace, delay)
    }

    /// A host's link carries no more than this, each way.
    ///
    /// # Errors
    /// As [`Self::cut`], or the kernel has no `sch_tbf`.
    pub fn narrow(&self, host: &str, bits_per_second: u64) -> Result<()> {
        let (network, namespace) = self.link(host)?;
        network.narrow(namespace, bits_per_second)
    }

    /// A link that was delayed or narrowed is as it was at first.
    ///
    /// # Errors
    /// As [`Self::cut`], or it was neither.
    pub fn widen(&self, host: &str) -> Result<()> {
        let (network, namespace) = self.link(host)?;
        network.widen(namespace)
    }

    fn link(&self, name: &str) -> Result<(&Network, &str)> {
        let control = self.controls.iter().find(|control| control.name == name);
        let namespace = match control {
            Some(control) => &control.namespace,
            None => &self.host(name)?.namespace,
        };
        let network = self.network.as_ref();
        network
            .zip(namespace.as_deref())
            .with_context(|| format!("{name} has no network namespace of its own"))
    }
}
