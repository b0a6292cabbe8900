// SPDX-License-Identifier: Apache-2.0
//! Parts that are replaced, of which a caller sees nothing. Real Envoys, weir-control and hosts under a steady load.
//!
//! A file a kind of reload. In each no request fails, all go on being chosen by a table, and the reload is
//! seen to have taken effect.

mod control_upgrade;
mod hot_restart;
mod module;
mod planner;
mod plugin;
mod policy;
mod rollout;
mod start;
mod steady;
mod watched;

#[allow(dead_code)] // Each group of tests uses a part of it.
#[path = "../stage/mod.rs"]
mod stage;

use stage::{client, config, http, load, process, sidecar, tools, waits, world};
