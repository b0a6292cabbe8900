// SPDX-License-Identifier: Apache-2.0
//! Polls of hosts that misbehave, each a real listener on a free port.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use weir_fleet::Update;
use weir_fleet::figures::{Figures, Scraped};
use weir_fleet::poll::Fault;

use prometheus_client::registry::Registry;

use super::*;
use crate::config::Cache;

/// A host that answers each connection with these bytes and then waits, or closes.
async fn host(answer: Vec<u8>, closes: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(&answer).await;
            if !closes {
                open.push(stream);
            }
        }
    });
    address
}

fn http(status: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn poll(timeout_ms: u64) -> Poll {
    Poll {
        interval: Duration::from_millis(10),
        timeout: Duration::from_millis(timeout_ms),
        path: "/x".into(),
        max_bytes: 1024,
        tls: None,
    }
}

fn target(updates: mpsc::Sender<News>) -> Target {
    Target {
        cluster: "c".into(),
        host: "h".into(),
        way: Way::Plain(fetch::Client::new().into()),
        contents: watch::channel(ByCluster::new()).1,
        updates,
    }
}

async fn fault(address: &str, timeout_ms: u64) -> Fault {
    let (updates, _news) = mpsc::channel(1);
    target(updates)
        .way
        .fetch(address, "/x", &poll(timeout_ms))
        .await
        .unwrap_err()
        .fault
}

const LONG: u64 = 60_000;

#[tokio::test]
async fn each_way_to_fail_is_told_from_the_others() {
    let nobody = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    assert_eq!(fault(&nobody, LONG).await, Fault::Refused);
    assert_eq!(
        fault(&host(http("503 Unwell", ""), false).await, LONG).await,
        Fault::BadStatus
    );
    assert_eq!(
        fault(&host(vec![], false).await, 30).await,
        Fault::TimedOut,
        "silent"
    );
    let slow = host(
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc".to_vec(),
        false,
    )
    .await;
    assert_eq!(
        fault(&slow, 30).await,
        Fault::TimedOut,
        "stops in the middle of the body"
    );
    assert_eq!(
        fault(&host(b"SSH-2.0\r\n\r\n".to_vec(), false).await, LONG).await,
        Fault::Failed
    );
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_whether_or_not_it_is_announced() {
    let announced = host(http("200 OK", &"x".repeat(1025)), false).await;
    assert_eq!(fault(&announced, LONG).await, Fault::TooLarge);
    let chunk = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n401\r\n{}\r\n",
        "x".repeat(1025)
    );
    let endless = host(chunk.into_bytes(), false).await;
    assert_eq!(
        fault(&endless, LONG).await,
        Fault::TooLarge,
        "read no further than the limit"
    );
    let fits = host(http("200 OK", &"x".repeat(1024)), false).await;
    let (updates, _news) = mpsc::channel(1);
    assert_eq!(
        target(updates)
            .way
            .fetch(&fits, "/x", &poll(LONG))
            .await
            .unwrap()
            .len(),
        1024
    );
}

#[tokio::test]
async fn a_page_with_nan_gives_the_other_figures_and_a_complaint() {
    let page = "p NaN\nq{priority=\"0\"} 3\nd_sum 1\nd_count 2\n";
    let at = host(http("200 OK", page), false).await;
    let (updates, mut news) = mpsc::channel(1);
    let scrape = Scrape {
        poll: poll(LONG),
        in_progress: "p".into(),
        adds_queued: false,
        queued: "q".into(),
        floors_queued: false,
        queued_priority_label: "priority".into(),
        queuing_delay: Some("d".into()),
        delay_is_late: false,
        reading: "r".into(),
        writing: "wr".into(),
        busy_cores: "b".into(),
        work: "w".into(),
        cores: "c".into(),
        draining: "leaving".into(),
    };
    let task = tokio::spawn(scrape::run(target(updates), at, scrape));
    let Some(News::Fleet(Update::Scraped { result, .. })) = news.recv().await else {
        panic!()
    };
    let figures = Figures {
        queued: Some(vec![3]),
        ..Figures::default()
    };
    assert_eq!(
        result,
        Ok(Scraped {
            figures,
            left_queue: None,
            read: None,
            wrote: None,
            millicores: None,
            draining: false,
            complaints: vec!["p: NaN is not a count".into()]
        })
    );
    task.abort();
}

#[tokio::test]
async fn a_cache_answer_that_lies_is_followed_by_a_question_from_scratch() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let (asked, mut questions) = mpsc::unbounded_channel();
    let app = axum::Router::new().fallback(async move |uri: axum::http::Uri| {
        let _ = asked.send(uri.to_string());
        // A liar: whatever it is asked, it says that something of epoch 2 has changed.
        let reset = uri.query().is_none();
        format!(
            r#"{{"version":5,"epoch":{},"reset":{reset},"added":["a"]}}"#,
            if reset { 1 } else { 2 }
        )
    });
    tokio::spawn(async move { axum::serve(listener, app).await });
    let (updates, mut news) = mpsc::channel(8);
    let cache = Cache {
        poll: poll(LONG),
        max_keys: 10,
        max_key_bytes: 10,
        salt: None,
    };
    let task = tokio::spawn(cache::run(target(updates), at, cache));
    for expected in ["/x", "/x?since=5&epoch=1", "/x", "/x?since=5&epoch=1"] {
        assert_eq!(questions.recv().await.unwrap(), expected);
        let Some(News::Cached {
            update: Update::Cached { result, .. },
            ..
        }) = news.recv().await
        else {
            panic!()
        };
        match expected {
            "/x" => assert!(result.unwrap().reset),
            _ => assert_eq!(result.unwrap_err().fault, Fault::Inconsistent),
        }
    }
    task.abort();
}

