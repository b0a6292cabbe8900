// SPDX-License-Identifier: Apache-2.0
//! From records to hosts. Pure.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use hickory_resolver::proto::rr::Name;

use crate::config::{Dns, Host, Instance};
use crate::sources::discovery::Found;

/// Complaints that a reader can take in.
const MOST_SHOWN: usize = 20;

/// What DNS has told.
#[derive(Clone, Debug)]
pub enum Asked {
    /// A name's addresses, and the port of all.
    Addresses(Vec<IpAddr>, u16),
    /// Its service records.
    Services(Vec<Service>),
}

/// A service record, and the addresses of its target.
#[derive(Clone, Debug)]
pub struct Service {
    /// Less is tried first.
    pub priority: u16,
    /// Where the service is.
    pub port: u16,
    /// The root where there is no such service.
    pub target: Name,
    /// Of the target.
    pub addresses: Vec<IpAddr>,
}

/// Hosts, sorted, no address twice.
pub fn read(asked: Asked, settings: &Dns) -> Found {
    let (mut hosts, mut complaints) = (BTreeMap::new(), Vec::new());
    let mut add = |ip: IpAddr, port: u16, id: String| {
        let address = SocketAddr::new(ip, port);
        if ip.is_unspecified() || port == 0 {
            complaints.push(format!("{id}: nobody is at {address}"));
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
            draining: false,
            written: None,
            instance: Some(Instance {
                id,
                node: String::new(),
                zone: None,
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
    complaints.extend(without_address);
    let more = complaints.len().saturating_sub(MOST_SHOWN);
    if more > 0 {
        complaints.truncate(MOST_SHOWN);
        complaints.push(format!("and {more} more"));
    }
    if instances == 0 {
        complaints.push(format!("{:?} has no {records}", settings.name));
    }
    Found {
        hosts: hosts.into_values().collect(),
        complaints,
        instances,
    }
}

#[cfg(test)]
mod tests;
