// SPDX-License-Identifier: Apache-2.0
//! The program before a weir-control that says what one has said.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::data::accesslog::v3::{
    AccessLogCommon, AccessLogType, HttpAccessLogEntry, HttpRequestProperties,
};
use envoy_types::pb::envoy::service::accesslog::v3::StreamAccessLogsMessage;
use envoy_types::pb::envoy::service::accesslog::v3::access_log_service_client::AccessLogServiceClient;
use envoy_types::pb::envoy::service::accesslog::v3::stream_access_logs_message::{
    HttpAccessLogEntries, Identifier, LogEntries,
};
use envoy_types::pb::google::protobuf::{Duration, Timestamp};
use serde_json::{Value, json};
use tokio_stream::StreamExt;

fn tables(level: u16) -> Value {
    json!({
        "epoch": "5e", "program_version": "0.2.0", "configuration_refused": null, "memory": {"counted_bytes": 7},
        "a field of later": {},
        "clusters": {"rules": {
            "version": "5e.2", "table_age_ms": 40, "selection": "estimate", "overload": "dagor",
            "hosts": [
                {"address": "127.0.0.1:9001", "state": "up", "in_progress": 3, "queued": [1, 2], "age_ms": 90,
                 "queuing_delay_ms": 12.5, "admission_level": level, "capacity_millicores": 2000, "from": "scrape",
                 "known_keys": 4},
                {"address": "127.0.0.1:9002", "state": "down", "stale": true, "admission_level": 4096,
                 "sources": {"scrape": {"error": "connection refused"}}},
            ],
        }},
        "proxies": [
            {"proxy": "good", "kind": "weir", "program_version": "0.2.0", "accepted": {"t/weir.v1.HostTable": {"rules": "5e.2"}}},
            {"proxy": "bad", "kind": "weir", "accepted": {"t/weir.v1.HostTable": {"rules": "5e.1"}},
             "refuses": [{"reason": "too large", "resources": {"rules": "5e.2"}}]},
        ],
    })
}

/// Two, of which one was left to Envoy.
fn receipts() -> String {
    let receipt = |number: u64, steered: bool, host: &str| {
        json!({"number": number, "cluster": "rules", "proxy": "caller-1", "class": 16, "reason": "known_cached",
               "outcome": "send", "chosen": ["127.0.0.1:9001"], "steered": steered, "host": host, "status": 200,
               "duration_ms": 12.5})
    };
    let both = [
        receipt(1, true, "127.0.0.1:9001"),
        receipt(2, false, "127.0.0.1:9002"),
    ];
    both.map(|receipt| format!("{receipt}\n")).concat()
}

fn shadow() -> Value {
    json!({"cluster": "rules", "mode": "10%", "left": 180, "steered": 20,
           "envoy": {"hits": 0.25, "mean_ms": 80.0}, "forecast": {"hits": 0.75, "mean_ms": 40.0},
           "live": {"hits": 0.5, "mean_ms": 45.0}, "would_shed": 0.0, "withdrawn": "they took long",
           "beside": {"selection": "dynamic", "receipts": 20, "elsewhere": 0.35, "was": {"mean_ms": 45.0},
                      "forecast": {"hits": 0.55, "mean_ms": 61.0}}})
}

/// A replica with the same hosts, of which one that does not lead knows nothing.
fn replica(role: &str, leader: Value) -> SocketAddr {
    let mut tables = tables(128);
    tables["replica"] = json!({"role": role, "leader": leader, "complaint": null});
    if role != "leading" {
        let hosts = json!([{"address": "127.0.0.1:9001", "state": "up", "admission_level": 4096}]);
        tables["clusters"]["rules"]["hosts"] = hosts;
        tables["proxies"] = json!([]);
    }
    control_of(tables)
}

fn follower() -> SocketAddr {
    replica(
        "following",
        json!({"name": "b", "address": "10.0.0.2:18000"}),
    )
}

/// A weir-control of a fixed state, until the test ends.
fn control(level: u16) -> SocketAddr {
    control_of(tables(level))
}

