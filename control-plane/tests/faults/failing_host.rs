// SPDX-License-Identifier: Apache-2.0
//! A host that answers 500 at once: to whoever looks for idle hosts it is the most idle.

use crate::client::{Answer, keyed};
use crate::hosts::Host;
use crate::load::{Load, assert_all_ok};
use crate::world::Plan;

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_fails_at_once_gets_next_to_nothing_until_it_is_well_again() {
    let hosts = [
        Host::start().await,
        Host::start().await,
        Host::start().await,
    ];
    let rows = hosts.iter().map(Host::row).collect();
    let world = Plan::hosts(rows).start().await;
    let failing = &hosts[0];
    let load = Load::start(world.egress, 100, keyed);
    let visited = |answers: &[Answer]| {
        answers
            .iter()
            .any(|answer| answer.host == Some(failing.address))
    };
    load.until("a visit", 0, visited).await;

    failing.fails(true);
    let from = load.sent();
    load.next(1_000).await;
    // Each of the sidecar's threads learns by five failures, and then tries once after 1, 2, 4 and 8 seconds: what
    // is on its way at that time fails too, and a machine that is slow sends less between two trials. One that nobody
    // left would get a third or more.
    let is_left = |answers: &[Answer]| {
        let bad = answers.iter().filter(|answer| answer.status != Some(200));
        let bad = bad.count();
        eprintln!("{bad} of {} failed", answers.len());
        10 * bad <= answers.len()
    };
    let first = load.since(from);
    let failed = |answer: &Answer| answer.status == Some(500);
    assert!(first.iter().any(failed), "nothing was sent there");
    assert!(is_left(&first) && is_left(&load.next(200).await));

    failing.fails(false);
    let well = load.sent();
    load.until("visits again", well, visited).await;
    let answers = load.finish().await;
    assert_all_ok(answers.iter().filter(|answer| answer.number > well));
}
