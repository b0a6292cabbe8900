// SPDX-License-Identifier: Apache-2.0
//! The caller's zone has no room left, and has some again.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::client::{Answer, keyed};
use crate::hosts::Host;
use crate::load::{Load, assert_all_ok};
use crate::world::{Plan, ZONE};

/// A host of two cores in this zone.
fn row(host: &Host, zone: &str) -> Value {
    json!({"address": host.address, "zone": zone, "capacity_millicores": 2000})
}

fn went_to(answers: &[Answer], host: SocketAddr) -> bool {
    answers.iter().all(|answer| answer.host == Some(host))
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_stay_in_the_callers_zone_until_it_is_busy_and_come_back() {
    let (near, far) = (Host::start().await, Host::start().await);
    let zones = json!({"clusters": {"rules": {
        "scrape": {"interval": "200ms"}, "policy": {"crossing": "50ms"},
    }}});
    let rows = vec![row(&near, ZONE), row(&far, "far")];
    let world = Plan::hosts(rows).with(zones).start().await;
    let crossings = "weir_crossings_total";
    let load = Load::start(world.egress, 50, keyed);
    load.next(100).await;
    let answers = load.since(0);
    assert_all_ok(&answers);
    assert!(went_to(&answers, near.address), "{answers:?}");
    assert_eq!(world.envoy_metric(crossings).await, Some(0.0));

    near.says(42, 40);
    let begun = answers.len();
    let crossed = |answers: &[Answer]| {
        let to_far = |answer: &&Answer| answer.host == Some(far.address);
        answers.iter().filter(to_far).count() >= 100
    };
    assert_all_ok(
        &load
            .until("requests in the other zone", begun, crossed)
            .await,
    );
    world.until_envoy(crossings, |count| count >= 100.0).await;

    near.says(0, 0);
    let back = async || {
        let answers = load.next(20).await;
        went_to(&answers, near.address).then_some(())
    };
    world.until("requests in the own zone again", back).await;
    assert_all_ok(&load.finish().await);
}
