// SPDX-License-Identifier: Apache-2.0
//! The header that tells Envoy where a request goes.

use weir_policy::{Cluster, HostId, Ranked};

/// Read by Envoy's override_host policy; the wire form of the Kubernetes inference gateway's picker.
pub(crate) const HEADER: &str = "x-gateway-destination-endpoint";
/// Room for an IPv4 address with its port and a comma.
const USUAL_ADDRESS: usize = 22;

/// The first host and the value that names them all; none where the table does not have them.
pub(crate) fn name(cluster: &Cluster, hosts: Ranked) -> Option<(HostId, String)> {
    let table = cluster.table()?;
    let first = cluster.id(hosts.first()?)?;
    let mut value = String::with_capacity(hosts.as_slice().len() * USUAL_ADDRESS);
    for host in hosts.as_slice().iter().filter_map(|host| table.host(*host)) {
        if !value.is_empty() {
            value.push(',');
        }
        value.push_str(&host.address);
    }
    Some((first, value))
}
