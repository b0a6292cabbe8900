// SPDX-License-Identifier: Apache-2.0
//! What `/v1/health/…` answers, as far as it is read. Other fields are left alone: Consul adds some with
//! each release.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;

/// One instance of a service with the checks that it and its node have.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Entry {
    pub(super) node: Node,
    pub(super) service: Service,
    /// `null` where there are none.
    #[serde(default)]
    pub(super) checks: Option<Vec<Check>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Node {
    pub(super) node: String,
    #[serde(default)]
    pub(super) address: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Service {
    #[serde(rename = "ID")]
    pub(super) id: String,
    pub(super) service: String,
    /// `connect-proxy` where it is a sidecar.
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) address: String,
    pub(super) port: u64,
    #[serde(default)]
    pub(super) tags: Option<Vec<String>>,
    #[serde(default)]
    pub(super) meta: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub(super) weights: Option<Weights>,
    #[serde(default)]
    pub(super) proxy: Option<Proxy>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Weights {
    #[serde(default)]
    pub(super) passing: u64,
}

/// What a sidecar is there for.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Proxy {
    pub(super) destination_service_name: String,
    pub(super) local_service_address: String,
    pub(super) local_service_port: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Check {
    pub(super) status: String,
}

impl Entry {
    /// Whether it takes requests: no check of it or its node says otherwise. Consul's `warning` does not.
    pub(super) fn serves(&self) -> bool {
        let well = |check: &Check| matches!(check.status.as_str(), "passing" | "warning");
        self.checks.iter().flatten().all(well)
    }

    /// Of which service it is one.
    pub(super) fn of(&self) -> &str {
        match (&self.service.proxy, self.service.kind.as_str()) {
            (Some(proxy), "connect-proxy") => &proxy.destination_service_name,
            _ => &self.service.service,
        }
    }

    /// Where it listens: at its own address, or at its node's where it has none.
    pub(super) fn ip(&self) -> Result<IpAddr, &str> {
        let own = match self.service.address.as_str() {
            "" => &self.node.address,
            own => own,
        };
        own.parse().map_err(|_| own)
    }

    /// Where metrics and cache contents are, but for the port. A sidecar's application is behind the sidecar's
    /// address, unless the registration names another one that can be reached from elsewhere.
    pub(super) fn application_ip(&self, own: IpAddr) -> IpAddr {
        let proxy = self.service.proxy.as_ref();
        let local = proxy.and_then(|proxy| proxy.local_service_address.parse::<IpAddr>().ok());
        local
            .filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
            .unwrap_or(own)
    }

    /// The application's port, if the registration has it.
    pub(super) fn application_port(&self) -> u64 {
        match (&self.service.proxy, self.service.kind.as_str()) {
            (Some(proxy), "connect-proxy") => proxy.local_service_port,
            _ => self.service.port,
        }
    }

    /// What the registration says under this name.
    pub(super) fn meta(&self, name: &str) -> Option<&str> {
        self.service.meta.as_ref()?.get(name).map(String::as_str)
    }

    /// Shares of requests that it should get.
    pub(super) fn weight(&self) -> u64 {
        // As Consul has it where nothing is registered.
        self.service
            .weights
            .as_ref()
            .map_or(1, |weights| weights.passing)
    }

    /// Whether it has all of them.
    pub(super) fn has(&self, tags: &[String]) -> bool {
        let own = self.service.tags.as_deref().unwrap_or_default();
        tags.iter().all(|tag| own.contains(tag))
    }
}
