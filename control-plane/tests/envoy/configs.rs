// SPDX-License-Identifier: Apache-2.0
//! envoy-config/ is what Envoy takes.

use std::process::Command;

use crate::certificates::Authority;
use crate::tools;

fn validate(config: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("envoy.yaml");
    let (config, _) = tools::shell::envoy(config);
    std::fs::write(&file, config).unwrap();
    let mut command = Command::new(tools::envoy());
    command
        .args(["--mode", "validate", "--disable-hot-restart", "-c"])
        .arg(&file);
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_standalone_bootstrap_is_valid() {
    validate(&tools::envoy_config("standalone/bootstrap.yaml", &[]));
}

#[test]
fn the_static_configurations_are_valid() {
    let filter = tools::filter();
    let replace = [("/etc/weir/weir_filter.wasm", filter.to_str().unwrap())];
    validate(&tools::envoy_config("static/envoy.yaml", &replace));
    validate(&tools::envoy_config("static/host.yaml", &replace));
}

#[test]
fn the_standalone_bootstrap_with_tls_is_valid() {
    let authority = Authority::new();
    let pair = authority.sign("sidecar-1");
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("ca.pem", &authority.certificate),
        ("sidecar.pem", &pair.certificate),
        ("sidecar.key", &pair.key),
    ];
    for (name, pem) in files {
        std::fs::write(folder.path().join(name), pem).unwrap();
    }
    let replace = [("/etc/weir", folder.path().to_str().unwrap())];
    validate(&tools::envoy_config(
        "standalone/bootstrap-tls.yaml",
        &replace,
    ));
}