fn control_of(tables: Value) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let explain = json!({
        "outcome": "send", "reason": "known_cached", "selection": "estimate", "overload": "none",
        "table_version": "5e.2", "table_age_ms": 40, "class": 16, "user_priority": 0,
        "ranked": [{"address": "127.0.0.1:9001", "state": "up", "cached": "known", "admits": true, "estimate": {
            "finish_ms": 12.0, "wait_ms": 2.0, "fetch_ms": 0.0, "run_ms": 10.0, "speed": 1.0, "fullness": 1.5}}],
        "others": [], "trouble": [], "note": "a note",
    });
    let problem =
        json!({"parameter": "cluster", "reason": "no such cluster", "possible": ["rules"]});
    let explained = async move |query: axum::extract::RawQuery| match query.0 {
        Some(query) if query.starts_with("cluster=rules&key=a%20b") => {
            (StatusCode::OK, explain.to_string())
        }
        _ => (StatusCode::NOT_FOUND, problem.to_string()),
    };
    let router = Router::new()
        .route("/tables", get(async move || tables.to_string()))
        .route("/ready", get(async || "ready\n"))
        .route("/receipts", get(async || receipts()))
        .route("/shadow", get(async || shadow().to_string()))
        .route("/explain", get(explained));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
    });
    address
}

fn weirctl(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weirctl"));
    let command = command.args(arguments).env_remove("COLUMNS");
    command.output().unwrap()
}

