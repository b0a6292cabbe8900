// SPDX-License-Identifier: Apache-2.0
//! What an operator says of Weir in a mesh.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::parts::{self, Datacenter};
use crate::share::{Kind, Share};

/// Who chooses which hosts by Weir, and with what.
#[derive(Clone, Debug, PartialEq)]
pub struct Weir {
    /// Services whose hosts are chosen. A table of weir-control has the service's name.
    pub services: BTreeSet<String>,
    /// Services whose sidecars choose.
    pub callers: BTreeSet<String>,
    /// Where tables come from.
    pub control: Control,
    /// The filter.
    pub module: Module,
    /// More of the filter's configuration, an object, merged over what is said here (RFC 7396).
    pub settings: Value,
}

/// Where callers' sidecars get tables from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// A service of the mesh.
    Service(String),
    /// A cluster that is in the sidecars' bootstraps.
    Cluster(String),
}

/// Where callers' sidecars have the filter from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Module {
    /// A path on their machines.
    File(String),
    /// A page of a service of the mesh, which is an upstream of each caller: Envoy needs a cluster to fetch it by.
    Remote {
        /// The service.
        service: String,
        /// Of the page.
        url: String,
        /// Of the module: 64 hexadecimal digits.
        sha256: String,
    },
}

/// What cannot be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Mistake {
    /// Consul takes names of 1 to 128 letters, digits, `-`, `_` and `.`.
    #[error("{0:?} is not the name of a service: 1 to 128 letters, digits, -, _ and .")]
    Name(String),
    /// No service, or no caller.
    #[error("{0}: name at least one")]
    Nobody(&'static str),
    /// A module's checksum.
    #[error("{0:?} is not a SHA-256: 64 hexadecimal digits")]
    Checksum(String),
    /// The further configuration of the filter.
    #[error("the filter's settings are not an object of JSON")]
    Settings,
}

impl Weir {
    /// Weir's share of each entry, in the order in which they are written: callers last, so that their sidecars
    /// find the rest.
    ///
    /// # Errors
    /// A name is none, or something is missing.
    pub fn shares(&self, datacenter: &Datacenter) -> Result<Vec<Share>, Mistake> {
        self.check()?;
        let mut shares = BTreeMap::new();
        let reached = |protocol| move |share: &mut Share| share.protocol = Some(protocol);
        let services = self.services.iter().map(|service| (service, "http"));
        let control = match &self.control {
            Control::Service(control) => Some((control, "grpc")),
            Control::Cluster(_) => None,
        };
        for (service, protocol) in services.chain(control) {
            let calls = self.callers.contains(service);
            share(
                &mut shares,
                calls,
                Kind::Defaults,
                service,
                reached(protocol),
            );
            share(&mut shares, false, Kind::Intentions, service, |share| {
                share.sources.clone_from(&self.callers);
            });
        }
        let filter = parts::filter(&self.module, &self.configuration(datacenter));
        for caller in &self.callers {
            share(&mut shares, true, Kind::Defaults, caller, |share| {
                share.calls = true;
                share.extensions = vec![filter.clone(), parts::retries()];
                share.clusters = self.clusters(datacenter);
            });
        }
        Ok(shares.into_values().collect())
    }

    fn check(&self) -> Result<(), Mistake> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_name = |name: &str| (1..=128).contains(&name.len()) && name.chars().all(is_part);
        for (what, names) in [("services", &self.services), ("callers", &self.callers)] {
            if names.is_empty() {
                return Err(Mistake::Nobody(what));
            }
        }
        let (Control::Service(control) | Control::Cluster(control)) = &self.control;
        let mut names = vec![control];
        names.extend(self.services.iter().chain(&self.callers));
        if let Module::Remote {
            service, sha256, ..
        } = &self.module
        {
            names.push(service);
            if sha256.len() != 64 || !sha256.chars().all(|c| c.is_ascii_hexdigit()) {
                return Err(Mistake::Checksum(sha256.clone()));
            }
        }
        if let Some(bad) = names.into_iter().find(|name| !is_name(name)) {
            return Err(Mistake::Name(bad.clone()));
        }
        match self.settings.is_object() {
            true => Ok(()),
            false => Err(Mistake::Settings),
        }
    }

    /// The filter's configuration. Clusters may stand in the settings by their service.
    #[must_use]
    pub fn configuration(&self, datacenter: &Datacenter) -> Value {
        let control = match &self.control {
            Control::Service(service) => datacenter.cluster(service),
            Control::Cluster(cluster) => cluster.clone(),
        };
        let clusters = self.services.iter();
        let clusters: Map<_, _> = clusters
            .map(|service| (datacenter.cluster(service), json!({"table": service})))
            .collect();
        let mut configuration =
            json!({"control_cluster": control, "clusters": clusters, "debug": false});
        let mut settings = self.settings.clone();
        if let Some(clusters) = settings.get_mut("clusters").and_then(Value::as_object_mut) {
            for service in &self.services {
                if let Some(own) = clusters.remove(service) {
                    clusters.insert(datacenter.cluster(service), own);
                }
            }
        }
        merge(&mut configuration, &settings);
        configuration
    }

    /// By upstream.
    fn clusters(&self, datacenter: &Datacenter) -> BTreeMap<String, Value> {
        let services = self.services.iter();
        let hosts =
            services.map(|service| (service.clone(), parts::hosts(&datacenter.cluster(service))));
        let control = match &self.control {
            Control::Service(service) => {
                let cluster = parts::control(&datacenter.cluster(service));
                Some((service.clone(), cluster))
            }
            Control::Cluster(_) => None,
        };
        hosts.chain(control).collect()
    }
}

/// Those of callers come last.
fn share<'a>(
    shares: &mut BTreeMap<(bool, Kind, &'a str), Share>,
    calls: bool,
    kind: Kind,
    name: &'a str,
    change: impl FnOnce(&mut Share),
) {
    let share = shares.entry((calls, kind, name));
    change(share.or_insert_with(|| Share::new(kind, name)));
}

/// Puts a patch over a value, by RFC 7396.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in patch {
        match (value, target.as_object_mut()) {
            (Value::Null, Some(fields)) => drop(fields.remove(name)),
            _ => merge(&mut target[name], value),
        }
    }
}
