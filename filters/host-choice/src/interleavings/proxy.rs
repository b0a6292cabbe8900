// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use weir_harness::{resource, table, up};
use weir_tables::HOST_TABLE_TYPE;
use weir_tables::discovery::DeltaDiscoveryResponse;

/// What happens to a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It begins, with a configuration.
    Start,
    /// It gets another configuration; the first one drains.
    Configure,
    /// It ticks.
    Tick,
    /// weir-control has sent it the table of this version, if it has a stream of tables.
    Receive(u64),
    /// Its configurations are taken away.
    Leave,
    /// It never runs again.
    Die,
}

/// VMs, what happens to them one after another, and then at once.
pub(super) struct Scenario {
    /// The version of the table that weir-control has in the end.
    pub(super) newest: u64,
    /// By VM, in this order.
    pub(super) before: &'static [(usize, &'static [Event])],
    /// So much time passes then.
    pub(super) pause: Duration,
    /// To each VM.
    pub(super) at_once: &'static [&'static [Event]],
}

impl Scenario {
    /// What happens one after another.
    pub(super) fn before_in_order(&self) -> impl Iterator<Item = (usize, Event)> {
        let each = |(vm, events): &(usize, &'static [Event])| {
            let vm = *vm;
            events.iter().map(move |event| (vm, *event))
        };
        self.before.iter().flat_map(each)
    }

    /// Whether the VM ticks on after all that.
    pub(super) fn lives(&self, vm: usize) -> bool {
        let of_vm = |(which, events): &(usize, &'static [Event])| (*which == vm).then_some(*events);
        let before = self.before.iter().filter_map(of_vm);
        let mut events = before.chain([self.at_once[vm]]).flatten();
        !events.any(|event| matches!(event, Event::Leave | Event::Die))
    }
}

/// The only host of the table of this version.
pub(super) fn address(version: u64) -> String {
    format!("10.0.0.{version}:80")
}

/// What weir-control sends.
pub(super) fn response(version: u64) -> DeltaDiscoveryResponse {
    DeltaDiscoveryResponse {
        type_url: HOST_TABLE_TYPE.into(),
        resources: vec![resource(&table(version, up(&[&address(version)])))],
        nonce: version.to_string(),
        ..Default::default()
    }
}
