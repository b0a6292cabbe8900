// SPDX-License-Identifier: Apache-2.0
//! Metrics and spans at a collector.

use std::process::Command;

use weir_telemetry::collector::{Collector, text};

use super::certificates::Authority;
use super::serving::Serving;
use super::waits::until_there;
use super::{PROGRAM, output, weir_control};

/// A host that is asked and that nobody listens for.
const SCRAPED: &str =
    "clusters: { r: { hosts: [ { address: 127.0.0.1:9 } ], scrape: { interval: 100ms } } }\n";

#[test]
fn a_collector_gets_metrics_and_a_span_for_each_question() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start();
    let mut command = Command::new(PROGRAM);
    collector.told_by(&mut command);
    let _serving = Serving::start_with(command, folder.path(), SCRAPED);
    let (service, _) = collector.metric("weir_control_polls");
    assert_eq!(service, "weir-control");
    let (service, span) = collector.span("a question", |span| span.name == "GET /metrics");
    assert_eq!(service, "weir-control");
    assert_eq!(
        text(&span.attributes, "server.address").unwrap(),
        "127.0.0.1:9"
    );
    assert_eq!(text(&span.attributes, "error.type").unwrap(), "refused");
    assert!(span.parent_span_id.is_empty());
}

#[test]
fn a_collector_is_spoken_to_by_https_where_its_authority_vouches_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, others) = (Authority::new(), Authority::new());
    let pair = ours.sign("localhost");
    let collector = Collector::start_secure(&pair.certificate, &pair.key);
    let command = |authority: &Authority, name: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, &authority.certificate).unwrap();
        let mut command = Command::new(PROGRAM);
        collector.told_by(&mut command);
        command.env("OTEL_EXPORTER_OTLP_CERTIFICATE", file);
        command.env("OTEL_SERVICE_NAME", name);
        command
    };
    let [wrong, right] = [(&others, "others"), (&ours, "ours")].map(|(authority, name)| {
        let own = folder.path().join(format!("of {name}"));
        std::fs::create_dir(&own).unwrap();
        Serving::start_with(command(authority, name), &own, SCRAPED)
    });
    let (service, _) = collector.metric("weir_control_polls");
    assert_eq!(service, "ours");
    drop(right);
    // At the latest with its last export.
    let log = wrong.end();
    assert!(log.contains("metrics are not exported"), "{log}");
}

#[test]
fn a_collector_that_is_away_is_named_once_and_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(PROGRAM);
    let away = weir_needs::free_port();
    command
        .env(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            format!("http://127.0.0.1:{away}"),
        )
        .env("OTEL_METRIC_EXPORT_INTERVAL", "50");
    let serving = Serving::start_with(command, folder.path(), SCRAPED);
    until_there("some exports", || {
        let page = serving.page("/metrics").body;
        let polls =
            weir_exposition::sum(&page, "weir_control_polls_total", &[("result", "refused")]);
        polls.filter(|polls| *polls >= 5.0).ok_or(page)
    });
    let log = serving.end();
    assert_eq!(log.matches("metrics are not exported").count(), 1, "{log}");
}

#[test]
fn a_variable_that_is_wrong_ends_with_64_and_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    std::fs::write(
        &path,
        "clusters: { r: { hosts: [ { address: 127.0.0.1:9 } ] } }\n",
    )
    .unwrap();
    let mut command = weir_control(&path);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317");
    let (code, told) = output(&mut command);
    assert_eq!(code, Some(64));
    let expected = "OTEL_EXPORTER_OTLP_ENDPOINT=\"collector:4317\": not http://HOST:PORT or https://HOST:PORT\n";
    assert_eq!(told, expected);
}
