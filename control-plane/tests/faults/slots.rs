// SPDX-License-Identifier: Apache-2.0
//! Delay scheduling: emulated hosts of one core, whose requests wait in the sidecar for the core that has their data.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};

use crate::client::{Answer, Headers, keyed};
use crate::world::{Plan, World};

/// What a host needs to fetch the data of a key.
const FETCH: Duration = Duration::from_secs(3);
/// So many connections come to every one of a few threads, but once in a million times.
const THREADS_ARE_MET: usize = 20;
const HELD: &str = "weir_held_requests";
const HELD_FOR_DATA: &str = r#"weir_decisions_total{reason="held_for_cached""#;

/// Two hosts, of which the one named has the data of the key, as weir-control and each thread of the sidecar know.
async fn start() -> (World, SocketAddr) {
    let fetch = FETCH.as_micros().to_string();
    let plan = Plan::workers(2, &["--cores", "1", "--fetch-base-us", &fetch]);
    let policy = json!({"selection": "estimate", "overload": "slots", "stale_after": "30s"});
    let rules = json!({"policy": policy, "scrape": {"interval": "50ms"}});
    let mut world = plan
        .with(json!({"clusters": {"rules": rules}}))
        .start()
        .await;
    let row = |address| json!({"address": address, "capacity_millicores": 1000});
    let hosts = Value::Array(world.addresses().into_iter().map(row).collect());
    world.replace("hosts.yaml", &hosts.to_string());
    // Away until all know better, or a thread that does not would have it fetch the data as well.
    world.workers[1].kill();
    // By each of the sidecar's threads, of which a new connection may get any.
    let known = async || {
        for _ in 0..THREADS_ARE_MET {
            let answer = world.caller().send("/", &job(Duration::ZERO)).await;
            (answer.reason == "known_cached").then_some(())?;
        }
        Some(())
    };
    world.until("a sidecar that knows the holder", known).await;
    world.start_worker(1);
    let learned = async || {
        let page = explain(&world).await?;
        let other = page["ranked"].get(1)?;
        let fetch = other["estimate"]["fetch_ms"].as_f64()?;
        let is_learned = page["reason"] == "known_cached" && fetch >= FETCH.as_millis() as f64;
        (is_learned && other["capacity_millicores"] == 1000).then_some(())
    };
    world.until("what a fetch costs", learned).await;
    let holder = world.addresses()[0];
    (world, holder)
}

/// What weir-control knows of the hosts.
async fn explain(world: &World) -> Option<Value> {
    let page = world.page("/explain?cluster=rules&key=k1").await?;
    serde_json::from_str(&page).ok()
}

/// For the key, and so long to run.
fn job(run: Duration) -> Headers {
    let mut headers = keyed(1);
    headers.push(("x-emulate-run-us", run.as_micros().to_string()));
    headers
}

fn send(world: &World, run: Duration) -> impl Future<Output = Answer> + Send + 'static {
    let (caller, headers) = (world.caller(), job(run));
    async move { caller.send("/", &headers).await }
}

/// Has the holder's core taken for so long, again and again, and others come until one of them is held. The rest came to
/// a thread of the sidecar that had not heard of the holder's work, and wait at the holder: each hears of it in its own
/// time, so it need not be the last that is held.
async fn one_is_held(world: &World, run: Duration) -> (JoinHandle<Answer>, JoinSet<Answer>) {
    let first = tokio::spawn(send(world, run));
    // By the host's own word: what is on its way there can be overtaken.
    let runs = async || {
        let page = explain(world).await?;
        let hosts = [page["ranked"].as_array()?, page["others"].as_array()?];
        let mut hosts = hosts.into_iter().flatten();
        hosts.find(|host| host["in_progress"] == 1).map(drop)
    };
    world.until("a busy holder", runs).await;
    let others = RefCell::new(JoinSet::new());
    let first = RefCell::new(first);
    let held = async || {
        let is_over = first.borrow().is_finished();
        if is_over {
            let again = tokio::spawn(send(world, run));
            let before = first.replace(again);
            others.borrow_mut().spawn(async { before.await.unwrap() });
        }
        others.borrow_mut().spawn(send(world, Duration::ZERO));
        (world.envoy_metric(HELD).await >= Some(1.0)).then_some(())
    };
    world.until("a held request", held).await;
    (first.into_inner(), others.into_inner())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_waits_for_a_busy_host_that_has_its_data_while_another_is_idle() {
    let (world, holder) = start().await;
    let (first, others) = one_is_held(&world, FETCH / 5).await;
    let mut answers = others.join_all().await;
    answers.push(first.await.unwrap());
    for answer in answers {
        let from = (answer.status, answer.host);
        assert_eq!(from, (Some(200), Some(holder)), "{answer:#?}");
    }
    world.until_envoy(HELD, |held| held == 0.0).await;
    // Not because it knew of no other host.
    let for_its_data = world.envoy_metric(HELD_FOR_DATA).await;
    assert!(for_its_data >= Some(1.0), "{for_its_data:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_waits_no_longer_than_fetching_would_take_and_goes_to_the_idle_host() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    let (world, holder) = start().await;
    // Whoever waits at the holder is answered later, however slow the machine is.
    let (first, mut others) = one_is_held(&world, 20 * FETCH).await;
    let answer = others.join_next().await.unwrap().unwrap();
    assert_eq!(answer.status, Some(200), "{answer:#?}");
    assert_ne!(answer.host, Some(holder), "{answer:#?}");
    first.abort();
}
