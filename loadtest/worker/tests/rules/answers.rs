// SPDX-License-Identifier: Apache-2.0
//! Jobs that go well.

use serde_json::json;

use crate::bucket::Bucket;
use crate::client::{ITEMS, ended, ran};
use crate::reference::expected;
use crate::shop::{LISTING_1, TABLE_1, TABLE_2, items, job, plain};
use crate::worker::Worker;

#[tokio::test]
async fn listing_1_makes_table_2_of_table_1_and_is_a_hit_the_second_time() {
    let bucket = Bucket::start(&[("12345", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &[]).await;
    let first = worker.job(LISTING_1).await;
    first.is(TABLE_2.as_bytes());
    assert_eq!(first.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(first.header("x-worker-cache"), Some("miss"));
    assert_eq!(first.header("x-worker-id"), Some(&*worker.0.to_string()));
    for time in ["x-worker-wait-us", "x-worker-fetch-us", "x-worker-run-us"] {
        let micros = first
            .header(time)
            .and_then(|value| value.parse::<u64>().ok());
        assert!(micros.is_some(), "{time} in {}", first.head);
    }
    let load = first.header("endpoint-load-metrics").unwrap();
    assert!(
        load.starts_with("TEXT named_metrics.weir.in_progress=0,"),
        "{load}"
    );

    let second = worker.job(LISTING_1).await;
    second.is(TABLE_2.as_bytes());
    assert_eq!(second.header("x-worker-cache"), Some("hit"));
    assert_eq!(second.header("x-worker-fetch-us"), Some("0"));
    assert_eq!(worker.cached().await, ["12345"]);
    assert_eq!(bucket.asked(), ["12345"]);
    for (kind, times) in [
        ("feed_source", 1),
        ("shared_operators", 1),
        ("operators", 1),
        ("output_feed", 2),
    ] {
        assert_eq!(worker.metric(&ran(kind)).await, times, "{kind}");
    }
    assert_eq!(worker.metric(&ended("done")).await, 2);
}

#[tokio::test]
async fn the_same_items_are_answered_as_csv_and_as_json() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &[]).await;
    let fields = json!(["id", "title", "availability"]);
    let csv = worker
        .job(&job("a", "low", json!({"format": "csv", "fields": fields})))
        .await;
    let table = "id,title,availability\r\n\
        3,T-shirt “Triangle” Blue,in stock\r\n\
        4,T-shirt “Triangle” Red,out of stock\r\n\
        5,T-shirt “Hexagon”,in stock\r\n";
    csv.is(table.as_bytes());
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    let json = worker
        .job(&job("a", "low", json!({"format": "json"})))
        .await;
    let lines: Vec<_> = TABLE_2.lines().collect();
    json.is(format!("[{}]", lines.join(",")).as_bytes());
    assert_eq!(json.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn another_channel_reuses_the_shared_rules() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &[]).await;
    worker
        .job(&job("a", "low", json!({})))
        .await
        .is(TABLE_2.as_bytes());
    let channel = job(
        "a",
        "low",
        json!({"operators": [{
            "actions": [{"field": "title", "action": "texttransform", "value": "uppercase"}],
        }]}),
    );
    let answer = worker.job(&channel).await;
    answer.is(&expected(TABLE_1, &channel).await);
    assert_eq!(answer.header("x-worker-cache"), Some("hit"));
    for (kind, times) in [
        ("feed_source", 1),
        ("shared_operators", 1),
        ("operators", 2),
    ] {
        assert_eq!(worker.metric(&ran(kind)).await, times, "{kind}");
    }
}

#[tokio::test]
async fn a_job_that_is_not_to_be_cached_leaves_only_the_items() {
    let bucket = Bucket::start(&[("a", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &[]).await;
    let uncached = job("a", "low", json!({"cache": false}));
    worker.job(&uncached).await.is(TABLE_2.as_bytes());
    assert_eq!(worker.metric(ITEMS).await, 1);
    let again = worker.job(&uncached).await;
    again.is(TABLE_2.as_bytes());
    assert_eq!(again.header("x-worker-cache"), Some("hit"));
    assert_eq!(worker.metric(&ran("operators")).await, 2);
}

#[tokio::test]
async fn after_a_prefetch_a_job_is_a_hit() {
    let bucket = Bucket::start(&[("12345", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &[]).await;
    let prefetched = worker
        .prefetch(r#"{"session_id":"s","project_id":12345}"#)
        .await;
    prefetched.is(b"");
    assert_eq!(prefetched.header("x-worker-cache"), Some("miss"));
    assert_eq!(worker.cached().await, ["12345"]);
    let answer = worker.job(LISTING_1).await;
    answer.is(TABLE_2.as_bytes());
    assert_eq!(answer.header("x-worker-cache"), Some("hit"));
    let again = worker
        .prefetch(r#"{"session_id":"s","project_id":12345}"#)
        .await;
    assert_eq!(again.header("x-worker-cache"), Some("hit"));
    assert_eq!(bucket.asked(), ["12345"]);
}

#[tokio::test]
async fn ragged_rows_of_mixed_types_are_items_like_others() {
    let ragged = r#"{"id":1,"price":15.00,"stock":3}

{"title":"only a title"}
{}
{"id":"x","price":"soon","tags":["a",{"b":null}],"sale":true,"color":null,"stock":1e3}
{"id":"","price":"7","title":"ß “q”, \"r\"\n2","extra":"é"}
"#;
    let bucket = Bucket::start(&[("a", ragged)]).await;
    let worker = Worker::start(&bucket, &[]).await;
    for request in [
        job("a", "low", json!({})),
        job("a", "low", json!({"format": "csv", "shared_operators": []})),
        plain("a"),
    ] {
        worker
            .job(&request)
            .await
            .is(&expected(ragged, &request).await);
    }
    let whole = worker.job(&plain("a")).await.text();
    assert!(
        whole.contains(r#""price":"15.00""#) && whole.contains(r#"[\"a\",{\"b\":null}]"#),
        "{whole}"
    );
}

#[tokio::test]
async fn a_project_without_items_gives_an_answer_without_items() {
    let bucket = Bucket::start(&[("a", "\n")]).await;
    let worker = Worker::start(&bucket, &[]).await;
    worker.job(&job("a", "low", json!({}))).await.is(b"");
    worker
        .job(&job("a", "low", json!({"format": "json"})))
        .await
        .is(b"[]");
}

#[tokio::test]
async fn a_large_answer_is_streamed_and_complete() {
    let many = items(9000, 300);
    let bucket = Bucket::start(&[("a", &many)]).await;
    let worker = Worker::start(&bucket, &["--cores", "3"]).await;
    for format in ["ndjson", "csv", "json"] {
        let sort = json!([{"field": "title", "order": "descending"}]);
        let request = job("a", "low", json!({"format": format, "sort": sort}));
        let expected = expected(&many, &request).await;
        assert!(expected.len() > 2 << 20);
        let answer = worker.job(&request).await;
        answer.is(&expected);
        assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
        assert_eq!(answer.header("x-worker-run-us"), None);
        assert!(answer.header("x-worker-wait-us").is_some());
    }
}

#[tokio::test]
async fn the_joblet_log_has_a_line_for_every_joblet_that_ran() {
    let bucket = Bucket::start(&[("12345", TABLE_1)]).await;
    let mut worker = Worker::start(&bucket, &["--joblet-log", "log"]).await;
    worker.job(LISTING_1).await.is(TABLE_2.as_bytes());
    worker.job(LISTING_1).await.is(TABLE_2.as_bytes());
    worker.terminate().await;
    worker.leaves_well().await;
    let log = std::fs::read_to_string(worker.folder.path().join("log")).unwrap();
    let kind = |line: &str| {
        let line: weir_worker::rules::joblet_log::Line = serde_json::from_str(line).unwrap();
        assert!(line.bytes.is_some() && line.cores == 1);
        line.kind
    };
    let kinds: Vec<_> = log.lines().map(kind).collect();
    let expected = [
        "feed_source",
        "shared_operators",
        "operators",
        "output_feed",
        "output_feed",
    ];
    assert_eq!(kinds, expected);
}