#[tokio::test]
async fn a_host_whose_keys_are_refused_is_asked_for_everything() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let (asked, mut questions) = mpsc::unbounded_channel();
    let app = axum::Router::new().fallback(async move |uri: axum::http::Uri| {
        let _ = asked.send(uri.to_string());
        let reset = uri.query().is_none();
        let version = if reset { 5 } else { 6 };
        format!(r#"{{"version":{version},"epoch":1,"reset":{reset},"added":["a{version}"]}}"#)
    });
    tokio::spawn(async move { axum::serve(listener, app).await });
    let (updates, mut news) = mpsc::channel(8);
    let cache = Cache {
        poll: poll(LONG),
        max_keys: 1,
        max_key_bytes: 10,
        salt: None,
    };
    let task = tokio::spawn(cache::run(target(updates), at, cache));
    for expected in ["/x", "/x?since=5&epoch=1", "/x", "/x?since=5&epoch=1"] {
        assert_eq!(questions.recv().await.unwrap(), expected);
        let Some(News::Cached { refused, .. }) = news.recv().await else {
            panic!()
        };
        if expected != "/x" {
            refused.send(()).unwrap();
        }
    }
    task.abort();
}

#[tokio::test]
async fn a_cache_whose_contents_are_dropped_is_not_asked_and_then_for_everything() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let (asked, mut questions) = mpsc::unbounded_channel();
    let app = axum::Router::new().fallback(async move |uri: axum::http::Uri| {
        let _ = asked.send(uri.to_string());
        r#"{"version":5,"epoch":1,"reset":true,"added":["a"]}"#
    });
    tokio::spawn(async move { axum::serve(listener, app).await });
    let (updates, mut news) = mpsc::channel(1);
    let cache = Cache {
        poll: poll(LONG),
        max_keys: 10,
        max_key_bytes: 10,
        salt: None,
    };
    let dropped = |dropped, drops| ByCluster::from([("c".to_owned(), Contents { dropped, drops })]);
    let (keeps, contents) = watch::channel(ByCluster::new());
    let asks = Target {
        contents,
        ..target(updates)
    };
    let task = tokio::spawn(cache::run(asks, at, cache));
    assert_eq!(questions.recv().await.unwrap(), "/x");
    let mut drops = async || match news.recv().await.unwrap() {
        News::Cached {
            update: Update::Cached { drops, .. },
            ..
        } => drops,
        other => panic!("{other:?}"),
    };
    assert_eq!(drops().await, 0);
    assert_eq!(questions.recv().await.unwrap(), "/x?since=5&epoch=1");
    keeps.send_replace(dropped(true, 1));
    // What was asked before may still be on its way; the first that says so was asked afterwards.
    keeps.send_replace(dropped(false, 1));
    let newer = async { while drops().await == 0 {} };
    let newer = tokio::time::timeout(Duration::from_secs(60), newer).await;
    newer.expect("waited in vain for contents after the drop");
    let mut last = String::new();
    while let Ok(question) = questions.try_recv() {
        last = question;
        if last == "/x" {
            break;
        }
    }
    assert_eq!(last, "/x", "everything is asked for again");
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn polls_come_at_jittered_intervals_and_missed_ones_are_not_made_up_for() {
    let mut ticker = Ticker::new(Duration::from_secs(1));
    ticker.tick().await;
    for _ in 0..100 {
        let before = Instant::now();
        ticker.tick().await;
        let gap = before.elapsed();
        assert!(
            gap >= Duration::from_millis(895) && gap <= Duration::from_millis(1105),
            "{gap:?}"
        );
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    let late = Instant::now();
    ticker.tick().await;
    ticker.tick().await;
    assert!(late.elapsed() <= Duration::from_millis(1105));
    let before = Instant::now();
    ticker.tick().await;
    assert!(before.elapsed() >= Duration::from_millis(895));
}

/// Asked on, it would tell changes of what was thrown away, and never all of it again.
#[test]
fn who_has_cache_contents_that_are_not_kept_is_not_asked_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    let asked = |shards: u32| {
        let hosts = "hosts: [ { address: \"127.0.0.1:1\" } ]";
        let text = format!("clusters: {{ c: {{ cache_shards: {shards}, cache: {{}}, {hosts} }} }}");
        std::fs::write(&path, text).unwrap();
        let loaded = crate::config::load(&path).map_err(|(error, _)| error);
        let jobs = jobs(&loaded.unwrap().config);
        jobs.keys().any(|(_, _, source)| *source == Source::Cache)
    };
    assert!(asked(4));
    assert!(!asked(0));
}

