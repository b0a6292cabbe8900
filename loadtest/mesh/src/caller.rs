// SPDX-License-Identifier: Apache-2.0
//! Callers: sidecars that take requests for the hosts.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A caller of the mesh. Its process is `<name>-sidecar`; the application is whoever sends requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// Consul's id of the instance: `caller-1`.
    pub name: String,
    /// Where requests for the hosts are sent.
    pub outbound: SocketAddr,
    /// The sidecar's admin pages.
    pub admin: SocketAddr,
}
