// SPDX-License-Identifier: Apache-2.0
//! The caller's Envoy itself: alive, with all that it was given, and certificates that are good.

use std::time::{Duration, SystemTime};

use super::super::evidence::Envoy;
use super::super::finding::{Finding, Look};
use super::CALLER;
use crate::page::Address;

/// For whoever renews by hand.
const SOON: Duration = Duration::from_secs(7 * 86_400);

pub(super) fn look(envoy: &Envoy, address: &Address, now: SystemTime) -> Vec<Finding> {
    let mut look = Look::at(CALLER, &envoy.node);
    if envoy.state != "LIVE" {
        look.broken(
            format!("Envoy {} is {}, so it takes no requests", envoy.version, envoy.state),
            "its log says what it waits for; most often a listener's filter or clusters that have not come",
        );
    }
    for reason in &envoy.refused {
        look.broken(
            format!("it refuses what it was given: {reason}"),
            "mend that where it is written; the last good one is in force until then",
        );
    }
    let mut found = look.or_fine(format!("Envoy {} at {address}", envoy.version));
    found.extend(certificates(envoy, now));
    found
}

fn certificates(envoy: &Envoy, now: SystemTime) -> Vec<Finding> {
    let mut look = Look::at("certificates", &envoy.node);
    for certificate in &envoy.certificates {
        let Some(expires) = certificate.expires else {
            continue;
        };
        let path = match &*certificate.path {
            "" | "<inline>" => "a certificate",
            path => path,
        };
        if expires <= now {
            look.broken(
                format!("{path} has expired"),
                "issue it anew; Envoy reads files again by itself where they come by SDS, else at its next start",
            );
        } else if expires <= now + SOON {
            look.poor(
                format!("{path} expires within seven days"),
                "issue it anew before then",
            );
        }
    }
    match envoy.certificates.len() {
        0 => Vec::new(),
        many => look.or_fine(format!("all {many} are good for more than seven days")),
    }
}
