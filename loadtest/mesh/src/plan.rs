// SPDX-License-Identifier: Apache-2.0
//! What a mesh is to be.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// More Envoys than this are of no use on one machine.
const MOST: usize = 50;

/// What a mesh is to be. The default is three hosts and two callers on loopback.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plan {
    /// Emulated hosts of the service `rules`, each with a sidecar.
    pub hosts: usize,
    /// Sidecars that take requests for them.
    pub callers: usize,
    /// weir-controls, all of one service. Several are replicas, of which one leads.
    pub controls: usize,
    /// Each host and each weir-control has its own network namespace and address, so that its link can be cut.
    /// Needs root.
    pub netns: bool,
    /// Hosts, weir-controls and callers' sidecars log to a disk of 1 MiB each, which can be filled; there the
    /// sidecars also write each request that they take. Needs mount namespaces.
    pub small_disks: bool,
    /// weir-controls and callers' sidecars have clocks of their own, which can be stepped. Needs `cc`.
    pub own_clocks: bool,
    /// Prometheus reads the pages of all.
    pub prometheus: bool,
    /// Cores of each host, told to its program and to Consul.
    pub cores: u32,
    /// Hosts do real work. None: they are emulated.
    pub work: Option<Work>,
    /// More flags of the hosts' program, `weir-worker`.
    pub host_flags: Vec<String>,
    /// What weir-control is told of the cluster `rules`, merged over what the mesh tells it (RFC 7396): its
    /// policy, for example.
    pub cluster: Value,
    /// The same of all that weir-control is told.
    pub control: Value,
    /// Worker threads of each caller's sidecar.
    pub caller_threads: u32,
}

/// The work of hosts that are not emulated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// The folder of projects.
    pub store: PathBuf,
    /// Threads that run jobs, of each host: Consul is told [`Plan::cores`].
    pub threads: u32,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            hosts: 3,
            callers: 2,
            controls: 1,
            netns: false,
            small_disks: false,
            own_clocks: false,
            prometheus: true,
            cores: 4,
            work: None,
            host_flags: Vec::new(),
            cluster: json!({}),
            control: json!({}),
            caller_threads: 1,
        }
    }
}

impl Plan {
    /// Whether it can be.
    ///
    /// # Errors
    /// A number is out of range, with its name.
    pub fn check(&self) -> Result<()> {
        let numbers = [
            ("hosts", self.hosts),
            ("callers", self.callers),
            ("controls", self.controls),
            ("cores", self.cores as usize),
            ("caller_threads", self.caller_threads as usize),
        ];
        for (name, number) in numbers {
            ensure!(
                (1..=MOST).contains(&number),
                "{name} is {number}; it must be 1 to {MOST}"
            );
        }
        ensure!(
            self.cluster.is_object(),
            "cluster must be an object, as in weir-control's configuration"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_named() {
        Plan::default().check().unwrap();
        let no_hosts = Plan {
            hosts: 0,
            ..Plan::default()
        };
        let many_callers = Plan {
            callers: 51,
            ..Plan::default()
        };
        for (plan, name) in [(no_hosts, "hosts is 0"), (many_callers, "callers is 51")] {
            assert!(plan.check().unwrap_err().to_string().contains(name));
        }
    }

    #[test]
    fn what_is_left_out_is_the_default() {
        let plan: Plan = serde_json::from_str(r#"{"hosts": 5}"#).unwrap();
        assert_eq!((plan.hosts, plan.callers, plan.prometheus), (5, 2, true));
        assert!(serde_json::from_str::<Plan>(r#"{"host": 5}"#).is_err());
    }
}
