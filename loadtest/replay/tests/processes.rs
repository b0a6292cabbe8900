// SPDX-License-Identifier: Apache-2.0
//! The two programs as a user runs them.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::Duration;

use flate2::read::GzDecoder;
use serde_json::Value;

const REPLAY: &str = env!("CARGO_BIN_EXE_weir-replay");

/// The worker beside this program: there when the whole workspace is tested, built here when this
/// package is tested alone.
fn worker_binary() -> PathBuf {
    let folder = Path::new(REPLAY).parent().unwrap();
    let worker = folder.join("weir-worker");
    if !worker.exists() {
        let profile = if folder.ends_with("release") {
            "release"
        } else {
            "dev"
        };
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--package",
                "weir-worker",
                "--bin",
                "weir-worker",
            ])
            .args(["--profile", profile, "--target-dir"])
            .arg(folder.parent().unwrap())
            .status();
        assert!(built.unwrap().success());
    }
    worker
}

struct Worker {
    child: Child,
    addr: String,
}

impl Worker {
    fn start(folder: &Path) -> Self {
        let ports = folder.join("ports.json");
        let child = Command::new(worker_binary())
            .args(["--emulate", "--listen", "127.0.0.1:0", "--cores", "4"])
            .args(["--cache-bytes", "1G", "--ports-file"])
            .arg(&ports)
            .spawn()
            .unwrap();
        let mut looks = 0..12_000;
        while !ports.exists() {
            looks.next().expect("waited in vain for ports");
            std::thread::sleep(Duration::from_millis(5));
        }
        let ports: Value = serde_json::from_slice(&fs::read(&ports).unwrap()).unwrap();
        let addr = ports["listen"].as_str().unwrap().to_owned();
        Self { child, addr }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Gone already where a test has ended it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn replay(args: &[&str]) -> Output {
    Command::new(REPLAY).arg("run").args(args).output().unwrap()
}

/// 200 requests over ten keys.
fn write_workload(file: &Path) {
    let line = |n: u64| {
        let priority = if n.is_multiple_of(5) { "high" } else { "low" };
        format!(
            "{},k{},{priority},u{},1000,1000000\n",
            n * 1000,
            n % 10,
            n % 7
        )
    };
    let lines: String = (0..200).map(line).collect();
    fs::write(
        file,
        format!("t_us,key,priority,user,run_us,bytes\n{lines}"),
    )
    .unwrap();
}

#[test]
fn a_worker_answers_a_whole_workload_and_leaves_when_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut worker = Worker::start(folder.path());
    write_workload(Path::new(&path("workload.csv")));
    let out = replay(&[
        "--workload",
        &path("workload.csv"),
        "--target",
        &worker.addr,
        "--out",
        &path("out.csv.gz"),
        "--summary",
        &path("summary.json"),
    ]);
    let told = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success(), "{told}");
    assert!(
        told.ends_with("ok 200, shed 0, failed 0, timeout 0\n"),
        "{told}"
    );

    let summary: Value = serde_json::from_slice(&fs::read(path("summary.json")).unwrap()).unwrap();
    assert_eq!(summary["all"]["outcomes"]["ok"], 200);
    assert!(summary["all"]["cache"]["hit"].as_u64().unwrap() > 0);
    assert_eq!(summary["priorities"]["high"]["requests"], 40);
    assert_eq!(summary["hosts"][&worker.addr]["requests"], 200);

    let mut records = String::new();
    let file = fs::File::open(path("out.csv.gz")).unwrap();
    GzDecoder::new(file).read_to_string(&mut records).unwrap();
    let mut lines = records.lines();
    assert_eq!(lines.next(), Some(weir_replay::record::COLUMNS));
    assert_eq!(lines.clone().count(), 200);
    let columns = weir_replay::record::COLUMNS.split(',').count();
    assert!(lines.all(|line| line.split(',').count() == columns));

    let pid = worker.child.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(sent.success());
    assert!(worker.child.wait().unwrap().success());
}

#[test]
fn nothing_is_sent_from_a_file_with_a_bad_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("workload.csv");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    fs::write(
        &file,
        "t_us,key,priority,user,run_us,bytes\n0,a,low,u,1,1\n1,a,low,u,soon,1\n",
    )
    .unwrap();
    let out = replay(&["--workload", file.to_str().unwrap(), "--target", &addr]);
    assert!(!out.status.success());
    let told = String::from_utf8(out.stderr).unwrap();
    assert!(
        told.contains("line 3: run_us: \"soon\" is not a whole number"),
        "{told}"
    );
    assert!(listener.accept().is_err(), "somebody connected");
}

#[test]
fn a_target_on_another_machine_needs_permission() {
    let out = replay(&["--workload", "nowhere", "--target", "192.0.2.1:80"]);
    assert!(!out.status.success());
    let told = String::from_utf8(out.stderr).unwrap();
    assert!(told.contains("--allow-remote"), "{told}");
}

