// SPDX-License-Identifier: Apache-2.0
//! The program as a whole.

#[allow(dead_code)] // Other tests use more of it.
#[path = "../certificates/mod.rs"]
mod certificates;
mod exported;
mod probe;
mod serving;
#[allow(dead_code)] // Other tests use more of it.
#[path = "../waits/mod.rs"]
mod waits;

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serving::Serving;

const PROGRAM: &str = env!("CARGO_BIN_EXE_weir-control");

fn weir_control(config: &Path) -> Command {
    with_config(Command::new(PROGRAM), config)
}

fn with_config(mut command: Command, config: &Path) -> Command {
    command
        .arg("--config")
        .arg(config)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn output(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn a_bad_configuration_ends_with_64_and_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    std::fs::write(&path, "clusters:\n  r: { policy: { overload: foo } }\n").unwrap();
    let expected = format!(
        "{}:2: clusters.r.policy.overload: \"foo\" is unknown; one of none, breaker, dynamic_breaker, dagor, breakwater, slots\n",
        path.display()
    );
    // A port that is taken would be noticed first if it were bound first.
    assert_eq!(
        output(&mut weir_control(&path)),
        (Some(64), expected.clone())
    );
    assert_eq!(
        output(weir_control(&path).arg("--check")),
        (Some(64), expected)
    );
    assert_eq!(
        output(&mut weir_control(&folder.path().join("none.yaml"))).0,
        Some(64)
    );
    assert_eq!(output(weir_control(&path).arg("--bogus")).0, Some(64));
}

#[test]
fn a_good_configuration_is_counted_and_told_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    let checked = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let Output { status, stdout, .. } = weir_control(&path).arg("--check").output().unwrap();
        assert_eq!(status.code(), Some(0));
        String::from_utf8(stdout).unwrap()
    };
    let lacking = checked("clusters: { r: { hosts: [ { address: 127.0.0.1:9 } ] } }\n");
    let fields = lacking.lines().map(|line| line.split(": ").next().unwrap());
    assert_eq!(
        fields.collect::<Vec<_>>(),
        [
            "ok",
            "clusters.r.hosts[].capacity_millicores",
            "clusters.r.scrape",
            "clusters.r.cache"
        ]
    );
    let host = "{ address: 127.0.0.1:9, capacity_millicores: 4000 }";
    let whole = format!("clusters: {{ r: {{ hosts: [ {host} ], scrape: {{}}, cache: {{}} }} }}\n");
    assert_eq!(checked(&whole), "ok: 1 cluster, 1 host\n");
}

#[test]
fn it_says_where_it_listens_and_ends_when_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(Command::new(PROGRAM), folder.path(), "");
    for name in ["xds", "admin"] {
        std::net::TcpStream::connect(serving.port(name)).unwrap();
    }
    serving.end();
}

#[test]
fn one_that_waits_for_consul_is_live_and_not_ready_and_the_service_manager_hears_that_it_works() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let heard = || {
        let mut buffer = [0; 64];
        let read = manager.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..read]).into_owned()
    };
    // Nobody listens there.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let consul = closed.local_addr().unwrap();
    drop(closed);
    let replicas = format!(
        "replicas: {{ consul: {{ address: \"http://{consul}\" }}, address: \"127.0.0.1:0\" }}\n"
    );
    let mut program = Command::new(PROGRAM);
    program
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "100000");
    let serving = Serving::start(program, folder.path(), &replicas);
    let ready = serving.page("/ready");
    assert_eq!(ready.status, "503", "{ready:?}");
    let live = serving.page("/live");
    assert_eq!((&*live.status, &*live.body), ("200", "live\n"));
    assert_eq!(heard(), "READY=1\nWATCHDOG=1");
    assert_eq!([heard(), heard()], ["WATCHDOG=1", "WATCHDOG=1"]);
}

#[test]
fn it_takes_as_many_connections_as_the_system_allows() {
    let folder = tempfile::tempdir().unwrap();
    let mut few = Command::new("sh");
    few.args(["-c", "ulimit -Sn 64; exec \"$0\" \"$@\"", PROGRAM]);
    let serving = Serving::start(few, folder.path(), "");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", serving.pid())).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let figures: Vec<&str> = line.unwrap().split_whitespace().skip(3).take(2).collect();
    assert_eq!(figures[0], figures[1], "{limits}");
}
