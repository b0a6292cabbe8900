// SPDX-License-Identifier: Apache-2.0
//! A request that no host can serve: it fails wherever it goes.

use std::collections::BTreeSet;

use crate::client::{Headers, keyed};
use crate::hosts::{Host, POISON};
use crate::load::{Load, assert_all_ok};
use crate::world::Plan;

/// Of three requests one is good, so that most of what a host with the poison key gets fails.
fn mixed(how: &'static str) -> impl Fn(usize) -> Headers {
    move |number| match number % 3 {
        0 => keyed(number),
        _ => vec![
            ("x-weir-key", "poison".to_owned()),
            (POISON, how.to_owned()),
        ],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poison_key_costs_no_good_request_and_no_host_its_place() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    for how in ["fails", "resets"] {
        let mut hosts = Vec::new();
        for _ in 0..4 {
            hosts.push(Host::start().await);
        }
        let rows = hosts.iter().map(Host::row).collect();
        let world = Plan::hosts(rows).start().await;
        let load = Load::start(world.egress, 100, mixed(how));
        load.next(1_500).await;
        let answers = load.finish().await;
        let (good, bad): (Vec<_>, Vec<_>) =
            answers.iter().partition(|answer| answer.number % 3 == 0);
        assert_all_ok(good.iter().copied());
        assert!(bad.iter().all(|answer| answer.status != Some(200)));
        let asked: BTreeSet<_> = good.iter().filter_map(|answer| answer.host).collect();
        let outs = world.envoy_metric("weir_failing_hosts_total");
        let outs = outs.await.unwrap_or(0.0);
        eprintln!(
            "{how}: {} good, {} bad, {outs} times a host was out, {} hosts asked",
            good.len(),
            bad.len(),
            asked.len()
        );
        assert_eq!(outs, 0.0, "{how}");
    }
}
