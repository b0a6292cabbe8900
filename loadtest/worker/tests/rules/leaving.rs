// SPDX-License-Identifier: Apache-2.0
//! Clients that leave in the middle.

use crate::bucket::{Bucket, Mood};
use crate::client::{BUSY, HIGH_QUEUED, ITEMS, LOW_QUEUED, ended, ran};
use crate::reference::expected;
use crate::shop::{TABLE_1, TABLE_2, items, job, plain};
use crate::worker::Worker;
use serde_json::json;

#[tokio::test]
async fn a_client_that_leaves_takes_its_waiting_job_with_it() {
    let bucket = Bucket::start(&[("a", TABLE_1), ("b", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--cores", "1"]).await;
    bucket.set("a", Mood::Held);
    let running = worker.send(&plain("a")).await;
    worker.until(BUSY, 1).await;
    let waiting = worker.send(&job("b", "high", json!({}))).await;
    worker.until(HIGH_QUEUED, 1).await;
    drop(waiting);
    worker.until(HIGH_QUEUED, 0).await;
    worker.until(&ended("cancelled"), 1).await;
    bucket.set("a", Mood::Well);
    running.answer().await.is(TABLE_1.as_bytes());
    assert_eq!(bucket.asked(), ["a"]);
}

#[tokio::test]
async fn a_fetch_whose_client_left_runs_to_its_end_and_serves_the_next_one() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--cores", "1"]).await;
    bucket.set("a", Mood::Held);
    let gone = worker.send(&job("a", "low", json!({}))).await;
    worker.until(BUSY, 1).await;
    drop(gone);
    worker.until(&ended("cancelled"), 1).await;
    assert_eq!(worker.metric(BUSY).await, 1);
    bucket.set("a", Mood::Well);
    worker.until_idle().await;
    assert_eq!(worker.metric(ITEMS).await, 1);
    let answer = worker.job(&job("a", "low", json!({}))).await;
    answer.is(TABLE_2.as_bytes());
    assert_eq!(answer.header("x-worker-cache"), Some("hit"));
    assert_eq!(bucket.asked(), ["a"]);
}

#[tokio::test]
async fn a_fetch_whose_client_left_is_stopped_when_it_takes_too_long() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    let flags = ["--cores", "1", "--unwanted-seconds", "1"];
    let worker = Worker::start(&bucket, &flags).await;
    bucket.set("a", Mood::Held);
    let gone = worker.send(&job("a", "low", json!({}))).await;
    worker.until(BUSY, 1).await;
    drop(gone);
    // The bucket never lets it go.
    worker.until_idle().await;
    assert_eq!(worker.metric(ITEMS).await, 0);
    bucket.set("a", Mood::Well);
    let answer = worker.job(&job("a", "low", json!({}))).await;
    answer.is(TABLE_2.as_bytes());
    assert_eq!(answer.header("x-worker-cache"), Some("miss"));
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_of_an_answer_frees_its_cores_and_spoils_nothing() {
    let many = items(12_000, 600);
    let bucket = Bucket::start(&[("a", &many)]).await;
    let worker = Worker::start(&bucket, &["--cores", "2"]).await;
    let request = job("a", "low", json!({}));
    for bytes in [1, 100_000, 1_000_000] {
        let mut leaving = worker.send(&request).await;
        leaving.read(bytes).await;
        drop(leaving);
        worker.until_idle().await;
    }
    let mut waiting = worker
        .send(&job("a", "low", json!({"sort": [{"field": "title"}]})))
        .await;
    waiting.read(1).await;
    worker
        .job(&request)
        .await
        .is(&expected(&many, &request).await);
    drop(waiting);
    worker.until_idle().await;
    // Items, shared rules and own rules, each once; whoever left was no time-out.
    assert_eq!(worker.metric(ITEMS).await, 3);
    assert_eq!(worker.metric(&ran("feed_source")).await, 1);
    assert_eq!(worker.metric(&ended("timed_out")).await, 0);
    let ends = worker.metric(&ended("done")).await + worker.metric(&ended("cancelled")).await;
    assert_eq!(ends, 5);
    assert_eq!(worker.metric(LOW_QUEUED).await, 0);
}
