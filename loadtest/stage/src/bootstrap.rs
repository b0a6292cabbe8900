// SPDX-License-Identifier: Apache-2.0
//! What sidecars are started with that weir-control tells everything.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// The project's own, which users copy.
const STANDALONE: &str = include_str!("../../../envoy-config/standalone/bootstrap.yaml");

/// The standalone bootstrap with another name and other ports.
///
/// # Errors
/// The project's file does not hold what is to be replaced.
pub fn standalone(node: &str, control: SocketAddr) -> Result<String> {
    let control = format!("port_value: {} }}", control.port());
    let changes = [
        ("id: sidecar-1", &*format!("id: {node}")),
        ("port_value: 9901 }", "port_value: 0 }"),
        ("port_value: 18000 }", &control),
    ];
    changes
        .into_iter()
        .try_fold(STANDALONE.to_owned(), |text, (old, new)| {
            ensure!(
                text.matches(old).count() == 1,
                "envoy-config/standalone/bootstrap.yaml does not hold `{old}` once"
            );
            Ok(text.replace(old, new))
        })
}

/// A route's retries, the same as weir-control gives in the standalone mode.
#[must_use]
pub fn retry_policy() -> Value {
    json!({
        "retry_on": "connect-failure,refused-stream,reset-before-request",
        "num_retries": 2,
        "retry_host_predicate": [{
            "name": "envoy.retry_host_predicates.previous_hosts",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate",
            },
        }],
        "host_selection_retry_max_attempts": 5,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standalone_bootstrap_takes_a_name_and_ports() {
        let text = standalone("caller-2", "127.0.0.1:41234".parse().unwrap()).unwrap();
        for part in ["id: caller-2", "port_value: 0 }", "port_value: 41234 }"] {
            assert_eq!(text.matches(part).count(), 1, "{part} in:\n{text}");
        }
    }
}
