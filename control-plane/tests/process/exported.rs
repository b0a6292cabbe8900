// SPDX-License-Identifier: Apache-2.0
//! Metrics and spans at a collector.

use std::process::{Child, Command};

use weir_telemetry::collector::{Collector, text};

use super::certificates::Authority;
use super::{PROGRAM, output, started_for, weir_control};

/// A host that is asked and that nobody listens for.
const SCRAPED: &str =
    "clusters: { r: { hosts: [ { address: 127.0.0.1:9 } ], scrape: { interval: 100ms } } }\n";

/// It ends well when it is told to.
fn log_to_the_end(child: Child) -> String {
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    String::from_utf8(ended.stderr).unwrap()
}

#[test]
fn a_collector_gets_metrics_and_a_span_for_each_question() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start();
    let mut command = Command::new(PROGRAM);
    collector.told_by(&mut command);
    let (mut child, _) = started_for(command, folder.path(), SCRAPED);
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
    child.kill().unwrap();
    child.wait().unwrap();
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
    let (wrong, _) = started_for(command(&others, "others"), folder.path(), SCRAPED);
    let (mut right, _) = started_for(command(&ours, "ours"), folder.path(), SCRAPED);
    let (service, _) = collector.metric("weir_control_polls");
    assert_eq!(service, "ours");
    right.kill().unwrap();
    right.wait().unwrap();
    // At the latest with its last export.
    let log = log_to_the_end(wrong);
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
    let (child, ports) = started_for(command, folder.path(), SCRAPED);
    let admin = ports["admin"].as_str().unwrap().parse().unwrap();
    super::until_there("some exports", || {
        let page = weir_processes::http::get(admin, "/metrics").unwrap().body;
        let polls =
            weir_exposition::sum(&page, "weir_control_polls_total", &[("result", "refused")]);
        polls.filter(|polls| *polls >= 5.0).ok_or(page)
    });
    let log = log_to_the_end(child);
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
