// SPDX-License-Identifier: Apache-2.0
//! What the filter costs: fuel and host calls of a request by reason, of a tick, of taking tables. The same
//! on every machine, for one build of the module.

mod request;
mod scenario;
mod tables;

pub use request::{Request, requests};
pub use tables::{Fleet, Taken, take};

use std::time::Duration;

use crate::{Proxy, RULES, table};

/// Fuel of a tick at which nothing has come: of the VM that keeps the streams, and of another. The mean over
/// a second, because not every tick publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// Of the VM that keeps the streams.
    pub owner: u64,
    /// Of another.
    pub other: u64,
}

/// Ticks in a fleet of 14 hosts.
#[must_use]
pub fn tick() -> Tick {
    let proxy = Proxy::with(RULES, &[table(1, scenario::hosts(14))]);
    let [owner, .., other] = proxy.vms.as_slice() else {
        unreachable!("a proxy has three VMs");
    };
    let mean = |vm: &weir_testkit::Vm| {
        let before = vm.fuel_used();
        proxy.run(Duration::from_secs(1));
        (vm.fuel_used() - before) / 20
    };
    Tick {
        owner: mean(owner),
        other: mean(other),
    }
}
