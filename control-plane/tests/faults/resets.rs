// SPDX-License-Identifier: Apache-2.0
//! Requests whose connection ends without an answer, on hosts that have nothing else to do.

use serde_json::json;

use crate::client::{Answer, Headers};
use crate::hosts::{Host, POISON};
use crate::load::Load;
use crate::world::Plan;

/// One request in ten ends its connection, whoever gets it.
fn resetting(number: usize) -> Headers {
    let mut headers = vec![
        ("x-weir-key", format!("k{}", number % 40)),
        ("x-weir-priority", "low".to_owned()),
    ];
    if is_reset(number) {
        headers.push((POISON, "resets".to_owned()));
    }
    headers
}

fn is_reset(number: usize) -> bool {
    number.is_multiple_of(10)
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_on_idle_hosts_shed_nothing_and_cost_nobody_else_anything() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    let mut hosts = Vec::new();
    for _ in 0..4 {
        let host = Host::start().await;
        host.says(1, 0);
        hosts.push(host);
    }
    let rules = json!({
        "policy": {"overload": "dagor"}, "scrape": {"interval": "300ms"}, "dagor": {"window": "300ms"},
    });
    let world = Plan::hosts(hosts.iter().map(Host::row).collect())
        .with(json!({"clusters": {"rules": rules}}))
        .start()
        .await;
    let load = Load::start(world.egress, 150, resetting);
    // Fifty windows, in which a level that falls by a tenth each time would be at nothing.
    load.next(2_250).await;
    let answers = load.finish().await;
    let shed = answers.iter().filter(|answer| answer.status == Some(429));
    assert_eq!(shed.count(), 0, "of {}", answers.len());
    let lost = |answer: &&Answer| !is_reset(answer.number) && answer.status != Some(200);
    let lost: Vec<_> = answers.iter().filter(lost).collect();
    assert!(lost.is_empty(), "{} others, as {:#?}", lost.len(), lost[0]);
    assert_eq!(
        world.control_metric("weir_control_shed_total").await,
        Some(0.0)
    );
}
