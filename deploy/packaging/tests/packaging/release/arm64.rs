// SPDX-License-Identifier: Apache-2.0
//! Programs of a release for arm64, which QEMU runs on this machine. What it shows: they were linked whole, and what
//! they do with files, sockets and keys is right. How fast they are it does not show.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use weir_stage::http;
use weir_stage::processes::Processes;

use super::{Machine, debian_packages_are_whole, file, static_programs_run, unpack, unpacked};
use crate::Test;
use crate::certificate;
use crate::host::Host;
use crate::images;
use crate::needs::{self, ARM64_ROOT, EMULATOR, Need, RELEASE};

pub(crate) const TESTS: &[Test] = &[
    (
        "static_programs_of_a_release_for_arm64_run_where_nothing_else_is",
        &[RELEASE, EMULATOR, Need::UserNamespace],
        || static_programs_run(&Machine::arm64()),
    ),
    (
        "debian_packages_of_a_release_for_arm64_have_programs_settings_and_manuals",
        &[RELEASE, EMULATOR, ARM64_ROOT],
        || debian_packages_are_whole(&Machine::arm64()),
    ),
    (
        "images_of_a_release_for_arm64_have_all_that_their_programs_need",
        &[RELEASE, EMULATOR, Need::UserNamespace],
        images_run,
    ),
    (
        "weir_control_of_a_release_for_arm64_serves_what_it_learns_of_a_host",
        &[RELEASE, EMULATOR, Need::Program("curl")],
        it_serves,
    ),
];

/// An emulated program on a busy machine takes its time.
const PATIENCE: Duration = Duration::from_secs(120);

/// Of a host with three requests, one of its cores free.
const PAGE: &str = "\
weir_host_queued{priority=\"0\"} 0
weir_host_in_progress 3
weir_host_busy_cores 3
weir_host_cores 4
weir_host_queuing_delay_seconds_sum 0
weir_host_queuing_delay_seconds_count 0
";

fn images_run() {
    let machine = Machine::arm64();
    for (name, settings, check) in [
        (
            "weir-control",
            "deploy/systemd/weir-control.yaml",
            &["--check"][..],
        ),
        (
            "weir-governor",
            "node-governor/weir-governor.yaml",
            &["run", "--check"],
        ),
    ] {
        let folder = TempDir::new().unwrap();
        let (layout, root) = (folder.path().join("layout"), folder.path().join("root"));
        unpack(&file(name, "-aarch64.oci.tar"), &layout);
        unpack(&images::layer_of(&layout), &root);
        assert_eq!(
            images::config_of(&layout)["architecture"],
            "arm64",
            "{name}"
        );
        fs::copy(needs::root().join(settings), root.join("settings.yaml")).unwrap();
        let mut command = machine.alone(&root, &format!("/usr/bin/{name}"));
        needs::succeed(command.args(check).args(["--config", "/settings.yaml"]));
    }
}

/// This machine's weirctl asks for what it learns, and curl over TLS, whose cryptography is assembly of arm64.
fn it_serves() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (arm64, own) = (at("arm64"), at("own"));
    let program = unpacked(&Machine::arm64(), &arm64).join("bin/weir-control");
    let weirctl = unpacked(&Machine::own(), &own).join("bin/weirctl");
    certificate::write(folder.path(), ["tls.crt", "tls.key"]);
    let served = Host::start(PAGE, Vec::new());
    let host = served.address;
    let configuration = format!(
        "xds: {{ listen: \"127.0.0.1:0\", tls: {{ certificate: tls.crt, key: tls.key }} }}\n\
         admin: {{ listen: \"127.0.0.1:0\" }}\n\
         clusters: {{ web: {{ hosts: [ {{ address: \"{host}\" }} ], scrape: {{}} }} }}\n"
    );
    fs::write(at("weir-control.yaml"), configuration).unwrap();

    let mut processes = Processes::new(at("logs")).unwrap();
    let mut command = Machine::arm64().command(&program);
    command
        .args(["--config", "weir-control.yaml", "--ports-file", "ports"])
        .current_dir(folder.path());
    processes.start("weir-control", command).unwrap();
    let ports = || serde_json::from_slice(&fs::read(at("ports")).ok()?).ok();
    let ports: BTreeMap<String, SocketAddr> =
        processes.wait_until("start", PATIENCE, ports).unwrap();
    let [xds, admin] = ["xds", "admin"].map(|name| ports[name]);

    let mut weirctl = Command::new(weirctl);
    weirctl.args(["--control", &admin.to_string()]);
    weirctl.args(["-o", "json", "hosts", "web"]);
    let learnt = || {
        let rows: Value = serde_json::from_slice(&weirctl.output().unwrap().stdout).ok()?;
        let row = &rows[0];
        let is_learnt = row["address"] == host.to_string()
            && row["in_progress"] == 3
            && row["capacity_millicores"] == 4000;
        is_learnt.then_some(())
    };
    processes.wait_until("load", PATIENCE, learnt).unwrap();
    let ready = || http::get(admin, "/ready").ok();
    processes.wait_until("/ready", PATIENCE, ready).unwrap();
    let tables = http::get(admin, "/tables").unwrap();
    let tables: Value = serde_json::from_str(&tables.body).unwrap();
    assert!(tables["clusters"]["web"].is_object(), "{tables}");

    let name = format!("weir-control:{}", xds.port());
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--noproxy", "*"])
        .args(["--max-time", &PATIENCE.as_secs().to_string()])
        .args(["--resolve", &format!("{name}:127.0.0.1"), "--cacert"])
        .arg(at("tls.crt"))
        .arg(format!("https://{name}/"));
    needs::succeed(&mut curl);
}
