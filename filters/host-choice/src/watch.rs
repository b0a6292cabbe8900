// SPDX-License-Identifier: Apache-2.0
//! A request that is watched to its end, because it leaves a receipt, or because some requests are steered and others
//! are not.

use std::rc::Rc;
use std::time::Duration;

use weir_policy::{HostId, Policy, Request};
use weir_tables::v1;

use crate::in_flight::RouteRequest;
use crate::record::Ending;

/// What is known of it so far.
pub(crate) struct Watch {
    pub(crate) table: Rc<str>,
    pub(crate) since: Duration,
    /// The choice is carried out.
    pub(crate) is_steered: bool,
    /// It counts in the share of those that are steered, or in the other one.
    pub(crate) in_share: bool,
    /// The filter answered it.
    pub(crate) is_shed: bool,
    pub(crate) receipt: Option<v1::Receipt>,
    /// Envoy chooses its host, which is known when that answers.
    pub(crate) left: Option<RouteRequest>,
    /// It was answered and is in flight nowhere: by none of the table's hosts, or with a tunnel through this one.
    pub(crate) answered: Option<(Option<HostId>, u32)>,
}

/// How a watched request ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// Of its host, if it was at any that is in the table.
    pub(crate) address: Option<String>,
    pub(crate) ending: Ending,
}

/// The watch over a request that begins now, if it is watched, and whether it leaves a receipt. `random` is a uniform
/// number.
#[inline]
pub(crate) fn of(
    policy: &Policy,
    table: &Rc<str>,
    request: &Request,
    (now, random): (Duration, u64),
) -> (Option<Box<Watch>>, bool) {
    let leaves_receipt = policy.leaves_receipt((random >> 32) as u32);
    if !leaves_receipt && policy.steer_percent >= 100 {
        return (None, false);
    }
    begun(policy, table, request, (now, random), leaves_receipt)
}

/// Apart, so that most requests do not pay for it.
#[inline(never)]
fn begun(
    policy: &Policy,
    table: &Rc<str>,
    request: &Request,
    (now, random): (Duration, u64),
    leaves_receipt: bool,
) -> (Option<Box<Watch>>, bool) {
    let watch = Watch {
        table: Rc::clone(table),
        since: now,
        is_steered: policy.steers(&request.keys, random as u32),
        in_share: (1..100).contains(&policy.steer_percent),
        is_shed: false,
        receipt: None,
        left: None,
        answered: None,
    };
    (Some(Box::new(watch)), leaves_receipt)
}
