// SPDX-License-Identifier: Apache-2.0
//! A plugin configuration that the filter refuses.

use serde_json::json;

use crate::client::{Answer, keyed};
use crate::load::{Load, assert_all_ok};
use crate::world::Plan;

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_plugin_configuration_is_refused_and_shown_and_the_old_one_serves() {
    let mut world = Plan::workers(2, &[]).start().await;
    let load = Load::start(world.egress, 50, keyed);
    let config = |value| json!({"standalone": {"filter": {"config": value}}});
    world.configure(config(json!({"tick": "1 fortnight"})));
    let refused = async || {
        let tables = world.tables().await?;
        Some(tables["configuration_refused"].as_str()?.to_owned())
    };
    let refusal = world.until("a refusal in /tables", refused).await;
    for part in ["standalone.filter.config", "tick: \"1 fortnight\""] {
        assert!(refusal.contains(part), "{refusal}");
    }
    load.next(50).await;
    let old = |answer: &Answer| !answer.reason.is_empty();
    assert!(
        load.since(0).iter().all(old),
        "the old configuration is gone"
    );

    world.configure(config(json!({"tick": "50ms", "debug": false})));
    let new = |answers: &[Answer]| answers.last().is_some_and(|a| a.reason.is_empty());
    load.until("the next configuration", 0, new).await;
    assert_all_ok(&load.finish().await);
}
