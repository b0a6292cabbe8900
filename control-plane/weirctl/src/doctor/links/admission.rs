// SPDX-License-Identifier: Apache-2.0
//! Whose headers are believed.

use super::super::evidence::Envoy;
use super::super::finding::{Finding, Look};

pub(super) fn look(envoy: &Envoy) -> Vec<Finding> {
    if envoy.plugins().next().is_none() {
        return Vec::new();
    }
    let mut look = Look::at("trust", &envoy.node);
    let removed = envoy.stats.filter("weir_disbelieved_requests_total");
    if removed > 0 {
        look.poor(
            format!("of {removed} requests key, priority or user were removed: their callers are not believed"),
            "if they are yours, set `trust` (any, loopback, mtls) in the plugin's configuration",
        );
    }
    look.or_fine("no header of a caller was removed")
}
