// SPDX-License-Identifier: Apache-2.0
//! The links in the order of a request's way: the caller's Envoy, its stream to weir-control, weir-control, hosts.

mod admission;
mod control;
mod envoy;
mod filter;
mod hosts;
mod policy;
mod stream;
mod upstream;

use super::evidence::Evidence;
use super::finding::{Finding, Look};

/// The first link, and so of every diagnosis that looks at callers.
pub(super) const CALLER: &str = "caller's Envoy";

/// Looks at each link.
pub(super) fn all(evidence: &Evidence) -> Vec<Finding> {
    let mut found = Vec::new();
    for asked in &evidence.envoys {
        match &asked.said {
            Err(reason) => {
                let at = asked.address.to_string();
                let mut look = Look::at(CALLER, &at);
                look.broken(
                    format!("its admin pages cannot be read: {reason}"),
                    "start it, or name its admin address (`admin.address` of its bootstrap): --envoy ip:port",
                );
                found.extend(look.or_fine(""));
            }
            Ok(envoy) => {
                found.extend(envoy::look(envoy, &asked.address, evidence.now));
                found.extend(filter::look(envoy));
                found.extend(upstream::look(envoy, evidence));
                found.extend(stream::look(envoy, evidence));
                found.extend(admission::look(envoy));
            }
        }
    }
    found.extend(stream::shared_ids(evidence));
    found.extend(control::look(evidence));
    for (address, control) in evidence.answering() {
        found.extend(policy::look(control, address));
        found.extend(hosts::look(control, address));
    }
    found
}

/// `"a", "b"`.
fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MOST: usize = 8;
    let names: Vec<_> = names.into_iter().collect();
    let shown = names.iter().take(MOST).map(|name| format!("{name:?}"));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "none".to_owned(),
        more if more > MOST => format!("{shown} and {} more", more - MOST),
        _ => shown,
    }
}

#[cfg(test)]
mod tests;
