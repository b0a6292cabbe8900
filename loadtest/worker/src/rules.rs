// SPDX-License-Identifier: Apache-2.0
//! Jobs that read a project's items, apply rules to them and write the result. Behind the feature `rules`, which is
//! on by default: it brings Arrow, Parquet and clients of object stores, which an emulated host has no use for.
//!
//! ```text
//!  POST ──> service ──> task (fetch, apply, answer) ──> cores ──> delivery ──> answer
//!              └ objects: which data a project has now   └ joblet_log
//! ```

pub mod cores;
mod delivery;
mod failure;
pub mod joblet_log;
pub mod objects;
pub mod service;
pub mod task;
