// SPDX-License-Identifier: Apache-2.0
//! Of which requests the policy decides.

use super::super::evidence::Control;
use super::super::finding::{Finding, Look};
use super::super::runbook::Runbook;
use crate::answers::Cluster;
use crate::page::Address;

pub(super) fn look(control: &Control, address: &Address) -> Vec<Finding> {
    let clusters = control.tables.clusters.iter();
    // Only the leader hears how requests fare.
    let clusters = clusters.filter(|_| control.tables.leads());
    let found =
        clusters.map(|(name, cluster)| policy(&format!("{address}, cluster {name:?}"), cluster));
    found.flatten().collect()
}

fn policy(at: &str, cluster: &Cluster) -> Vec<Finding> {
    let mut look = Look::at("policy", at);
    if let Some(reason) = &cluster.withdrawn {
        look.poor(
            format!("it is withdrawn, so Envoy chooses for every request: {reason}"),
            "change `policy`, or write withdraw: false if the figures were chance",
        )
        .alerts(Runbook::WeirPolicyWithdrawn);
    }
    match &*cluster.mode {
        // An older weir-control does not say it.
        "" if cluster.withdrawn.is_none() => Vec::new(),
        "live" => look.or_fine("live"),
        "shadow" => look.or_fine("in shadow: Envoy chooses for every request"),
        share => look.or_fine(format!("live for {share} of the keys")),
    }
}
