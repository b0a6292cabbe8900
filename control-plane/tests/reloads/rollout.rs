// SPDX-License-Identifier: Apache-2.0
//! A policy on its way: in shadow, for a tenth of the keys, for all, and back; and one that does harm.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::{Value, json};
use weir_fleet::view::receipt::{ReceiptView, Replay};

use crate::client::{Answer, Headers, keyed};
use crate::load::{Load, assert_all_ok};
use crate::world::{Plan, World};

const NOT_STEERED: &str = "not_steered";
/// As [`keyed`] has them.
const KEYS: usize = 20;

fn mode(mode: &str) -> Value {
    json!({"clusters": {"rules": {"policy": {"mode": mode, "receipt_every": 1}}}})
}

/// Waits until so many answers in a row are of requests that were steered, or were not.
async fn until_all(load: &Load, are_steered: bool) -> Vec<Answer> {
    let right = move |answer: &Answer| (answer.reason != NOT_STEERED) == are_steered;
    let enough = move |answers: &[Answer]| {
        let last = answers.iter().rev().take(KEYS);
        answers.len() >= KEYS && last.into_iter().all(right)
    };
    load.until("a mode", load.sent(), enough).await
}

async fn receipts(world: &World) -> Vec<ReceiptView> {
    let page = world.page("/receipts").await.unwrap();
    let lines = page.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_goes_from_shadow_to_some_keys_to_all_and_back_and_no_request_fails() {
    let mut world = Plan::workers(3, &[]).with(mode("shadow")).start().await;
    let load = Load::start(world.egress, 100, keyed);
    until_all(&load, false).await;
    let compared = async || {
        let page = world.page("/shadow?cluster=rules").await?;
        let shadow: Value = serde_json::from_str(&page).ok()?;
        (shadow["left"].as_u64()? > 100 && shadow["forecast"]["hits"].is_f64()).then_some(shadow)
    };
    let shadow = world.until("a comparison", compared).await;
    assert_eq!(
        (&shadow["mode"], &shadow["steered"]),
        (&json!("shadow"), &json!(0))
    );

    world.configure(mode("30%"));
    let some = |answers: &[Answer]| answers.iter().any(|it| it.reason != NOT_STEERED);
    load.until("a steered request", load.sent(), some).await;
    let mut by_key = BTreeMap::<usize, BTreeSet<bool>>::new();
    for answer in load.next(4 * KEYS).await {
        let is_steered = answer.reason != NOT_STEERED;
        by_key
            .entry(answer.number % KEYS)
            .or_default()
            .insert(is_steered);
    }
    let together = by_key.values().filter(|ways| ways.len() == 1).count();
    assert_eq!(together, by_key.len(), "a key's requests stay together");
    let steered = by_key.values().filter(|ways| ways.contains(&true)).count();
    assert!((1..KEYS).contains(&steered), "{steered} of {KEYS} keys");

    let mut both = mode("live");
    both["clusters"]["rules"]["policy"]["beside"] = json!("random");
    world.configure(both);
    until_all(&load, true).await;
    let second = async || {
        let page = world.page("/shadow?cluster=rules").await?;
        let mut shadow: Value = serde_json::from_str(&page).ok()?;
        let beside = shadow["beside"].take();
        (beside["receipts"].as_u64()? > 50 && beside["forecast"]["mean_ms"].is_f64())
            .then_some(beside)
    };
    let second = world.until("a second selection's receipts", second).await;
    assert_eq!(second["selection"], "random");
    let elsewhere = second["elsewhere"].as_f64().unwrap();
    assert!(
        elsewhere > 0.2,
        "of three hosts {elsewhere} others were drawn"
    );
    world.configure(mode("shadow"));
    until_all(&load, false).await;
    assert_all_ok(&load.finish().await);

    // The filter decided in Envoy's machine, and this process decides again.
    let receipts = receipts(&world).await;
    assert!(receipts.len() > 100, "{} receipts", receipts.len());
    assert!(receipts.iter().any(|receipt| receipt.steered));
    for receipt in &receipts {
        assert_eq!(receipt.replay(), Replay::Agrees, "{receipt:#?}");
    }
}

/// A second. Of the one core that a host has each job takes a tenth of a second: half of them are more than it can do, on
/// however busy a machine.
const JOBS: u32 = 24;

fn slow(number: usize) -> Headers {
    let mut headers = keyed(number);
    headers.push(("x-emulate-run-us", "100000".to_owned()));
    headers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_brings_half_of_the_keys_to_one_host_is_withdrawn() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    let mut world = Plan::workers(3, &["--cores", "1"]).start().await;
    let load = Load::start(world.egress, JOBS, slow);
    let first = world.addresses()[0];
    let mut plan = "key,address\n".to_owned();
    for number in 0..KEYS {
        let headers = keyed(number);
        let (_, key) = headers
            .iter()
            .find(|(name, _)| *name == "x-weir-key")
            .unwrap();
        writeln!(plan, "{key},{first}").unwrap();
    }
    world.replace("plan.csv", &plan);
    world.configure(json!({"clusters": {"rules": {
        "policy": {"selection": "caching_plan", "mode": "50%"},
        "caching_plan": "plan.csv",
        "cache": null,
    }}}));
    let planned = |answers: &[Answer]| answers.iter().any(|it| it.reason == "planned");
    load.until("the plan", load.sent(), planned).await;
    let withdrawn = async || {
        let tables = world.tables().await?;
        let reason = tables["clusters"]["rules"]["withdrawn"]
            .as_str()?
            .to_owned();
        (!reason.is_empty()).then_some(reason)
    };
    let reason = world.until("a withdrawal", withdrawn).await;
    assert!(reason.contains("took"), "{reason}");
    until_all(&load, false).await;
    assert_all_ok(&load.finish().await);
}
