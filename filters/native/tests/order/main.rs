// SPDX-License-Identifier: Apache-2.0
#![allow(unsafe_code)] // It plays Envoy, which speaks in pointers.
#![allow(missing_docs)]
//! The dynamic module's hooks in one order each, with what has to come of it.

#[path = "../hooks/envoy.rs"]
mod envoy;
mod proxy;

use proxy::{Live, Proxy, complete};

/// A configuration of this cluster, with a word that makes it unlike others.
fn configuration(cluster: &str, word: &str) -> String {
    format!(
        r#"{{"control_cluster": "weir-control", "proxy": "{word}",
            "clusters": {{"rules": {{"table": "{cluster}"}}}}}}"#
    )
}

#[test]
fn streams_of_a_configuration_are_closed_before_envoy_gives_it_up_for_the_next() {
    let proxy = Proxy::new();
    let worker = proxy.worker();
    let first = proxy.install(&configuration("rules", "first"));
    proxy.tick(&first);
    assert_eq!(first.streams().len(), 1);
    let request = worker
        .run(|| Live::begin(&first, &[(":path", "/")]))
        .unwrap();
    worker.run(|| request.headers());
    let second = proxy.install(&configuration("rules", "second"));
    assert_eq!(first.streams().len(), 0, "closed on the main thread");
    worker.run(|| {
        complete(&request.envoy);
        request.destroy();
    });
    first.destroy(&worker);
    proxy.tick(&second);
    assert_eq!(second.streams().len(), 1, "and opened by the next");
}
