// SPDX-License-Identifier: Apache-2.0
//! Links between weir-control and hosts.

use serde_json::json;
use weirctl::doctor::finding::Verdict::{Broken, Poor};

use crate::bench::Plan;
use crate::process;

#[tokio::test]
async fn a_metric_that_has_another_name() {
    let renamed =
        json!({"clusters": {"rules": {"scrape": {"metrics": {"in_progress": "app_jobs"}}}}});
    let bench = Plan::new().control(renamed).start().await;
    bench
        .until_named(Poor, "sources", "app_jobs: not on the page")
        .await;
}

#[tokio::test]
async fn a_page_that_is_not_there() {
    let plan = Plan::new();
    let hosts = plan.workers().map(|address| {
        let nowhere = process::free_address();
        json!({"address": address, "capacity_millicores": 1000, "metrics_address": nowhere})
    });
    let bench = plan
        .control(json!({"clusters": {"rules": {"hosts": hosts}}}))
        .start()
        .await;
    bench.until_named(Broken, "sources", "scrape of").await;
}

#[tokio::test]
async fn cache_contents_that_are_not_there() {
    let moved = json!({"clusters": {"rules": {"cache": {"path": "/nowhere"}}}});
    let bench = Plan::new().control(moved).start().await;
    bench.until_named(Broken, "sources", "cache of").await;
}

#[tokio::test]
async fn hosts_whose_cores_are_not_known() {
    let plan = Plan::new();
    let hosts = plan.workers().map(|address| json!({"address": address}));
    let bench = plan
        .control(json!({"clusters": {"rules": {"hosts": hosts}}}))
        .start()
        .await;
    bench
        .until_named(Poor, "what hosts say", "is not known")
        .await;
}

#[tokio::test]
async fn hosts_that_are_dead() {
    let mut bench = Plan::new().start().await;
    bench.until_sound().await;
    bench.workers.clear();
    bench.until_named(Broken, "sources", "scrape of").await;
}
