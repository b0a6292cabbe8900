// SPDX-License-Identifier: Apache-2.0
//! Callers: sidecars that take requests for the hosts.

use std::net::SocketAddr;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use weir_stage::http::{self, Answer, Request};

use crate::network;

/// A caller of the mesh. Its process is `<name>-sidecar`; the application is whoever sends requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// Consul's id of the instance: `caller-1`.
    pub name: String,
    /// Where requests for the hosts are sent.
    pub outbound: SocketAddr,
    /// The sidecar's admin pages.
    pub admin: SocketAddr,
    /// Where application and sidecar run, if not beside the others: the sidecar takes all of the application's
    /// connections, and `outbound` is the hosts' virtual address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl Caller {
    /// The answer to a request of its application, whatever its status.
    ///
    /// # Errors
    /// No answer, or its namespace is gone.
    pub fn send(&self, request: &Request) -> Result<Answer> {
        match &self.namespace {
            Some(namespace) => network::inside(namespace, || http::send(self.outbound, request))?,
            None => http::send(self.outbound, request),
        }
    }
}
