// SPDX-License-Identifier: Apache-2.0
//! What is loaded.

use std::net::SocketAddr;

use clap::ValueEnum;

use crate::demo::sampler::Sights;

/// Where to send, and where to look meanwhile.
pub(super) struct Against {
    pub(super) callers: Vec<SocketAddr>,
    pub(super) sights: Sights,
}

/// In which order a host takes the jobs that wait for one of its cores.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Queue {
    /// The most important first, as document 001's hosts do
    Priority,
    /// As they came, as most servers do
    Arrival,
}
