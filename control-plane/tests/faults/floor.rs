// SPDX-License-Identifier: Apache-2.0
//! What says that nobody is there while hosts answer: all of them drain, their list is empty, or Envoy does not
//! send requests where the filter says.

use serde_json::json;

use crate::client::keyed;
use crate::hosts::Host;
use crate::load::{Load, assert_all_ok};
use crate::world::Plan;

#[tokio::test(flavor = "multi_thread")]
async fn while_all_hosts_say_that_they_drain_they_answer_every_request() {
    let hosts = [
        Host::start().await,
        Host::start().await,
        Host::start().await,
    ];
    let rows = hosts.iter().map(Host::row).collect();
    let polled = json!({"clusters": {"rules": {"scrape": {"interval": "200ms"}}}});
    let world = Plan::hosts(rows).with(polled).start().await;
    let load = Load::start(world.egress, 50, keyed);
    hosts.iter().for_each(|host| host.drains(true));
    let draining = "weir_control_hosts{cluster=\"rules\",state=\"draining\"}";
    world.until_control(draining, |hosts| hosts == 3.0).await;
    load.next(100).await;
    assert_all_ok(&load.since(0));
    world
        .until_envoy("weir_decisions_total{reason=\"panic\"}", |count| {
            count > 0.0
        })
        .await;
    world
        .until_control("weir_control_panic{cluster=\"rules\"}", |panic| {
            panic == 1.0
        })
        .await;
    hosts.iter().for_each(|host| host.drains(false));
    world.until_control(draining, |hosts| hosts == 0.0).await;
    world
        .until_control("weir_control_panic{cluster=\"rules\"}", |panic| {
            panic == 0.0
        })
        .await;
    load.next(50).await;
    assert_all_ok(&load.finish().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hosts_file_that_is_emptied_leaves_the_hosts_that_there_were() {
    let mut world = Plan::workers(2, &[]).start().await;
    let loads = "weir_control_config_loads_total{result=\"ok\"}";
    let before = world.control_metric(loads).await.unwrap_or(0.0);
    let load = Load::start(world.egress, 50, keyed);
    world.empty_hosts_file();
    world.until_control(loads, |count| count > before).await;
    load.next(100).await;
    assert_all_ok(&load.since(0));
    world
        .until_control("weir_control_hosts_kept{cluster=\"rules\"}", |kept| {
            kept == 2.0
        })
        .await;
    let tables = world.tables().await.unwrap();
    let kept = tables["clusters"]["rules"]["hosts_kept"].as_str();
    assert!(
        kept.is_some_and(|kept| kept.contains("names no host")),
        "{tables:#}"
    );
    world.set_hosts(&world.addresses());
    world
        .until_control("weir_control_hosts_kept{cluster=\"rules\"}", |kept| {
            kept == 0.0
        })
        .await;
    // A cluster that nothing names hosts for is none.
    world.configure(json!({"clusters": {"rules": {"hosts_file": null}}}));
    let refused = async || {
        let tables = world.tables().await?;
        Some(tables["configuration_refused"].as_str()?.to_owned())
    };
    let refusal = world.until("a refusal in /tables", refused).await;
    assert!(
        refusal.contains("clusters.rules.hosts: nothing names hosts"),
        "{refusal}"
    );
    load.next(50).await;
    assert_all_ok(&load.finish().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_envoy_ignores_choices_idle_hosts_shed_nothing_and_both_sides_say_so() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    let hosts = [
        Host::start().await,
        Host::start().await,
        Host::start().await,
        Host::start().await,
    ];
    let dagor = json!({"clusters": {"rules": {
        "scrape": {"interval": "200ms"},
        "policy": {"overload": "dagor"},
        "dagor": {"window": "300ms"},
    }}});
    let rows = hosts.iter().map(Host::row).collect();
    let world = Plan::hosts(rows).with(dagor).start().await;
    let addresses: Vec<_> = hosts.iter().map(|host| host.address).collect();
    let sidecar = world.start_sidecar_that_ignores_choices(&addresses).await;
    let egress = sidecar.listener("egress").await;
    let load = Load::start(egress, 100, keyed);
    let decided = |answers: &[crate::client::Answer]| {
        answers
            .iter()
            .filter(|answer| answer.reason != "no_table")
            .count()
            >= 900
    };
    let answers = load.until("900 decisions by a table", 0, decided).await;
    let shed = answers.iter().filter(|answer| answer.status == Some(429));
    assert_eq!(shed.count(), 0, "of {}", answers.len());
    assert_all_ok(&answers);
    let ignored = async || {
        let page = sidecar.page("/stats/prometheus").await?;
        crate::world::sum(&page, "weir_choices_ignored_total").filter(|count| *count > 0.0)
    };
    world.until("the sidecar's word", ignored).await;
    let metric = "weir_control_choices_ignored{cluster=\"rules\"}";
    world.until_control(metric, |proxies| proxies == 1.0).await;
    assert!(
        sidecar.log().contains("Envoy does not send requests"),
        "{}",
        sidecar.log()
    );
}
