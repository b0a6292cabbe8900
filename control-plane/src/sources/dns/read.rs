// SPDX-License-Identifier: Apache-2.0
//! From records to hosts. Pure.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use hickory_resolver::proto::rr::Name;

use crate::config::{Dns, Host, Instance};
use crate::sources::discovery::{Complaints, Found};

/// What DNS has told.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    /// A name's addresses, and the port of all.
    Addresses(Vec<IpAddr>, u16),
    /// Its service records.
    Services(Vec<Service>),
}

impl Asked {
    /// Whether the name has none.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Addresses(addresses, _) => addresses.is_empty(),
            Self::Services(services) => services.is_empty(),
        }
    }
}

/// A service record, and the addresses of its target.
#[derive(Clone, Debug)]
pub(super) struct Service {
    /// Less is tried first.
    pub(super) priority: u16,
    /// Where the service is.
    pub(super) port: u16,
    /// The root where there is no such service.
    pub(super) target: Name,
    /// Of the target.
    pub(super) addresses: Vec<IpAddr>,
}

/// Hosts, sorted, no address twice.
pub(super) fn read(asked: Asked, settings: &Dns) -> Found {
    let (mut hosts, mut complaints) = (BTreeMap::new(), Complaints::default());
    let mut add = |ip: IpAddr, port: u16, id: String| {
        let address = SocketAddr::new(ip, port);
        if ip.is_unspecified() || port == 0 {
            complaints.add(format!("{id}: nobody is at {address}"));
            return;
        }
        let at = settings.metrics_port.unwrap_or(port);
        let metrics = SocketAddr::new(ip, at).to_string();
        hosts.entry(address.to_string()).or_insert_with(|| Host {
            address: address.to_string(),
            metrics_address: metrics.clone(),
            cache_address: metrics,
            capacity_millicores: 0,
            preempt_at_unix_ms: 0,
            zone: None,
            draining: false,
            written: None,
            instance: Some(Instance {
                id,
                node: String::new(),
            }),
        });
    };
    let mut without_address = Vec::new();
    let (instances, records) = match asked {
        Asked::Addresses(addresses, port) => {
            let instances = addresses.len();
            for ip in addresses {
                add(ip, port, settings.name.clone());
            }
            (instances, "A or AAAA record")
        }
        Asked::Services(services) => {
            let instances = services.len();
            for service in services.iter().filter(|service| !service.target.is_root()) {
                let target = service.target.to_ascii();
                if service.addresses.is_empty() {
                    without_address.push(format!("{target} has no address"));
                }
                for ip in &service.addresses {
                    add(*ip, service.port, target.clone());
                }
            }
            (
                instances,
                "SRV record; write dns.port where it has addresses",
            )
        }
    };
    for complaint in without_address {
        complaints.add(complaint);
    }
    if instances == 0 {
        complaints.add(format!("{:?} has no {records}", settings.name));
    }
    Found {
        hosts: hosts.into_values().collect(),
        complaints: complaints.all(),
        instances,
    }
}

#[cfg(test)]
mod tests;
