// SPDX-License-Identifier: Apache-2.0
//! Links in weir-control.

use weirctl::doctor::finding::Verdict::Broken;

use crate::bench::{Plan, named};

#[tokio::test]
async fn a_weir_control_that_does_not_run() {
    let bench = Plan::new().without_control().start().await;
    bench
        .until_named(Broken, "weir-control", "cannot be read")
        .await;
    bench
        .until_named(Broken, "control_cluster", "no connection to")
        .await;
}

#[tokio::test]
async fn a_configuration_that_is_refused() {
    let bench = Plan::new().start().await;
    bench.until_sound().await;
    bench.configure("clusters: { rules: { hots: [] } }");
    bench.until_named(Broken, "weir-control", "hots").await;
}

#[tokio::test]
async fn two_weir_controls_that_know_nothing_of_each_other() {
    let bench = Plan::new().start().await;
    let (_second, admin) = bench.start_second_control();
    let diagnosis = bench.diagnosis_with(&[admin]).await;
    let words = "know nothing of each other";
    assert!(
        named(&diagnosis, Broken, "leader", words).is_some(),
        "{diagnosis}"
    );
}
