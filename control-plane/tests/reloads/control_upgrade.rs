// SPDX-License-Identifier: Apache-2.0
//! Another weir-control in place of the one there is.

use crate::client::Answer;
use crate::config::select;
use crate::process;
use crate::steady::Steady;
use crate::world::{Plan, World};

/// Resources of Envoy's own types that weir-control has sent.
const OF_ENVOY: [&str; 5] = [
    "Cluster",
    "ClusterLoadAssignment",
    "Listener",
    "RouteConfiguration",
    "TypedExtensionConfig",
];

async fn epoch(world: &World) -> String {
    let epoch = async || Some(world.tables().await?["epoch"].as_str()?.to_owned());
    world.until("an epoch", epoch).await
}

/// Waits until the filter has accepted a table of this epoch.
async fn until_tables_of(world: &World, epoch: &str) {
    let accepted = async || {
        let tables = world.tables().await?;
        let proxies = tables["proxies"].as_array()?;
        let versions = proxies.iter().filter_map(|proxy| {
            let mut kinds = proxy["accepted"].as_object()?.iter();
            let (_, tables) = kinds.find(|(kind, _)| kind.ends_with("weir.v1.HostTable"))?;
            tables["rules"].as_str()
        });
        let mut versions = versions.filter(|version| version.starts_with(epoch));
        versions.next().map(|_| ())
    };
    world.until("tables of the new process", accepted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn weir_control_is_replaced_on_its_port() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    let mut world = Plan::workers(3, &[]).start().await;
    let load = Steady::start(world.egress).await;
    for _ in 0..3 {
        let before = epoch(&world).await;
        let mut old = world.control.take().unwrap();
        old.signal("TERM");
        load.until_ended("weir-control", || old.has_ended()).await;
        world.start_control();
        let now = epoch(&world).await;
        assert_ne!(before, now, "another process is another epoch");
        until_tables_of(&world, &now).await;
        load.next(20).await;
        // Envoy has what has not changed, and says so.
        for kind in OF_ENVOY {
            let sent = format!("weir_xds_resources_total{{type=\"{kind}\"}}");
            let sent = world.control_metric(&sent).await.unwrap_or(0.0);
            assert_eq!(sent, 0.0, "{kind}");
        }
    }
    load.assert_informed().await;
    world.prove_tables_arrive("baseline", "baseline").await;
}

/// Two endpoints in the cluster of weir-control: the next one is there before the last one goes.
#[tokio::test(flavor = "multi_thread")]
async fn weir_control_is_replaced_by_one_beside_it() {
    let mut world = Plan::workers(3, &[]).start().await;
    let second = process::free_address();
    let sidecar = world.start_sidecar_of_both(second).await;
    let egress = sidecar.listener("egress").await;
    let load = Steady::start(egress).await;

    let _next = world.start_second_control(second);
    load.next(20).await;
    let mut old = world.control.take().unwrap();
    old.signal("TERM");
    load.until_ended("weir-control", || old.has_ended()).await;
    // A change that only the next one knows of.
    world.configure_second(second, select("baseline"));
    load.until("the new policy", |answer: &Answer| {
        answer.reason == "baseline"
    })
    .await;
    load.assert_informed().await;
}
