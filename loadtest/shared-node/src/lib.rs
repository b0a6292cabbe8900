// SPDX-License-Identifier: Apache-2.0
//! A host whose service shares its node with a batch job, behind an Envoy that refuses what it cannot carry.
//!
//! ```text
//!  replay ──> Envoy + filter ──> weir-worker     a cgroup: core 0, and core 1 when it may
//!                 ▲    levels        ▲ cores
//!             weir-control <──> weir-governor    only in the governed ways
//!                                    ▼ cores, pauses
//!                               batch job        a cgroup: core 1
//! ```
//! One round is each way once. [`rounds::run`] runs a way; [`verdict`] says what is claimed of them.

pub mod batch;
pub mod calibration;
pub mod figures;
pub mod governor;
pub mod mesh;
pub mod place;
pub mod plan;
pub mod programs;
pub mod records;
pub mod report;
pub mod rounds;
pub mod service;
pub mod table;
pub mod verdict;
pub mod way;
pub mod work;
