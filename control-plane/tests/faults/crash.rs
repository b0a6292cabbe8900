// SPDX-License-Identifier: Apache-2.0
//! VMs of the filter that trap.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::client::{Caller, Headers, keyed};
use crate::load::{Load, assert_all_ok};
use crate::world::{Plan, World};
use crate::{process, sidecar};

pub(crate) fn crash(what: &str) -> Headers {
    vec![
        ("x-weir-key", "k0".to_owned()),
        ("x-weir-crash", what.to_owned()),
    ]
}

async fn start() -> World {
    Plan::workers(2, &[])
        .filter(process::crashing_filter())
        .start()
        .await
}

/// Threads of Envoy on which the filter trapped.
fn crashed_threads(sidecar: &sidecar::Sidecar) -> BTreeSet<String> {
    let log = sidecar.log();
    let traps = log
        .lines()
        .filter(|line| line.contains("[wasm]") && line.contains("unreachable"));
    traps
        .filter_map(|line| Some(line.split("][").nth(1)?.to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_kills_its_vm_is_the_only_one_that_fails_on_every_worker() {
    let mut world = start().await;
    let mut crashes = 0;
    while crashed_threads(&world.sidecar).len() < 2 {
        crashes += 1;
        assert!(
            crashes <= 64,
            "never the other worker\n{}",
            world.sidecar.log()
        );
        // A connection of its own, and so a worker of chance.
        let answer = world.caller().send("/", &crash("here")).await;
        assert_eq!(answer.status, Some(503), "{answer:#?}");
        let mut answers = Vec::new();
        for number in 0..8 {
            answers.push(world.caller().send("/", &keyed(number)).await);
        }
        assert_all_ok(&answers);
        // A VM that dies again at once stays dead for the back-off of reloads, 50 ms and up to half as much.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    world.until_tables_decide().await;
    world.prove_tables_arrive("baseline", "baseline").await;
    let after = Load::start(world.egress, 50, keyed).next(50).await;
    assert_all_ok(&after);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_owner_of_the_stream_dies_another_vm_opens_one_and_tables_arrive() {
    let mut world = start().await;
    let opened = "weir_filter_streams_opened_total";
    // First the main thread's VM, which nobody restarts, then a worker's.
    for (selection, reason) in [("baseline", "baseline"), ("rendezvous", "rendezvous")] {
        let before = world.envoy_metric(opened).await.unwrap();
        let caller: Caller = world.caller();
        let load = Load::start(world.egress, 20, keyed);
        let answer = caller.send("/", &crash("owner")).await;
        assert_eq!(answer.status, Some(200), "{answer:#?}");
        world.until_envoy(opened, |now| now > before).await;
        world.prove_tables_arrive(selection, reason).await;
        let mut failed = load.finish().await;
        failed.retain(|answer| answer.status != Some(200));
        let last = failed.iter().map(|answer| answer.number).max();
        assert!(
            failed.iter().all(|answer| Some(answer.sent) > last),
            "requests failed that were not in flight together when the VM died: {failed:#?}"
        );
    }
    assert_eq!(
        crashed_threads(&world.sidecar).len(),
        2,
        "{}",
        world.sidecar.log()
    );
    // The dead owners' streams are closed by weir-control: a proxy has one.
    world
        .until_control("weir_xds_streams{kind=\"weir\"}", |streams| streams == 1.0)
        .await;
}
