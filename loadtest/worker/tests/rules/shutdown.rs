// SPDX-License-Identifier: Apache-2.0
//! SIGTERM and SIGKILL while jobs run.

use serde_json::json;
use tokio::time::{Duration, sleep};

use crate::bucket::{Bucket, Mood};
use crate::client::{BUSY, IN_PROGRESS, LOW_QUEUED, ended};
use crate::http::Exchange;
use crate::local::Local;
use crate::reference::expected;
use crate::shop::{LISTING_1, TABLE_1, TABLE_2, items, job, plain};
use crate::worker::Worker;

#[tokio::test]
async fn jobs_that_end_within_the_drain_are_answered() {
    let bucket = Bucket::start(&[("a", TABLE_1), ("b", TABLE_1)]).await;
    let flags = ["--cores", "1", "--drain-seconds", "600"];
    let mut worker = Worker::start(&bucket, &flags).await;
    assert_eq!(worker.get("/ready").await.status, 200);
    bucket.set("a", Mood::Held);
    let running = worker.send(&job("a", "low", json!({}))).await;
    worker.until(BUSY, 1).await;
    let waiting = worker.send(&job("b", "low", json!({}))).await;
    worker.until(LOW_QUEUED, 1).await;
    worker.terminate().await;
    worker.until_draining().await;
    let late = worker.send(&plain("b")).await;
    worker.until(LOW_QUEUED, 2).await;
    bucket.set("a", Mood::Well);
    running.answer().await.is(TABLE_2.as_bytes());
    waiting.answer().await.is(TABLE_2.as_bytes());
    late.answer().await.is(TABLE_1.as_bytes());
    worker.leaves_well().await;
}

#[tokio::test]
async fn jobs_that_outlive_the_drain_are_told_so() {
    let bucket = Bucket::start(&[("a", TABLE_1), ("b", TABLE_1)]).await;
    let mut worker = Worker::start(&bucket, &["--cores", "1", "--drain-seconds", "0"]).await;
    bucket.set("a", Mood::Held);
    let running = worker.send(&plain("a")).await;
    worker.until(BUSY, 1).await;
    let waiting = worker.send(&plain("b")).await;
    worker.until(LOW_QUEUED, 1).await;
    worker.terminate().await;
    running
        .answer()
        .await
        .says(503, &["cancelled: the host is shutting down"]);
    waiting
        .answer()
        .await
        .says(503, &["cancelled: the host is shutting down"]);
    worker.leaves_well().await;
}

#[tokio::test]
async fn a_fetch_that_nobody_waits_for_does_not_keep_the_host() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    let mut worker = Worker::start(&bucket, &["--drain-seconds", "600"]).await;
    bucket.set("a", Mood::Held);
    let gone = worker.send(&plain("a")).await;
    worker.until(BUSY, 1).await;
    drop(gone);
    worker.until(&ended("cancelled"), 1).await;
    worker.terminate().await;
    worker.leaves_well().await;
}

#[tokio::test]
async fn a_host_that_was_killed_begins_anew() {
    let bucket = Bucket::start(&[("12345", TABLE_1), ("b", TABLE_1)]).await;
    let mut worker = Worker::start(&bucket, &["--cores", "1"]).await;
    worker.job(LISTING_1).await.is(TABLE_2.as_bytes());
    let before = worker.cache().await;
    assert_eq!(before["added"], json!(["12345"]));
    bucket.set("b", Mood::Held);
    let lost = worker.send(&plain("b")).await;
    worker.until(BUSY, 1).await;
    worker.kill().await;
    let lost = lost.answer().await;
    assert_eq!((lost.status, lost.whole), (0, false));

    bucket.set("b", Mood::Well);
    let worker = Worker::start(&bucket, &["--cores", "1"]).await;
    let after = worker.cache().await;
    assert_ne!(before["epoch"], after["epoch"]);
    assert_eq!(after["added"], json!([]));
    let asked = format!(
        "/cache?since={}&epoch={}",
        before["version"], before["epoch"]
    );
    assert!(worker.get(&asked).await.text().contains(r#""reset":true"#));
    let again = worker.job(LISTING_1).await;
    again.is(TABLE_2.as_bytes());
    assert_eq!(again.header("x-worker-cache"), Some("miss"));
    worker.job(&plain("b")).await.is(TABLE_1.as_bytes());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_being_sent_is_finished_within_the_drain() {
    let many = items(130, 60_000);
    let mut host = Local::start("a", &many).await;
    let head = "POST / HTTP/1.1\r\n";
    let mut slow = Exchange::send(&host.0, head, plain("a").as_bytes()).await;
    slow.read(100_000).await;
    host.terminate();
    sleep(Duration::from_secs(20)).await;
    assert!(
        !host.served.is_finished(),
        "the host left in the middle of an answer"
    );
    slow.answer().await.is(&expected(&many, &plain("a")).await);
    (&mut host.served).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_second_signal_changes_nothing() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    let mut worker = Worker::start(&bucket, &["--drain-seconds", "600"]).await;
    bucket.set("a", Mood::Held);
    let running = worker.send(&plain("a")).await;
    worker.until(IN_PROGRESS, 1).await;
    worker.terminate().await;
    worker.until_draining().await;
    worker.terminate().await;
    bucket.set("a", Mood::Well);
    running.answer().await.is(TABLE_1.as_bytes());
    worker.leaves_well().await;
}

#[tokio::test]
async fn a_connection_without_a_request_does_not_keep_the_host() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    let mut worker = Worker::start(&bucket, &["--drain-seconds", "600"]).await;
    let silent = tokio::net::TcpStream::connect(worker.0).await.unwrap();
    // The next connection is served after it was accepted.
    worker.job(&plain("a")).await.is(TABLE_1.as_bytes());
    worker.terminate().await;
    worker.leaves_well().await;
    drop(silent);
}
