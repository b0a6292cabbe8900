// SPDX-License-Identifier: Apache-2.0
//! Jobs that want the same, and jobs that want the same core.

use serde_json::json;

use crate::bucket::{Bucket, Mood};
use crate::client::{BUSY, HIGH_QUEUED, IN_PROGRESS, LOW_QUEUED, ended, ran};
use crate::reference::expected;
use crate::shop::{TABLE_1, TABLE_2, items, job, laborious, plain};
use crate::worker::Worker;

#[tokio::test]
async fn two_equal_jobs_at_once_share_one_fetch() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--cores", "2"]).await;
    bucket.set("a", Mood::Held);
    let first = worker.send(&job("a", "low", json!({}))).await;
    worker.until(BUSY, 1).await;
    let second = worker.send(&job("a", "low", json!({}))).await;
    worker.until(IN_PROGRESS, 2).await;
    assert_eq!(worker.metric(BUSY).await, 1);
    bucket.set("a", Mood::Well);
    let (first, second) = (first.answer().await, second.answer().await);
    first.is(TABLE_2.as_bytes());
    second.is(TABLE_2.as_bytes());
    assert_eq!(first.header("x-worker-cache"), Some("miss"));
    assert_eq!(second.header("x-worker-cache"), Some("shared"));
    assert_eq!(bucket.asked(), ["a"]);
    for (kind, times) in [
        ("feed_source", 1),
        ("shared_operators", 1),
        ("operators", 1),
        ("output_feed", 2),
    ] {
        assert_eq!(worker.metric(&ran(kind)).await, times, "{kind}");
    }
}

#[tokio::test]
async fn high_jobs_go_before_low_ones_and_the_load_tells_who_waits() {
    let bucket = Bucket::start(&[("x", TABLE_1), ("l", TABLE_1), ("h", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--cores", "1"]).await;
    bucket.set("x", Mood::Held);
    let running = worker.send(&job("x", "low", json!({}))).await;
    worker.until(BUSY, 1).await;
    let low = worker.send(&job("l", "low", json!({}))).await;
    worker.until(LOW_QUEUED, 1).await;
    let high = worker.send(&job("h", "high", json!({}))).await;
    worker.until(HIGH_QUEUED, 1).await;

    let refused = worker.job("{}").await;
    let load = refused.header("endpoint-load-metrics").unwrap();
    for part in [
        "weir.in_progress=3,",
        "weir.queued.0=1,",
        "weir.queued.16=1,",
        "weir.queuing_delay_seconds=",
    ] {
        assert!(load.contains(part), "{part} is not in {load}");
    }
    let stalled = r#"weir_host_stalled_joblets{kind="feed_source"}"#;
    assert_eq!(worker.metric(stalled).await, 2);

    bucket.set("x", Mood::Well);
    for job in [running, low, high] {
        job.answer().await.is(TABLE_2.as_bytes());
    }
    // The running job is low: what is left of it goes after the high job, too.
    assert_eq!(bucket.asked(), ["x", "h", "l"]);
    worker.until_idle().await;
    let idle = worker.job("{}").await;
    let load = idle.header("endpoint-load-metrics").unwrap();
    for part in [
        "weir.in_progress=0,",
        "weir.queued.0=0,",
        "weir.queued.16=0",
    ] {
        assert!(load.contains(part), "{part} is not in {load}");
    }
}

#[tokio::test]
async fn a_low_client_that_leaves_does_not_disturb_the_high_job_that_shares_its_fetch() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--cores", "1"]).await;
    bucket.set("a", Mood::Held);
    let low = worker.send(&plain("a")).await;
    worker.until(BUSY, 1).await;
    let high = worker.send(&job("a", "high", json!({}))).await;
    worker.until(IN_PROGRESS, 2).await;
    drop(low);
    worker.until(&ended("cancelled"), 1).await;
    worker.until(IN_PROGRESS, 1).await;
    bucket.set("a", Mood::Well);
    let answer = high.answer().await;
    answer.is(TABLE_2.as_bytes());
    assert_eq!(answer.header("x-worker-cache"), Some("shared"));
    assert_eq!(bucket.asked(), ["a"]);
}

#[tokio::test]
async fn a_job_that_times_out_does_not_take_a_shared_fetch_with_it() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--cores", "1"]).await;
    bucket.set("a", Mood::Held);
    let patient = worker.send(&job("a", "low", json!({}))).await;
    worker.until(BUSY, 1).await;
    let hasty = json!({"timeouts": {"evaluate_seconds": 0.05}});
    worker
        .job(&job("a", "high", hasty))
        .await
        .says(504, &["evaluate"]);
    bucket.set("a", Mood::Well);
    patient.answer().await.is(TABLE_2.as_bytes());
    assert_eq!(bucket.asked(), ["a"]);
}

#[tokio::test]
async fn rules_that_run_make_room_for_a_high_job_and_lose_nothing() {
    let many = items(12_000, 100);
    let bucket = Bucket::start(&[("a", &many), ("b", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--cores", "1", "--order", "suspending"]).await;
    for project in ["a", "b"] {
        worker.prefetch(&plain(project)).await.is(b"");
    }
    let slow = laborious("a", 3, json!({}));
    let low = worker.send(&slow).await;
    worker.until(BUSY, 1).await;
    let high = worker.job(&job("b", "high", json!({}))).await;
    high.is(TABLE_2.as_bytes());
    let suspended = r#"weir_host_joblet_suspensions_total{kind="operators"}"#;
    assert_ne!(worker.metric(suspended).await, 0);
    low.answer().await.is(&expected(&many, &slow).await);
    assert_eq!(worker.metric(&ran("operators")).await, 2);
    worker.until_idle().await;
}

#[tokio::test]
async fn a_job_that_is_left_while_it_makes_room_is_stopped() {
    let many = items(12_000, 100);
    let bucket = Bucket::start(&[("a", &many), ("b", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--cores", "1", "--order", "suspending"]).await;
    worker.prefetch(&plain("a")).await.is(b"");
    let low = worker.send(&laborious("a", 30, json!({}))).await;
    worker.until(BUSY, 1).await;
    // Its fetch keeps the core for as long as the test wants.
    bucket.set("b", Mood::Held);
    let high = worker.send(&job("b", "high", json!({}))).await;
    let suspended = r#"weir_host_joblet_suspensions_total{kind="operators"}"#;
    worker.until(suspended, 1).await;
    worker.until(BUSY, 1).await;
    drop(low);
    worker.until(IN_PROGRESS, 1).await;
    let failed = r#"weir_host_joblets_failed_total{kind="operators"}"#;
    worker.until(failed, 1).await;
    bucket.set("b", Mood::Well);
    high.answer().await.is(TABLE_2.as_bytes());
    worker.until_idle().await;
}
