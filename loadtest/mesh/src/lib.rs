// SPDX-License-Identifier: Apache-2.0
//! A whole mesh on this machine, for demonstrations, load and faults.
//!
//! ```text
//!                  ┌────────── Consul (catalog, CA, xDS of every sidecar) ──────────┐
//!  load ──> caller-1's Envoy (filter) ──mTLS──> rules-2's Envoy ──> rules-2 (emulated)
//!               │ tables, reports                                       │ /metrics, /cache
//!               └──mTLS──> weir-control's Envoy ──> weir-control <──────┘
//! ```
//!
//! [`Mesh::up`] starts all of it and returns when requests go through; dropping the value ends all of it. Consul is told
//! what users tell it: the entries of `weirctl consul apply`, and the files of `deploy/consul`.

pub mod background;
mod caller;
mod consul;
mod control;
mod description;
mod host;
mod mesh;
mod network;
mod plan;
mod programs;
pub mod prometheus;
mod sidecar;
mod supervisor;
mod surroundings;

pub use crate::caller::Caller;
pub use crate::consul::Consul;
pub use crate::control::Control;
pub use crate::description::Description;
pub use crate::host::Host;
pub use crate::mesh::{Certificates, Far, Mesh};
pub use crate::network::{possible as namespaces_possible, redirection_possible};
pub use crate::plan::{Plan, Work};
pub use crate::programs::Programs;
pub use crate::supervisor::supervise;
pub use crate::surroundings::small_disks_possible;
pub use weir_needs::Ports;

/// Consul's name of the hosts' service, and weir-control's of their cluster.
pub const HOSTS: &str = "rules";
/// Consul's name of the callers' service.
pub const CALLERS: &str = "caller";
/// Consul's name of weir-control.
pub const CONTROL: &str = "weir-control";
/// Consul's name of callers in another datacenter.
pub const FAR_CALLERS: &str = "far-caller";
/// Consul's name of fronts, which choose for callers that know no hosts.
pub const FRONTS: &str = "rules-front";
/// Of the one datacenter, or of the primary one.
pub const DATACENTER: &str = "dc1";
