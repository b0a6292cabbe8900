// SPDX-License-Identifier: Apache-2.0
//! Metrics and spans of the program at a collector.

use std::process::Command;

use serde_json::Value;
use weir_processes::http::{self, Request};
use weir_processes::ports;
use weir_processes::processes::Processes;
use weir_telemetry::collector::{Collector, text};

#[test]
fn a_job_is_a_span_of_its_callers_trace() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start();
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-worker"));
    command.args(["--emulate", "--listen", "127.0.0.1:0"]);
    collector.told_by(&mut command);
    let mut processes = Processes::new(folder.path().to_owned()).unwrap();
    let (_, listens): (_, Value) =
        ports::start(&mut processes, "worker", command, folder.path()).unwrap();
    let address = listens["listen"].as_str().unwrap().parse().unwrap();
    let (service, _) = collector.metric("weir_host_in_progress");
    assert_eq!(service, "weir-worker");
    let (trace, caller) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let parent = format!("00-{trace}-{caller}-01");
    let request = Request {
        method: "GET",
        path: "/a",
        headers: &[("x-weir-key", "k"), ("traceparent", &parent)],
        body: "",
    };
    http::send(address, &request).unwrap();
    let (_, span) = collector.span("a job", |span| span.name == "job");
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    assert_eq!(
        (hex(&span.trace_id), hex(&span.parent_span_id)),
        (trace.into(), caller.into())
    );
    let attribute = |name| text(&span.attributes, name);
    assert_eq!(attribute("url.path").unwrap(), "/a");
    assert_eq!(attribute("http.response.status_code").unwrap(), "200");
    assert_eq!(attribute("weir.cache").unwrap(), "miss");
    assert!(attribute("weir.run_us").is_some());
}