/// What is printed by a command that ends well.
fn shown(control: SocketAddr, arguments: &[&str]) -> String {
    let address = control.to_string();
    let output = weirctl(&[arguments, &["--control", &address]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn json_of(control: SocketAddr, arguments: &[&str]) -> Value {
    serde_json::from_str(&shown(control, &[&["-o", "json"], arguments].concat())).unwrap()
}

#[test]
fn status_counts_and_tells_trouble() {
    let control = control(128);
    let status = json_of(control, &["status"]);
    assert_eq!(status["sidecars"], 2);
    assert_eq!(status["refusals"], 1);
    let row = &status["clusters"][0];
    for (field, count) in [
        ("up", 1),
        ("down", 1),
        ("stale", 1),
        ("shedding", 1),
        ("in_progress", 3),
    ] {
        assert_eq!(row[field], count, "{field}");
    }
    let text = shown(control, &["status"]);
    assert!(text.contains("1 resource refused by sidecars"), "{text}");
    assert!(
        text.contains("127.0.0.1:9002: scrape: connection refused"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "a file gets no colours: {text}");
}

#[test]
fn hosts_in_trouble_come_first() {
    let control = control(4096);
    let hosts = json_of(control, &["hosts", "rules"]);
    assert_eq!(hosts[0]["address"], "127.0.0.1:9002");
    assert_eq!(hosts[1]["queued"], 3);
    let text = shown(control, &["hosts"]);
    assert!(text.contains("12.5 ms"), "{text}");
}

#[test]
fn levels_are_told_in_words_the_lowest_first() {
    let levels = json_of(control(128), &["levels"]);
    assert_eq!(levels[0]["admits"], "classes 0 to 0");
    assert_eq!(levels[1]["admits"], "every request");
}

#[test]
fn sidecars_that_refuse_come_first_and_older_tables_are_told() {
    let sidecars = json_of(control(4096), &["sidecars"]);
    assert_eq!(sidecars[0]["proxy"], "bad");
    assert_eq!(sidecars[0]["behind"], json!(["rules"]));
    assert_eq!(sidecars[1]["current"], json!(["rules"]));
    let versions = [&sidecars[0], &sidecars[1]].map(|one| &one["program_version"]);
    assert_eq!(versions, [&Value::Null, &json!("0.2.0")]);
    let text = shown(control(4096), &["sidecars"]);
    assert!(text.contains("bad refuses rules: too large"), "{text}");
}

#[test]
fn a_key_is_sent_as_it_is_and_a_cluster_that_is_not_there_is_told() {
    let control = control(4096);
    let text = shown(control, &["explain", "rules", "a b"]);
    assert!(text.starts_with("send (known_cached)"), "{text}");
    let address = control.to_string();
    let output = weirctl(&["explain", "nope", "--control", &address]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        said.trim(),
        "weirctl: cluster: no such cluster; there are: rules"
    );
}

#[test]
fn two_weir_controls_are_compared() {
    let (one, other) = (control(4096), control(128));
    let both = format!("{one},{other}");
    let output = weirctl(&["diff", "-o", "json", "--control", &both]);
    let diff: Value = serde_json::from_slice(&output.stdout).unwrap();
    let differences = diff["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 1, "{diff}");
    assert_eq!(differences[0]["field"], "admission level");
    let text = shown(one, &["diff", "--after", "1ms"]);
    assert_eq!(text, "no difference\n");
}

#[test]
fn a_replica_that_does_not_lead_is_not_believed() {
    let waiting = replica("waiting", Value::Null);
    for (replica, words) in [
        (
            follower(),
            "follows \"b\", whose tables come from 10.0.0.2:18000",
        ),
        (waiting, "is waiting and knows no leader"),
    ] {
        let address = replica.to_string();
        for command in [
            &["status"][..],
            &["hosts"],
            &["levels"],
            &["explain", "rules", "a b"],
            &["tail", "--once"],
            &["shadow", "rules"],
            &["diff", "--after", "1ms"],
        ] {
            let output = weirctl(&[command, &["--control", &address]].concat());
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
            assert!(said.contains(&format!("{address} {words}")), "{said}");
            let shown = String::from_utf8_lossy(&output.stdout);
            assert!(!shown.contains("no trouble is known"), "{shown}");
            assert!(shown.is_empty() || command == ["status"], "{shown}");
        }
        // It knows the sidecars that are connected to it.
        assert_eq!(json_of(replica, &["sidecars"]), json!([]));
    }
}

#[test]
fn of_several_replicas_the_one_that_leads_is_asked() {
    let leader = replica("leading", Value::Null);
    let both = format!("127.0.0.1:1,{},{leader}", follower());
    let asked = |command: &[&str]| {
        let output = weirctl(&[&["-o", "json", "--control", &both], command].concat());
        assert!(output.status.success(), "{command:?}: {output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    assert_eq!(asked(&["levels"])[0]["admits"], "classes 0 to 0");
    assert_eq!(asked(&["status"])["role"], "leading");
    let both = format!("{},{leader}", follower());
    let output = weirctl(&["diff", "--control", &both]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("hosts are not compared"), "{said}");
    assert!(said.ends_with("no difference\n"), "{said}");
}

#[test]
fn a_policy_that_is_withdrawn_is_trouble() {
    let mut tables = tables(4096);
    tables["clusters"]["rules"]["mode"] = "10%".into();
    tables["clusters"]["rules"]["withdrawn"] = "they took long".into();
    let control = control_of(tables);
    let row = &json_of(control, &["status"])["clusters"][0];
    assert_eq!(row["mode"], "10%");
    let words = "the policy is withdrawn, so Envoy chooses: they took long";
    assert_eq!(row["trouble"][0], words);
    let doctor = weirctl(&["doctor", "--control", &control.to_string()]);
    let said = String::from_utf8(doctor.stdout).unwrap();
    let section = "deploy/prometheus/runbooks/control.md#weirpolicywithdrawn";
    assert!(said.contains(section), "{said}");
}

#[test]
fn a_lock_that_fails_is_trouble() {
    let mut tables = tables(4096);
    tables["clusters"]["rules"]["hosts"] = json!([]);
    tables["proxies"] = json!([]);
    tables["replica"] = json!({"role": "leading", "complaint": null});
    let text = shown(control_of(tables.clone()), &["status"]);
    assert!(text.contains("no trouble is known"), "{text}");
    tables["replica"]["complaint"] = "the lock is not renewed".into();
    let text = shown(control_of(tables), &["status"]);
    assert!(text.contains("the lock is not renewed"), "{text}");
    assert!(!text.contains("no trouble is known"), "{text}");
}

#[test]
fn what_is_broken_is_told_by_the_exit_code() {
    let address = control(4096).to_string();
    let output = weirctl(&["doctor", "--control", &address]);
    assert_eq!(
        output.status.code(),
        Some(1),
        "a host's page does not answer"
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("BROKEN  sources"), "{text}");
    assert!(text.contains("mend: "), "{text}");
    let older = "this is \"0.2.0\", the filter of \"bad\" is of before versions were told";
    assert!(text.contains(older), "{text}");
    let section = "deploy/prometheus/runbooks/control.md#weirpollsfail";
    assert!(text.contains(&format!("runbook: {section}\n")), "{text}");
    let output = weirctl(&["doctor", "-o", "json", "--control", &address]);
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut named = findings.as_array().unwrap().iter();
    assert!(named.any(|finding| finding["runbook"] == section));
    let output = weirctl(&["status", "--control", "127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("127.0.0.1:1/tables") && said.contains("refused"),
        "{said}"
    );
    for wrong in [&["status", "--control", "nowhere"][..], &["nonsense"]] {
        assert_eq!(weirctl(wrong).status.code(), Some(64), "{wrong:?}");
    }
}

#[test]
fn a_terminal_that_is_narrow_gets_lines_that_fit() {
    let address = control(4096).to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_weirctl"));
    command
        .args(["hosts", "--control", &address])
        .env("COLUMNS", "70");
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let table = text.lines().take_while(|line| !line.starts_with("127"));
    for line in table {
        assert!(line.chars().count() <= 70, "{line:?}");
    }
}

#[test]
fn completions_and_manual_pages_are_written() {
    let bash = weirctl(&["completions", "bash"]);
    assert!(String::from_utf8_lossy(&bash.stdout).contains("doctor"));
    let folder = tempfile::tempdir().unwrap();
    assert!(
        weirctl(&["man", folder.path().to_str().unwrap()])
            .status
            .success()
    );
    let page = std::fs::read_to_string(folder.path().join("weirctl-doctor.1")).unwrap();
    assert!(page.contains("127.0.0.1:9901"), "{page}");
    let missing = folder.path().join("missing");
    let output = weirctl(&["man", missing.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn receipts_are_shown_as_they_are_filtered_and_whole_in_json() {
    let control = control(4096);
    let all = shown(control, &["tail", "--once"]);
    assert_eq!(all.lines().count(), 2, "{all}");
    assert!(all.contains("not steered, send 127.0.0.1:9001"), "{all}");
    let one = shown(control, &["tail", "--once", "--host", "127.0.0.1:9002"]);
    assert_eq!(one.lines().count(), 1, "{one}");
    let last = shown(control, &["-o", "json", "tail", "--once", "-n", "1"]);
    assert_eq!(serde_json::from_str::<Value>(&last).unwrap()["number"], 2);
}

#[test]
fn a_comparison_says_what_was_and_what_would_have_been() {
    let text = shown(control(4096), &["shadow", "rules"]);
    for words in [
        "mode 10%",
        "withdrawn: they took long",
        "25.0 %",
        "75.0 %",
        "40.0 ms",
        "dynamic: forecast",
        "61.0 ms",
        "dynamic would have sent 35.0 % to other hosts",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
}

#[test]
fn receipts_become_a_workload_of_one_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (kept, out) = (file("receipts.ndjson"), file("hour.ndjson"));
    let line = |proxy: &str, cluster: &str| {
        format!(
            "{{\"ended_unix_ms\":1000000,\"proxy\":\"{proxy}\",\"cluster\":\"{cluster}\",\"class\":16,\
             \"keys\":[\"0a\"],\"host\":\"10.0.0.1:80\",\"status\":200,\"duration_ms\":20.0}}\n"
        )
    };
    let lines = [("a", "rules"), ("b", "rules"), ("b", "search")];
    let lines: String = lines
        .iter()
        .map(|(proxy, cluster)| line(proxy, cluster))
        .collect();
    std::fs::write(&kept, lines).unwrap();
    let asked = ["capture", &kept, "--cores", "2", "--out", &out];
    let output = weirctl(&asked);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains(
            "receipts.ndjson:3: receipts are of rules and search: say which by --cluster"
        ),
        "{said}"
    );
    let output = weirctl(&[&asked[..], &["--cluster", "rules"]].concat());
    assert!(output.status.success(), "{output:?}");
    let workload = std::fs::read_to_string(&out).unwrap();
    let sender = |line: &str| serde_json::from_str::<Value>(line).unwrap()["sender"].clone();
    let senders: Vec<Value> = workload.lines().map(sender).collect();
    assert_eq!(senders, [json!("a"), json!("b")]);
    let log = file("access.log");
    std::fs::write(
        &log,
        "{\"start_time\":\"2026-11-25T15:00:00Z\",\"response_code\":200,\"duration\":21}\n",
    )
    .unwrap();
    let output = weirctl(&[
        "capture",
        &log,
        "--cores",
        "2",
        "--cluster",
        "rules",
        "--out",
        &out,
    ]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains(":1: --cluster chooses among receipts"),
        "{said}"
    );
}

#[test]
fn a_log_becomes_a_workload_or_the_line_that_is_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (log, out) = (file("access.log"), file("hour.ndjson"));
    let capture = |lines: &str| {
        std::fs::write(&log, lines).unwrap();
        weirctl(&["capture", &log, "--cores", "2", "--out", &out])
    };
    let line = |second: u32, host: &str| {
        format!(
            "{{\"start_time\":\"2026-11-25T15:00:0{second}.5Z\",\"key\":\"feed-7\",\"priority\":\"high\",\
             \"response_code\":200,\"duration\":21,\"upstream_host\":{host},\"before_us\":1000,\
             \"upstream_us\":20000}}\n"
        )
    };
    let here = "\"10.0.0.1:80\"";
    let output = capture(&format!("{}{}", line(3, here), line(1, here)));
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains("2 requests in 2.0 s, of 1 key, at 1 host"),
        "{said}"
    );
    assert!(said.contains("fleet: --hosts 1 --cores 2"), "{said}");
    let workload = std::fs::read_to_string(&out).unwrap();
    let requests: Vec<Value> = workload
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&requests[0]["t_us"], &requests[1]["t_us"]),
        (&json!(0), &json!(2_000_000))
    );
    assert_eq!(requests[1]["run_us"], 20_000);
    assert!(!workload.contains("feed-7"), "keys are hashes: {workload}");
    let told = "\"load_metrics\":\"TEXT request_cost.weir.run_seconds=0.007,request_cost.weir.fetch_seconds=0.013\",";
    let costs = line(1, here).replacen('{', &format!("{{{told}"), 1);
    let output = capture(&format!("{costs}{}", line(3, here)));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("told by hosts of 1 request"), "{said}");
    let told = std::fs::read_to_string(&out).unwrap();
    let first: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    // 13 ms at 100 MB/s.
    assert_eq!(
        (&first["run_us"], &first["bytes"]),
        (&json!(7_000), &json!(1_300_000))
    );
    assert!(
        capture(&format!("{}{}", line(3, here), line(1, here)))
            .status
            .success()
    );
    for (lines, reason) in [
        (format!("{}{{}}\n", line(1, here)), ":2: missing field"),
        (line(1, "null"), "access-log.yaml"),
        (String::new(), "access-log.yaml"),
    ] {
        let output = capture(&lines);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(reason), "{said}");
        assert_eq!(
            std::fs::read_to_string(&out).unwrap(),
            workload,
            "it stays as it was"
        );
    }
}

/// Two requests as an Envoy tells them, of which one has not ended.
fn streamed() -> StreamAccessLogsMessage {
    let ended = AccessLogCommon {
        start_time: Some(Timestamp {
            seconds: 1_795_000_000,
            nanos: 250_000,
        }),
        time_to_first_upstream_tx_byte: Some(micros(90)),
        time_to_last_upstream_rx_byte: Some(micros(11_890)),
        duration: Some(micros(12_000)),
        ..Default::default()
    };
    let begun = AccessLogCommon {
        access_log_type: AccessLogType::DownstreamStart.into(),
        ..ended.clone()
    };
    let entry = |common| HttpAccessLogEntry {
        common_properties: Some(common),
        request: Some(HttpRequestProperties {
            request_headers: [("x-weir-key".to_owned(), "feed-7".to_owned())].into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let entries = HttpAccessLogEntries {
        log_entry: vec![entry(begun), entry(ended)],
    };
    StreamAccessLogsMessage {
        identifier: Some(Identifier {
            node: Some(Node {
                id: "caller-1".to_owned(),
                ..Default::default()
            }),
            log_name: "weir".to_owned(),
        }),
        log_entries: Some(LogEntries::HttpLogs(entries)),
    }
}

/// `weirctl collect` of so many requests, and where it listens.
fn collecting(out: &Path, requests: u64) -> (Child, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_weirctl"))
        .args(["collect", "--listen", "127.0.0.1:0", "--requests"])
        .arg(requests.to_string())
        .arg("--out")
        .arg(out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut errors = BufReader::new(program.stderr.take().unwrap());
    errors.read_line(&mut said).unwrap();
    let address = said.split(' ').find(|word| word.starts_with("127."));
    (program, address.unwrap().to_owned())
}

fn micros(micros: i32) -> Duration {
    Duration {
        seconds: 0,
        nanos: micros * 1000,
    }
}

/// It is not told that the stream ends, as a frozen Envoy would not be.
#[tokio::test]
async fn a_caller_that_keeps_its_connection_does_not_keep_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("access.log");
    let (mut program, address) = collecting(&out, 1);
    let way = TcpListener::bind("127.0.0.1:0").unwrap();
    let caller = format!("http://{}", way.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut from = way.accept().unwrap().0;
        let mut to = TcpStream::connect(address).unwrap();
        std::io::copy(&mut from, &mut to)
    });
    let mut client = AccessLogServiceClient::connect(caller).await.unwrap();
    let messages = tokio_stream::iter([streamed()]).chain(tokio_stream::pending());
    tokio::spawn(async move { client.stream_access_logs(messages).await });
    let ended = tokio::task::spawn_blocking(move || program.wait());
    assert!(ended.await.unwrap().unwrap().success());
    let lines = std::fs::read_to_string(out).unwrap();
    assert_eq!(lines.lines().count(), 1, "{lines}");
}

#[tokio::test]
async fn streamed_logs_become_lines_until_there_are_enough() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("access.log");
    let out = out.to_str().unwrap();
    let (program, address) = collecting(Path::new(out), 2);
    let address = format!("http://{address}");
    let mut client = AccessLogServiceClient::connect(address).await.unwrap();
    // It ends before the third comes, or with it.
    let stream = tokio_stream::iter([streamed(), streamed(), streamed()]);
    let _ = client.stream_access_logs(stream).await;
    let output = program.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(
        said.starts_with("2 requests of 1 caller\n2 went to no host\n"),
        "{said}"
    );
    let lines = std::fs::read_to_string(out).unwrap();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    let line: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    let expected = json!({
        "start_time": "2026-11-18T11:06:40.00025Z", "key": "feed-7", "priority": null, "user": null,
        "response_code": 0, "duration": 12, "upstream_host": null, "before_us": 90, "upstream_us": 11_800,
        "load_metrics": null, "caller": "caller-1",
    });
    assert_eq!(line, expected);
    for (flags, reason) in [
        (["--out", out, "--for", "1ms"], "access.log: File exists"),
        (
            ["--out", "x", "--listen", "0.0.0.0:1"],
            "only addresses of loopback",
        ),
        (["--out", "x", "--requests", "0"], "0 is not in 1..=5000000"),
    ] {
        let output = weirctl(&[&["collect"], &flags[..]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(reason), "{said}");
    }
    assert_eq!(
        std::fs::read_to_string(out).unwrap(),
        lines,
        "it stays as it was"
    );
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = held.local_addr().unwrap().to_string();
    let new = folder.path().join("new.log");
    let output = weirctl(&[
        "collect",
        "--listen",
        &taken,
        "--out",
        new.to_str().unwrap(),
    ]);
    assert!(
        !output.status.success() && !new.exists(),
        "nothing is left behind"
    );
}
