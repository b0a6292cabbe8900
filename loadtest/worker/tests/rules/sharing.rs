// SPDX-License-Identifier: Apache-2.0
//! Jobs that want the same, and jobs that want the same core.

use serde_json::json;

use crate::bucket::{Bucket, Mood};
use crate::client::{BUSY, HIGH_QUEUED, IN_PROGRESS, LOW_QUEUED, ended, ran};
use crate::shop::{TABLE_1, TABLE_2, job, plain};
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
