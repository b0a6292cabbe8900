// SPDX-License-Identifier: Apache-2.0
//! Requests and feeds that cannot be served, each with its status and one line that says why; the
//! host serves the next job.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::bucket::{Bucket, Mood};
use crate::client::{BUSY, LOW_QUEUED, ended};
use crate::http::Exchange;
use crate::shop::{LISTING_1, TABLE_1, TABLE_2, items, job, plain};
use crate::worker::Worker;

async fn shirts() -> (Bucket, Worker) {
    let bucket = Bucket::start(&[("12345", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--max-body-bytes", "64Ki"]).await;
    (bucket, worker)
}

#[tokio::test]
async fn a_request_that_makes_no_sense_is_400_with_the_place_in_it() {
    let (_bucket, worker) = shirts().await;
    let own = |condition: Value| {
        job(
            "12345",
            "low",
            json!({"operators": [{"condition": condition}]}),
        )
    };
    for (body, parts) in [
        ("".to_owned(), ["not JSON", "line 1"]),
        ("{\"session_id\"".to_owned(), ["not JSON", "line 1"]),
        ("[]".to_owned(), ["expected", "object"]),
        (
            json!({"session_id": "s"}).to_string(),
            ["missing field", "project_id"],
        ),
        (
            job("../x", "low", json!({})),
            ["project_id: ", "not a project's name"],
        ),
        (
            job("12345", "urgent", json!({})),
            ["priority: ", "\"urgent\" is not one of high, low"],
        ),
        (
            job("12345", "low", json!({"timeouts": {"queue_seconds": 0}})),
            ["timeouts.queue_seconds: ", "over 0"],
        ),
        (
            own(json!([{"field": "x", "filter": "is_odd"}])),
            ["operators[0].condition[0].filter: ", "is_odd"],
        ),
        (
            own(json!([{"field": "x", "filter": "is_less_than"}])),
            ["operators[0].condition[0]", "value"],
        ),
    ] {
        worker.job(&body).await.says(400, &parts);
    }
    let text = worker.post("/", "", b"{\n\xff").await.answer().await;
    text.says(400, &["not UTF-8, line 2, column 1"]);
    let prefetch = worker.prefetch(LISTING_1).await;
    prefetch.says(400, &["unknown field"]);
    let prefetch = worker
        .prefetch(&json!({"session_id": "s", "project_id": "a", "priority": "x"}).to_string())
        .await;
    prefetch.says(400, &["priority: \"x\" is not one of high, low"]);
    worker.job(LISTING_1).await.is(TABLE_2.as_bytes());
}

#[tokio::test]
async fn a_project_that_is_not_there_is_404() {
    let (_bucket, worker) = shirts().await;
    let missing = "project none: neither none.parquet nor none.ndjson is in s3://items";
    worker.job(&plain("none")).await.says(404, &[missing]);
    worker.prefetch(&plain("none")).await.says(404, &[missing]);
}

#[tokio::test]
async fn a_method_that_is_no_job_is_405() {
    let (_bucket, worker) = shirts().await;
    for path in ["/", "/any/path", "/prefetch"] {
        let refused = worker.get(path).await;
        refused.says(405, &["is the JSON body of a POST"]);
        assert_eq!(refused.header("allow"), Some("POST"));
    }
}

#[tokio::test]
async fn a_priority_in_the_header_counts_where_the_body_has_none() {
    let (bucket, worker) = shirts().await;
    bucket.set("12345", Mood::Held);
    let unknown = worker
        .post(
            "/",
            "x-weir-priority: urgent\r\n",
            plain("12345").as_bytes(),
        )
        .await;
    let high = worker
        .post("/", "x-weir-priority: high\r\n", plain("12345").as_bytes())
        .await;
    bucket.until_asked("12345", 1).await;
    bucket.set("12345", Mood::Well);
    assert_eq!(unknown.answer().await.status, 200);
    assert_eq!(high.answer().await.status, 200);
    for class in [0, 16] {
        let began = format!(r#"weir_host_queuing_delay_seconds_count{{priority="{class}"}}"#);
        assert_eq!(worker.metric(&began).await, 1, "class {class}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_413() {
    let (_bucket, worker) = shirts().await;
    let body = vec![b' '; (64 << 10) + 1];
    let large = worker.post("/", "", &body).await.answer().await;
    large.says(413, &["the body is more than 65536 bytes"]);
    worker.job(LISTING_1).await.is(TABLE_2.as_bytes());
}

#[tokio::test]
async fn a_feed_that_is_none_is_422_with_its_line() {
    let mut wide = String::from("{\"id\":\"1\"");
    for column in 0..1_000_000 {
        write!(wide, ",\"c{column}\":1").unwrap();
    }
    wide.push('}');
    let long = format!("{{\"id\":\"1\"}}\n{{\"id\":\"{}\"}}\n", "x".repeat(70_000));
    let bucket = Bucket::start(&[
        ("cut", "{\"id\":\"1\"}\n{\"id\":\n"),
        ("list", "{\"id\":\"1\"}\n\n[1,2]\n"),
        ("wide", &wide),
        ("long", &long),
        ("good", TABLE_1),
    ])
    .await;
    let worker = Worker::start(&bucket, &["--cores", "1"]).await;
    for (project, parts) in [
        (
            "cut",
            ["s3://items/cut.ndjson line 2: ", "not a JSON object"],
        ),
        (
            "list",
            ["s3://items/list.ndjson line 3: ", "not a JSON object"],
        ),
        (
            "wide",
            [
                "s3://items/wide.ndjson: ",
                "more than 10000 different fields",
            ],
        ),
        (
            "long",
            ["s3://items/long.ndjson: line 2: ", "more than 65536 bytes"],
        ),
    ] {
        worker.job(&plain(project)).await.says(422, &parts);
    }
    assert!(worker.cached().await.is_empty());
    worker.job(&plain("good")).await.is(TABLE_1.as_bytes());
    worker.until_idle().await;
    assert_eq!(worker.metric(&ended("failed")).await, 4);
}

#[tokio::test]
async fn a_feed_that_is_not_utf_8_is_422_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("a.ndjson"),
        b"{\"id\":\"1\"}\n{\"id\":\"\xe9\"}\n",
    )
    .unwrap();
    let bucket = Bucket::start(&[]).await;
    let url = folder.path().to_str().unwrap().to_owned();
    let worker = Worker::start_over(&url, &bucket, &[]).await;
    worker
        .job(&plain("a"))
        .await
        .says(422, &["a.ndjson line 2: ", "0xe9 is not UTF-8"]);
}

#[tokio::test]
async fn rules_that_would_explode_are_refused_and_the_next_job_is_served() {
    let (_bucket, worker) = shirts().await;
    let both = json!([{"type": "field", "value": "title"}, {"type": "field", "value": "title"}]);
    let doubling = json!({"field": "title", "action": "combine", "value": both});
    let doubled = vec![doubling; 40];
    let growing =
        json!({"field": "title", "action": "replace", "value": {"search": "", "replace": "xx"}});
    let mut deep = json!({"field": "x", "filter": "is_empty"});
    for _ in 0..60 {
        deep = json!({"field": "x", "filter": "is_empty", "children": [deep]});
    }
    let deeper = format!("{}{}", "[".repeat(30_000), "]".repeat(30_000));
    let regex = |pattern: &str| json!([{"field": "title", "filter": "matches_regex", "value": {"type": "static", "value": pattern}}]);
    let own = |operator: Value| job("12345", "low", json!({"operators": [operator]}));
    for (status, body, part) in [
        (
            422,
            own(json!({"actions": doubled})),
            "`title` grows over 65536 bytes",
        ),
        (
            400,
            own(json!({"actions": [growing]})),
            "operators[0].actions[0].value",
        ),
        (
            400,
            own(json!({"condition": [deep]})),
            "operators[0].condition[0].children",
        ),
        (400, format!("{{\"operators\":{deeper}}}"), ""),
        (
            400,
            own(json!({"condition": regex("(((a{1,900}){1,900}){1,900})")})),
            "operators[0].condition[0].value",
        ),
        (
            400,
            own(json!({"condition": regex(&"x".repeat(5000))})),
            "operators[0].condition[0].value",
        ),
    ] {
        worker.job(&body).await.says(status, &[part]);
        worker.job(LISTING_1).await.is(TABLE_2.as_bytes());
    }
    worker.until_idle().await;
}

#[tokio::test]
async fn an_answer_over_the_limit_is_422_or_ends_broken_but_never_looks_whole() {
    let many = items(3000, 500);
    let bucket = Bucket::start(&[("a", &many)]).await;
    let small = Worker::start(&bucket, &["--max-answer-bytes", "100Ki"]).await;
    small
        .job(&plain("a"))
        .await
        .says(422, &["the answer takes over 102400 bytes"]);
    let large = Worker::start(&bucket, &["--max-answer-bytes", "1Mi", "--cores", "1"]).await;
    let cut = large.job(&plain("a")).await;
    assert_eq!((cut.status, cut.whole), (200, false));
    assert!(cut.body.len() <= 1 << 20);
    large.until_idle().await;
}

#[tokio::test]
async fn one_job_too_many_is_503_and_the_load_says_why() {
    let bucket = Bucket::start(&[("a", TABLE_1), ("b", TABLE_1), ("c", TABLE_1)]).await;
    let worker = Worker::start(&bucket, &["--cores", "1", "--max-queued", "1"]).await;
    bucket.set("a", Mood::Held);
    let running = worker.send(&plain("a")).await;
    worker.until(BUSY, 1).await;
    let waiting = worker.send(&plain("b")).await;
    worker.until(LOW_QUEUED, 1).await;
    let refused = worker.job(&plain("c")).await;
    refused.says(503, &["1 jobs are queued already"]);
    let load = refused.header("endpoint-load-metrics").unwrap();
    assert!(
        load.contains("weir.in_progress=2,") && load.contains("weir.queued.16=1"),
        "{load}"
    );
    bucket.set("a", Mood::Well);
    running.answer().await.is(TABLE_1.as_bytes());
    waiting.answer().await.is(TABLE_1.as_bytes());
    assert_eq!(worker.metric(&ended("refused")).await, 1);
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_body_holds_nothing_when_it_leaves() {
    let (_bucket, worker) = shirts().await;
    let head = "POST / HTTP/1.1\r\n";
    let half = Exchange::send_unfinished(&worker.0, head, LISTING_1.as_bytes()).await;
    drop(half);
    worker.until_idle().await;
    worker.job(LISTING_1).await.is(TABLE_2.as_bytes());
    assert_eq!(worker.metric(&ended("done")).await, 1);
}
