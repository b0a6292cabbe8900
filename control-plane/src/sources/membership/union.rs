// SPDX-License-Identifier: Apache-2.0
//! Hosts that are written and hosts that were found.

use std::collections::BTreeMap;

use crate::config::Host;

/// All hosts, sorted by address. What is written of a host counts more than what was found.
pub(super) fn union(written: &[Host], found: &[Host]) -> Vec<Host> {
    let mut all: BTreeMap<&str, Host> = found
        .iter()
        .map(|host| (host.address.as_str(), host.clone()))
        .collect();
    for host in written {
        let merged = match all.remove(host.address.as_str()) {
            Some(found) => merged(host, found),
            None => host.clone(),
        };
        all.insert(&host.address, merged);
    }
    all.into_values().collect()
}

fn merged(host: &Host, found: Host) -> Host {
    let is = host.written.unwrap_or_default();
    let metrics_address = if is.metrics_address { host } else { &found }
        .metrics_address
        .clone();
    Host {
        address: host.address.clone(),
        cache_address: match (is.cache_address, is.metrics_address) {
            (true, _) => host.cache_address.clone(),
            (false, true) => metrics_address.clone(),
            (false, false) => found.cache_address,
        },
        metrics_address,
        capacity_millicores: if is.capacity_millicores {
            host.capacity_millicores
        } else {
            found.capacity_millicores
        },
        preempt_at_unix_ms: if is.preempt_at_unix_ms {
            host.preempt_at_unix_ms
        } else {
            found.preempt_at_unix_ms
        },
        zone: if is.zone {
            host.zone.clone()
        } else {
            found.zone
        },
        draining: host.draining || found.draining,
        written: host.written,
        instance: found.instance,
    }
}
