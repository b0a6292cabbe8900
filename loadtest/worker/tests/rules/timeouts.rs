// SPDX-License-Identifier: Apache-2.0
//! Time limits, each with its own error. What ran for the job alone is stopped.

use serde_json::json;
use tokio::time::{Duration, sleep};

use crate::bucket::{Bucket, Mood};
use crate::client::{BUSY, IN_PROGRESS, ITEMS, ended};
use crate::http::Exchange;
use crate::local::Local;
use crate::shop::{LISTING_1, TABLE_1, TABLE_2, items, job, laborious, plain};
use crate::worker::Worker;

const POST: &str = "POST / HTTP/1.1\r\n";

#[tokio::test]
async fn a_job_that_waits_too_long_is_503_and_waits_no_more() {
    let bucket = Bucket::start(&[("a", TABLE_1), ("b", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--cores", "1", "--recheck-seconds", "3600"]).await;
    bucket.set("a", Mood::Held);
    let running = worker.send(&plain("a")).await;
    worker.until(BUSY, 1).await;
    // Somebody has looked for the project, so that the hasty job waits in the queue alone.
    let patient = worker.send(&plain("b")).await;
    worker.until(IN_PROGRESS, 2).await;
    drop(patient);
    worker.until(IN_PROGRESS, 1).await;
    let hasty = job("b", "low", json!({"timeouts": {"queue_seconds": 0.05}}));
    let late = worker.job(&hasty).await;
    late.says(
        503,
        &["timed out: queue took longer than 0.05 s (timeouts.queue_seconds)"],
    );
    worker.until(IN_PROGRESS, 1).await;
    bucket.set("a", Mood::Well);
    running.answer().await.is(TABLE_1.as_bytes());
    worker.until_idle().await;
    assert_eq!(bucket.asked(), ["a"]);
    assert_eq!(worker.metric(&ended("timed_out")).await, 1);
}

#[tokio::test]
async fn a_job_that_computes_too_long_is_504_and_its_fetch_is_stopped() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--cores", "1"]).await;
    bucket.set("a", Mood::Held);
    let hasty = job("a", "low", json!({"timeouts": {"evaluate_seconds": 0.05}}));
    let late = worker.job(&hasty).await;
    late.says(
        504,
        &["timed out: evaluate took longer than 0.05 s (timeouts.evaluate_seconds)"],
    );
    // The bucket still holds its body.
    worker.until_idle().await;
    assert_eq!(worker.metric(ITEMS).await, 0);
    assert_eq!(worker.metric(&ended("timed_out")).await, 1);
    bucket.set("a", Mood::Well);
    worker
        .job(&job("a", "low", json!({})))
        .await
        .is(TABLE_2.as_bytes());
}

#[tokio::test]
async fn rules_that_compute_too_long_are_504_and_stop() {
    let many = items(12_000, 100);
    let bucket = Bucket::start(&[("a", &many)]).await;
    let worker = Worker::start(&bucket, &["--cores", "1"]).await;
    worker.prefetch(&plain("a")).await.is(b"");
    let hasty = laborious("a", 30, json!({"evaluate_seconds": 0.02}));
    let late = worker.job(&hasty).await;
    late.says(504, &["timed out: evaluate took longer than 0.02 s"]);
    worker.until_idle().await;
    // Without a result of the operators, as they were stopped.
    let failed = r#"weir_host_joblets_failed_total{kind="operators"}"#;
    assert_eq!(worker.metric(failed).await, 1);
    worker.job(&plain("a")).await.is(many.as_bytes());
}

#[tokio::test]
async fn a_prefetch_that_takes_too_long_is_504_like_a_job() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--cores", "1"]).await;
    bucket.set("a", Mood::Held);
    let hasty =
        json!({"session_id": "s", "project_id": "a", "timeouts": {"evaluate_seconds": 0.05}});
    let late = worker.prefetch(&hasty.to_string()).await;
    late.says(
        504,
        &["timed out: evaluate took longer than 0.05 s (timeouts.evaluate_seconds)"],
    );
    worker.until_idle().await;
    assert!(worker.cached().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_in_time_is_408() {
    let host = Local::start("12345", TABLE_1).await;
    let slow = Exchange::send_unfinished(&host.0, POST, LISTING_1.as_bytes()).await;
    slow.answer()
        .await
        .says(408, &["the body did not arrive within 10 s"]);
    host.job(LISTING_1).await.is(TABLE_2.as_bytes());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_in_time_gets_no_end() {
    let many = items(130, 60_000);
    let host = Local::start("a", &many).await;
    let request =
        json!({"session_id": "s", "project_id": "a", "timeouts": {"stream_seconds": 0.2}});
    let mut deaf = Exchange::send(&host.0, POST, request.to_string().as_bytes()).await;
    deaf.read(1).await;
    // It is deaf for longer than that.
    sleep(Duration::from_millis(400)).await;
    let cut = deaf.answer().await;
    assert_eq!((cut.status, cut.whole), (200, false));
    assert!(!cut.body.is_empty());
    host.until_idle().await;
    let whole = host.job(&plain("a")).await;
    assert!(whole.whole && whole.body.starts_with(&cut.body));
}

#[tokio::test(start_paused = true)]
async fn a_connection_whose_client_reads_nothing_is_given_up() {
    let many = items(130, 60_000);
    let host = Local::start("a", &many).await;
    let mut deaf = Exchange::send(&host.0, POST, plain("a").as_bytes()).await;
    deaf.read(1).await;
    // More than the 30 s of a connection, far less than the 300 s of an answer.
    sleep(Duration::from_secs(60)).await;
    let cut = deaf.answer().await;
    assert_eq!((cut.status, cut.whole), (200, false));
    host.until_idle().await;
}
