// SPDX-License-Identifier: Apache-2.0
//! Metrics and spans of the program at a collector.

use std::process::{Child, Command};

use weir_processes::http::{self, Request};
use weir_telemetry::collector::{Collector, text};

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_job_is_a_span_of_its_callers_trace() {
    let folder = tempfile::tempdir().unwrap();
    let ports = folder.path().join("ports.json");
    let collector = Collector::start();
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-worker"));
    command
        .args(["--emulate", "--listen", "127.0.0.1:0", "--ports-file"])
        .arg(&ports);
    collector.told_by(&mut command);
    let _worker = Ended(command.spawn().unwrap());
    let (service, _) = collector.metric("weir_host_in_progress");
    assert_eq!(service, "weir-worker");
    let ports: serde_json::Value = serde_json::from_slice(&std::fs::read(&ports).unwrap()).unwrap();
    let address = ports["listen"].as_str().unwrap().parse().unwrap();
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