#[test]
fn engines_are_heard_at_the_ports_of_all_or_as_many_higher_as_their_own_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    let heard = |settings: &str| {
        let text = format!(
            r#"clusters: {{ c: {{ kv_events: {{ {settings} }}, hosts: [
              {{ address: "127.0.0.1:8000" }}, {{ address: "127.0.0.1:8003" }}, {{ address: "127.0.0.2:7999" }},
              {{ address: "127.0.0.3:9", cache_address: "127.0.0.4:8001" }}, {{ address: "127.0.0.5:65535" }}, {{ address: "127.0.0.6:1" }},
            ] }} }}"#
        );
        std::fs::write(&path, text).unwrap();
        let loaded = crate::config::load(&path).map_err(|(error, _)| error);
        let jobs = jobs(&loaded.unwrap().config).into_values();
        let ports = jobs.map(|job| match job {
            Job::KvEvents { at, with } => (at.to_string(), with.port, with.replay_port),
            other => panic!("{other:?}"),
        });
        ports.collect::<Vec<_>>()
    };
    let at = |ip: &str, port, replay_port| (ip.to_owned(), port, replay_port);
    assert_eq!(
        heard("base_port: 8000, replay_port: 6557"),
        [
            at("127.0.0.1", 5557, Some(6557)),
            at("127.0.0.1", 5560, Some(6560)),
            at("127.0.0.2", 5556, Some(6556)),
            at("127.0.0.4", 5558, Some(6558)),
            // No such ports: nobody is there.
            at("127.0.0.5", 63_092, Some(64_092)),
            at("127.0.0.6", 1, Some(1)),
        ]
    );
    assert!(
        heard("replay_port: 6557")
            .iter()
            .all(|(_, port, _)| *port == 5557)
    );
    let last = heard("base_port: 1, port: 9000").remove(4);
    assert_eq!(last, at("127.0.0.5", u16::MAX, None));
}

#[tokio::test]
async fn a_host_that_is_scraped_anew_keeps_the_series_of_its_events() {
    let (metrics, mut registry) = (crate::metrics::Metrics::default(), Registry::default());
    metrics.register(&mut registry);
    let events = metrics.kv_events().of("c", "127.0.0.1:1");
    events.newest(0.0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    let text = r#"clusters: { c: { scrape: {}, hosts: [ { address: "127.0.0.1:1" } ] } }"#;
    std::fs::write(&path, text).unwrap();
    let loaded = crate::config::load(&path).map_err(|(error, _)| error);
    let (key, job) = jobs(&loaded.unwrap().config).pop_first().unwrap();
    assert_eq!(key.2, Source::Scrape);
    let (updates, _news) = mpsc::channel(1);
    let contents = watch::channel(ByCluster::new()).1;
    let task = start(
        &key,
        job,
        fetch::Client::new(),
        contents,
        &metrics.kv_events(),
        updates,
    );
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
    assert!(page.contains("kv_lag_seconds{"), "{page}");
    task.abort();
}
