// SPDX-License-Identifier: Apache-2.0
//! The header that tells Envoy where a request goes.

use weir_policy::{Cluster, HostId, HostState, Ranked};

/// Read by Envoy's override_host policy; the wire form of the Kubernetes inference gateway's picker.
pub const HEADER: &str = "x-gateway-destination-endpoint";

/// The first host and its state; the value that names them all is written to `value`. None where the table does not
/// have them.
pub(crate) fn name(
    cluster: &Cluster,
    hosts: &Ranked,
    value: &mut String,
) -> Option<(HostId, HostState)> {
    let table = cluster.table()?;
    let best = hosts.first()?;
    let first = (cluster.id(best)?, table.host(best)?.state);
    value.clear();
    for host in hosts.as_slice().iter().filter_map(|host| table.host(*host)) {
        if !value.is_empty() {
            value.push(',');
        }
        value.push_str(&host.address);
    }
    Some(first)
}
