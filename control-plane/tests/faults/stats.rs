// SPDX-License-Identifier: Apache-2.0
//! Where a decision's reason can be read.

use std::net::SocketAddr;

use crate::client::{Caller, keyed};
use crate::load::assert_all_ok;
use crate::sidecar::Sidecar;
use crate::tools;
use crate::world::{Plan, sum};

#[tokio::test(flavor = "multi_thread")]
async fn reasons_are_a_label_in_the_metrics_of_a_standalone_sidecar() {
    let world = Plan::workers(2, &[]).start().await;
    let known = async || {
        let caller = world.caller();
        assert_all_ok(&[caller.send("/", &keyed(0)).await]);
        world
            .envoy_metric("weir_decisions_total{reason=\"known_cached\"}")
            .await
    };
    world.until("a decision by cache", known).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reasons_are_in_metrics_and_access_log_of_a_static_configuration() {
    let world = Plan::workers(2, &[]).start().await;
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let access_log = format!(
        "stat_prefix: egress
                access_log:
                  - name: envoy.access_loggers.file
                    typed_config:
                      \"@type\": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog
                      path: {}
                      log_format:
                        text_format_source:
                          inline_string: \"reason %FILTER_STATE(wasm.weir_reason:PLAIN)%\\n\"",
        log.display()
    );
    let port = |address: SocketAddr| format!("port_value: {} }}", address.port());
    let (xds, hosts) = (port(world.xds), world.addresses());
    let filter = tools::filter();
    let replace = [
        ("stat_prefix: egress", &*access_log),
        ("id: sidecar-1", "id: sidecar-2"),
        ("/etc/weir/weir_filter.wasm", filter.to_str().unwrap()),
        ("port_value: 9901 }", "port_value: 0 }"),
        ("port_value: 15001 }", "port_value: 0 }"),
        ("port_value: 18000 }", &xds),
        ("port_value: 9001 }", &port(hosts[0])),
        ("port_value: 9002 }", &port(hosts[1])),
    ];
    let config = tools::envoy_config("static/envoy.yaml", &replace);
    let sidecar = Sidecar::start_with(&config, 2).await;
    let caller = Caller::new(sidecar.listener("egress").await);
    let seen = async |sidecar: &Sidecar| {
        assert_all_ok(&[caller.send("/", &keyed(0)).await]);
        let page = sidecar.page("/stats/prometheus").await?;
        let counted = sum(&page, "weir_decisions_total{reason=\"known_cached\"}").unwrap_or(0.0);
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        (counted > 0.0 && log.lines().any(|line| line == "reason known_cached")).then_some(())
    };
    sidecar.wait("the reason in metrics and log", seen).await;
}
