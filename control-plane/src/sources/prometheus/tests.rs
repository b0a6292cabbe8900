// SPDX-License-Identifier: Apache-2.0
//! Servers that misbehave as Prometheus may, each a real listener on a free port.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Router;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;

use weir_fleet::prometheus::Figure;

use super::*;
use crate::config::Server;

/// What the server says to a query, by its text; it is silent to any other.
type Says = BTreeMap<&'static str, (u16, String)>;

async fn server(says: Says) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = async move |Query(asked): Query<BTreeMap<String, String>>| match says
        .get(asked["query"].as_str())
    {
        Some((status, body)) => (StatusCode::from_u16(*status).unwrap(), body.clone()),
        None => std::future::pending().await,
    };
    let app = Router::new().route("/prometheus/api/v1/query", get(answer));
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}/prometheus")
}

fn settings(url: String, queries: &[(Figure, &str)]) -> Prometheus {
    Prometheus {
        server: Server {
            url,
            ca: None,
            identity: None,
        },
        interval: Duration::from_millis(10),
        timeout: Duration::from_secs(60),
        label: "instance".to_owned(),
        queries: queries
            .iter()
            .map(|(figure, query)| (*figure, (*query).to_owned()))
            .collect(),
    }
}

fn vector(list: &[(&str, &str)]) -> (u16, String) {
    let series = |(host, value): &(&str, &str)| {
        format!(r#"{{"metric":{{"instance":"{host}"}},"value":[1,"{value}"]}}"#)
    };
    let list: Vec<String> = list.iter().map(series).collect();
    let body = format!(
        r#"{{"status":"success","data":{{"resultType":"vector","result":[{}]}}}}"#,
        list.join(",")
    );
    (200, body)
}

async fn round(settings: Prometheus) -> Answers {
    let (updates, mut news) = mpsc::channel(1);
    let task = tokio::spawn(run("c".into(), settings, updates));
    let update = news.recv().await.unwrap();
    task.abort();
    match update {
        News::Fleet(Update::Queried { answers, .. }) => answers,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn each_figure_is_asked_by_its_own_query_and_the_answers_come_together() {
    let says = Says::from([
        ("a{b=\"c\"} + 1", vector(&[("h", "3")])),
        ("q & é", vector(&[("h", "1"), ("i", "2")])),
    ]);
    let queries = [
        (Figure::InProgress, "a{b=\"c\"} + 1"),
        (Figure::Queued, "q & é"),
    ];
    let answers = round(settings(server(says).await, &queries)).await;
    assert_eq!(answers.len(), 2);
    let first = &answers[&Figure::InProgress].as_ref().unwrap().series;
    assert_eq!(
        (first[0].labels["instance"].as_str(), first[0].value),
        ("h", Ok(3.0))
    );
    assert_eq!(answers[&Figure::Queued].as_ref().unwrap().series.len(), 2);
}

#[tokio::test]
async fn what_goes_wrong_with_one_query_is_told_of_that_query_alone() {
    let error = r#"{"status":"error","errorType":"bad_data","error":"1:3: parse error"}"#;
    let matrix = r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
    let large = format!("\"{}\"", "x".repeat(MAX_BYTES));
    let cases = [
        ((400, error.to_owned()), "bad_status: 1:3: parse error"),
        (
            (200, matrix.to_owned()),
            "bad_body: a matrix, not one moment: the query ends in a range, as in [5m]",
        ),
        (
            (200, "<html>".to_owned()),
            "bad_body: not an answer of a Prometheus server",
        ),
        (
            (502, "Bad Gateway".to_owned()),
            "bad_status: 502: Bad Gateway",
        ),
        (
            (503, vector(&[]).1),
            "bad_status: 503: {\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}",
        ),
        (
            (200, large),
            "too_large: 50331650 bytes or more, the limit is 48MiB",
        ),
    ];
    for (answer, reason) in cases {
        let says = Says::from([("good", vector(&[("h", "3")])), ("bad", answer)]);
        let queries = [(Figure::InProgress, "good"), (Figure::Queued, "bad")];
        let answers = round(settings(server(says).await, &queries)).await;
        assert!(answers[&Figure::InProgress].is_ok());
        assert_eq!(
            answers[&Figure::Queued].as_ref().unwrap_err().to_string(),
            reason
        );
    }
}

#[tokio::test]
async fn a_query_without_an_answer_does_not_hold_up_the_others_for_longer_than_its_time() {
    let says = Says::from([("good", vector(&[("h", "3")]))]);
    let mut settings = settings(
        server(says).await,
        &[(Figure::InProgress, "good"), (Figure::Queued, "silence")],
    );
    settings.timeout = Duration::from_millis(500);
    let answers = round(settings).await;
    assert!(answers[&Figure::InProgress].is_ok());
    let error = answers[&Figure::Queued].as_ref().unwrap_err().to_string();
    assert_eq!(error, "timed_out: no complete answer within 500ms");
}

#[tokio::test]
async fn a_server_that_is_gone_is_told_of_every_query() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let queries = [(Figure::InProgress, "a"), (Figure::Queued, "b")];
    let answers = round(settings(url, &queries)).await;
    for answer in answers.values() {
        assert_eq!(answer.as_ref().unwrap_err().fault, Fault::Refused);
    }
}
