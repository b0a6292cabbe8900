// SPDX-License-Identifier: Apache-2.0
//! `weirctl doctor` before a real Envoy, a real weir-control and hosts of which one link is broken: it is named.
//!
//! A test a link; `weirctl`'s own tests have those that cannot be broken on one machine.

mod bench;
mod caller;
mod control;
mod host;
mod stream;

#[path = "../certificates/mod.rs"]
mod certificates;
#[allow(dead_code)] // Only a part of it is used here.
#[path = "../stage/mod.rs"]
mod stage;

use stage::{client, config, http, process, sidecar, tools, waits};