#[test]
fn the_recorded_trace_becomes_the_workload_that_its_readme_promises() {
    let folder = tempfile::tempdir().unwrap();
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces");
    let (out, report) = (folder.path().join("w.ndjson"), folder.path().join("r.json"));
    let made = Command::new(REPLAY)
        .args([
            "workload",
            "azure-functions",
            "--from",
            "60",
            "--minutes",
            "5",
        ])
        .args(["--hosts", "6", "--cores", "4", "--utilisation", "0.85"])
        .args(["--speed-up", "10", "--sample", "0.5", "--counts"])
        .arg(traces.join("azfunc2019_5min.csv"))
        .arg("--keys")
        .arg(traces.join("azfunc2019_5min_keys.csv"))
        .args([Path::new("--out"), &out, Path::new("--report"), &report])
        .status()
        .unwrap();
    assert!(made.success());
    let report: Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
    assert_eq!(report["duration_s"], 30.0);
    assert!((report["utilisation"].as_f64().unwrap() - 0.85).abs() < 0.0085);
    assert!(report["rate_per_s"].as_f64().unwrap() < 600.0);
    let requests = weir_replay::workload::read(fs::read(&out).unwrap().as_slice()).unwrap();
    assert_eq!(requests.len() as u64, report["requests"].as_u64().unwrap());
}

#[test]
fn bodies_reach_the_host_and_a_missing_one_stops_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let worker = Worker::start(folder.path());
    fs::write(path("a.json"), "{}").unwrap();
    let workload = "t_us,key,priority,user,run_us,bytes,body\n\
                    0,k,low,,0,0,a.json\n1,k,low,,0,0,\n2,k,low,,0,0,b.json\n";
    fs::write(path("workload.csv"), workload).unwrap();
    let run = |bodies: &[&str]| {
        let workload = path("workload.csv");
        let args = ["--workload", &workload, "--target", &worker.addr];
        let out = replay(&[&args, bodies].concat());
        (out.status.success(), String::from_utf8(out.stderr).unwrap())
    };
    let (ok, told) = run(&[]);
    assert!(!ok && told.contains("line 2: body: \"a.json\""), "{told}");
    assert!(told.contains("--bodies"), "{told}");
    let bodies = ["--bodies", folder.path().to_str().unwrap()];
    let (ok, told) = run(&bodies);
    assert!(!ok && told.contains("line 4: body: cannot read"), "{told}");
    fs::write(path("b.json"), "{}").unwrap();
    let (ok, told) = run(&bodies);
    assert!(
        ok && told.ends_with("ok 3, shed 0, failed 0, timeout 0\n"),
        "{told}"
    );
}

/// Two projects with two channels each.
fn write_feeds(folder: &Path) {
    fs::create_dir_all(folder.join("rules")).unwrap();
    let project = |name: &str| {
        let rules = [1, 2].map(|channel| format!("{name}-{channel}.json"));
        for file in &rules {
            fs::write(folder.join("rules").join(file), "{}").unwrap();
        }
        serde_json::json!({"project": name, "items": 3, "bytes": 1000, "rules": rules})
    };
    let projects = ["shop-0001", "shop-0002"].map(project);
    let index = serde_json::json!({"seed": 1, "projects": projects});
    fs::write(folder.join("feeds.json"), index.to_string()).unwrap();
}

#[test]
fn a_folder_of_feeds_becomes_a_workload_that_a_host_answers() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let feeds = path("feeds");
    let make = || {
        let (out, report) = (path("w.ndjson"), path("r.json"));
        Command::new(REPLAY)
            .args(["workload", "feeds", "--feeds", &feeds, "--rate", "0"])
            .args([
                "--ramp-to",
                "200",
                "--duration",
                "1s",
                "--high-share",
                "0.5",
            ])
            .args(["--out", &out, "--report", &report])
            .output()
            .unwrap()
    };
    let told = String::from_utf8(make().stderr).unwrap();
    assert!(
        told.contains("feeds.json") && told.contains("weir-feeds"),
        "{told}"
    );
    write_feeds(Path::new(&feeds));
    assert!(make().status.success());
    let report: Value = serde_json::from_slice(&fs::read(path("r.json")).unwrap()).unwrap();
    let made = report["requests"].as_u64().unwrap();
    assert!((40..180).contains(&made), "{made}");

    let worker = Worker::start(folder.path());
    let workload = path("w.ndjson");
    let args = ["--workload", &workload, "--target", &worker.addr];
    let out = replay(&[&args[..], &["--bodies", &feeds]].concat());
    let told = String::from_utf8(out.stderr).unwrap();
    let end = format!("ok {made}, shed 0, failed 0, timeout 0\n");
    assert!(out.status.success() && told.ends_with(&end), "{told}");
    let summary: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(summary["all"]["cache"]["miss"], report["keys"]);
}

#[test]
fn a_recorded_trace_of_prompts_becomes_bodies_that_the_workload_names() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name);
    let trace =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/mooncake_conversation_10min.csv.gz");
    let made = Command::new(REPLAY)
        .args(["workload", "mooncake", "--minutes", "1", "--sample", "0.2"])
        .arg("--trace")
        .arg(&trace)
        .arg("--bodies")
        .arg(name("bodies"))
        .arg("--out")
        .arg(name("workload.ndjson"))
        .arg("--report")
        .arg(name("report.json"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let workload = fs::read_to_string(name("workload.ndjson")).unwrap();
    let report: Value = serde_json::from_slice(&fs::read(name("report.json")).unwrap()).unwrap();
    assert_eq!(report["requests"], workload.lines().count());
    for line in workload.lines() {
        let request: Value = serde_json::from_str(line).unwrap();
        let body = name("bodies").join(request["body"].as_str().unwrap());
        let body: Value = serde_json::from_slice(&fs::read(body).unwrap()).unwrap();
        let prompt = body["prompt"].as_str().unwrap();
        assert_eq!(request["bytes"], prompt.len());
        assert_eq!(body["model"], "m");
    }
}
