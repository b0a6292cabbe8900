// SPDX-License-Identifier: Apache-2.0
//! The production method of document 001, section 9.2.1: shuffle the eligible hosts, in a fixed order, with
//! a generator seeded by the key, and take the first. Its fault is kept: where a host joins, leaves or
//! closes, nearly every key gets another host.
//!
//! The shuffle is drawn, not carried out: hosts are drawn from all that are up, and those that are not
//! eligible or came before are passed over. So the choice depends on which hosts are eligible and on
//! nothing else about their levels.

use super::Candidates;
use crate::key::{scale, split_mix, upper};
use crate::ranked::MAX_RANKED;
use crate::{KeyHash, Ranked};

/// Hosts drawn for one decision. Where a tenth of the hosts is eligible, one decision in a thousand needs
/// more for its first host.
const DRAWS: usize = 64;

pub(super) fn select(candidates: &Candidates<'_>, key: KeyHash) -> Ranked {
    let up = candidates.cluster.admission.up_in_table();
    let eligible = candidates.eligible;
    // A shuffle of n hosts and one of n + 1 have nothing in common. The number of hosts in the seed sees
    // to it here, where equal draws would else pick neighbours in lists of similar length.
    let mut state = key.0 ^ split_mix(&mut (eligible.len() as u64));
    let mut ranked = Ranked::default();
    for _ in 0..DRAWS {
        if ranked.as_slice().len() == candidates.limit() {
            return ranked;
        }
        let drawn = up.get(scale(upper(split_mix(&mut state)), up.len()));
        if let Some(host) = drawn.filter(|host| candidates.is_eligible(**host)) {
            ranked.push(*host);
        }
    }
    // Few hosts are eligible: neighbours in their own list do as well.
    let start = scale(upper(split_mix(&mut state)), eligible.len());
    let (tail, head) = eligible.split_at_checked(start).unwrap_or_default();
    for host in head.iter().chain(tail).take(2 * MAX_RANKED) {
        ranked.push_up_to(candidates.limit(), *host);
    }
    ranked
}
