// SPDX-License-Identifier: Apache-2.0
//! What is loaded.

use std::net::SocketAddr;

use clap::ValueEnum;
use weir_mesh::Mesh;

use crate::demo::sampler::Sights;

/// Where to send, and where to look meanwhile.
pub(super) struct Against {
    pub(super) callers: Vec<SocketAddr>,
    pub(super) sights: Sights,
    /// Ends with it.
    pub(super) _mesh: Option<Mesh>,
}

/// Where the fleet stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Fleet {
    /// Hosts behind the callers' Envoys, which are configured statically or told by weir-control
    Static,
    /// Hosts behind sidecars of their own, in Consul Connect
    Mesh,
}

/// In which order a host takes the jobs that wait for one of its cores.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Queue {
    /// The most important first, as document 001's hosts do
    Priority,
    /// As they came, as most servers do
    Arrival,
}
