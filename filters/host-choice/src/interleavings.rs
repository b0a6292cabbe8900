// SPDX-License-Identifier: Apache-2.0
//! The VMs of a proxy on its worker threads, in every order of their calls to shared data.
//!
//! Envoy runs the VMs at once, and each call to shared data is one step: between two steps of one VM any number of
//! steps of the others may happen. [`explore`] makes all such orders of a [`Scenario`], and holds after each that
//!
//! - the lease passes only from a holder that gave it up, whose time was over or whose configuration is an older one;
//! - when all have ticked, one VM keeps the stream of tables, and every VM chooses by the newest table.

mod calls;
mod explorer;
mod proxy;
mod vm;

use std::time::Duration;

use explorer::explore;
use proxy::Event::{Configure, Die, Leave, Receive, Start, Tick};
use proxy::Scenario;

const NONE: Duration = Duration::ZERO;
/// Longer than a lease.
const LONG: Duration = Duration::from_secs(2);

#[test]
fn a_vm_starts_while_another_starts_and_receives_a_table() {
    explore(&Scenario {
        newest: 1,
        before: &[],
        pause: NONE,
        at_once: &[&[Start, Tick, Receive(1)], &[Start]],
    });
}

#[test]
fn a_vm_starts_while_two_others_want_the_first_lease() {
    explore(&Scenario {
        newest: 1,
        before: &[(0, &[Start]), (1, &[Start])],
        pause: NONE,
        at_once: &[&[Tick, Receive(1)], &[Tick], &[Start]],
    });
}

#[test]
fn three_vms_want_the_lease_that_another_gave_up() {
    explore(&Scenario {
        newest: 1,
        before: &[
            (3, &[Start, Tick]),
            (0, &[Start, Tick]),
            (1, &[Start, Tick]),
            (2, &[Start, Tick]),
            (3, &[Leave]),
        ],
        pause: NONE,
        at_once: &[
            &[Tick, Receive(1)],
            &[Tick, Receive(1)],
            &[Tick, Receive(1)],
            &[],
        ],
    });
}

#[test]
fn two_vms_want_the_lease_of_one_that_died() {
    explore(&Scenario {
        newest: 1,
        before: &[
            (0, &[Start, Tick]),
            (1, &[Start, Tick]),
            (2, &[Start, Tick, Die]),
        ],
        pause: LONG,
        at_once: &[&[Tick, Receive(1)], &[Tick, Receive(1)], &[]],
    });
}

#[test]
fn an_owner_that_overslept_its_lease_receives_an_older_table_than_the_next() {
    explore(&Scenario {
        newest: 3,
        before: &[(0, &[Start, Tick, Receive(1)]), (1, &[Start, Tick])],
        pause: LONG,
        at_once: &[&[Receive(2), Tick], &[Tick, Receive(3)]],
    });
}

#[test]
fn an_owner_receives_a_table_while_a_newer_configuration_takes_its_lease() {
    explore(&Scenario {
        newest: 3,
        before: &[(0, &[Start, Tick, Receive(1)]), (1, &[Start, Tick])],
        pause: NONE,
        at_once: &[&[Receive(2), Tick], &[Configure, Tick, Receive(3)]],
    });
}

#[test]
fn an_owner_leaves_while_two_others_want_its_lease() {
    explore(&Scenario {
        newest: 2,
        before: &[
            (0, &[Start, Tick, Receive(1)]),
            (1, &[Start, Tick]),
            (2, &[Start, Tick]),
        ],
        pause: NONE,
        at_once: &[&[Leave], &[Tick, Receive(2)], &[Tick, Receive(2)]],
    });
}
