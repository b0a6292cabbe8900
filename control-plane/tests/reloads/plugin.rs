// SPDX-License-Identifier: Apache-2.0
//! Another plugin configuration, by ECDS from weir-control.

use serde_json::{Value, json};

use crate::client::Answer;
use crate::steady::Steady;
use crate::world::{Plan, World};

fn keys_in(header: &str) -> Value {
    let rules = json!({"table": "rules", "key": {"header": header}});
    json!({"standalone": {"filter": {"config": {"clusters": {"rules": rules}}}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn plugin_configurations_of_weir_control_follow_each_other() {
    let mut world: World = Plan::workers(3, &[]).start().await;
    let load = Steady::start(world.egress).await;
    for _ in 0..3 {
        world.configure(keys_in("x-project"));
        load.until("no key", |answer: &Answer| answer.reason == "no_key")
            .await;
        load.next(20).await;
        world.configure(keys_in("x-weir-key"));
        load.until("a key", |answer: &Answer| answer.reason == "known_cached")
            .await;
        load.next(20).await;
    }
    load.assert_informed().await;
    world.prove_tables_arrive("baseline", "baseline").await;
    world
        .until_control("weir_xds_streams{kind=\"weir\"}", |streams| streams == 1.0)
        .await;
}
