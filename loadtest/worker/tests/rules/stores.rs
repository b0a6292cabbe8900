// SPDX-License-Identifier: Apache-2.0
//! Stores that fail in the middle, are down, or have something new.

use serde_json::json;

use crate::bucket::{Bucket, Mood};
use crate::client::{BUSY, ITEMS, ended};
use crate::reference::expected;
use crate::shop::{TABLE_1, TABLE_2, items, job, plain};
use crate::worker::Worker;

#[tokio::test]
async fn a_fetch_that_is_cut_fails_its_job_alone_and_leaves_nothing() {
    let bucket = Bucket::start(&[("a", TABLE_1), ("b", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--cores", "2"]).await;
    bucket.set("a", Mood::Held);
    let cut = worker.send(&job("a", "low", json!({}))).await;
    worker.until(BUSY, 1).await;
    bucket.until_asked("a", 1).await;
    let other = worker.job(&job("b", "low", json!({}))).await;
    other.is(TABLE_2.as_bytes());
    let before = worker.metric(ITEMS).await;
    bucket.set("a", Mood::Cut);
    let cut = cut.answer().await;
    cut.says(
        502,
        &["s3://items/a.ndjson: the item store gave no usable answer"],
    );
    assert_eq!(worker.cached().await, ["b"]);
    assert_eq!(worker.metric(ITEMS).await, before);
    bucket.set("a", Mood::Well);
    let again = worker.job(&job("a", "low", json!({}))).await;
    again.is(TABLE_2.as_bytes());
    assert_eq!(again.header("x-worker-cache"), Some("miss"));
}

#[tokio::test]
async fn a_store_that_is_down_or_says_no_is_502() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--recheck-seconds", "0"]).await;
    for (status, part) in [
        (500, "gave no usable answer"),
        (403, "refuses access, check the credentials"),
    ] {
        bucket.set("a", Mood::Fails(status));
        worker
            .job(&plain("a"))
            .await
            .says(502, &["s3://items/a.ndjson: ", part]);
        bucket.set("a", Mood::Well);
        bucket.set_down(Some(status));
        worker
            .job(&plain("a"))
            .await
            .says(502, &["s3://items/a.", part]);
        worker
            .prefetch(&plain("a"))
            .await
            .says(502, &["s3://items/a.", part]);
        bucket.set_down(None);
    }
    assert!(worker.cached().await.is_empty());
    worker.job(&plain("a")).await.is(TABLE_1.as_bytes());
}

#[tokio::test]
async fn jobs_that_share_a_fetch_share_its_failure() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--cores", "2"]).await;
    bucket.set("a", Mood::Held);
    let jobs = [
        worker.send(&plain("a")).await,
        worker.send(&job("a", "high", json!({}))).await,
    ];
    worker.until("weir_host_in_progress", 2).await;
    bucket.set("a", Mood::Cut);
    for job in jobs {
        job.answer().await.says(502, &["gave no usable answer"]);
    }
    worker.until_idle().await;
    assert_eq!(worker.metric(&ended("failed")).await, 2);
    assert_eq!(worker.metric(ITEMS).await, 0);
}

#[tokio::test]
async fn what_is_cached_is_served_while_the_store_is_down() {
    let bucket = Bucket::start(&[("a", TABLE_1), ("b", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--recheck-seconds", "0"]).await;
    worker.job(&plain("a")).await.is(TABLE_1.as_bytes());
    bucket.set_down(Some(500));
    let served = worker.job(&plain("a")).await;
    served.is(TABLE_1.as_bytes());
    assert_eq!(served.header("x-worker-cache"), Some("hit"));
    // Other rules on the cached items need no store either.
    worker
        .job(&job("a", "low", json!({})))
        .await
        .is(TABLE_2.as_bytes());
    worker
        .job(&plain("b"))
        .await
        .says(502, &["gave no usable answer"]);
}

#[tokio::test]
async fn new_items_of_a_project_replace_the_old_ones() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--recheck-seconds", "0"]).await;
    worker
        .job(&job("a", "low", json!({})))
        .await
        .is(TABLE_2.as_bytes());
    let new = items(20, 10);
    bucket.put("a", &new);
    let answer = worker.job(&job("a", "low", json!({}))).await;
    answer.is(&expected(&new, &job("a", "low", json!({}))).await);
    assert_eq!(answer.header("x-worker-cache"), Some("miss"));
    assert_eq!(worker.cached().await, ["a"]);
    let again = worker.job(&job("a", "low", json!({}))).await;
    assert_eq!(again.header("x-worker-cache"), Some("hit"));
    let changes = worker.get("/cache?since=1").await.text();
    let changes: serde_json::Value = serde_json::from_str(&changes).unwrap();
    assert_eq!(
        (&changes["added"], &changes["removed"]),
        (&json!([]), &json!([]))
    );
}

#[tokio::test]
async fn items_replaced_after_they_were_found_are_fetched_anew() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    // An hour: the worker thinks that it knows the object.
    let worker = Worker::start(
        &bucket,
        &["--recheck-seconds", "3600", "--cache-bytes", "0"],
    )
    .await;
    worker.job(&plain("a")).await.is(TABLE_1.as_bytes());
    let new = items(20, 10);
    bucket.put("a", &new);
    worker
        .job(&plain("a"))
        .await
        .is(&expected(&new, &plain("a")).await);
}
