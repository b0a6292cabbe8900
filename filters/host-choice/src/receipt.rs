// SPDX-License-Identifier: Apache-2.0
//! The receipt of a decision: what was compared, what came out, and what became of the request.

use std::time::Duration;

use weir_policy::{Account, Beside, Cluster, Decision, Outcome, Request, Terms};
use weir_tables::{Meta, encode_look, encode_selection, v1};

/// Of a request, the first ones.
const MAX_KEYS: usize = 8;
/// Hosts that were looked at: more than `estimate` looks at in a fleet without callers.
const MAX_LOOKS: usize = 64;

/// The receipt of a decision of now, without its end.
#[inline(never)]
pub(crate) fn of(
    (cluster, meta): (&Cluster, Meta),
    request: &Request,
    (decision, account, beside): (&Decision, Account, Option<Beside>),
    (id, now): (u64, Duration),
) -> v1::Receipt {
    let keys = request.keys.as_slice();
    let table = cluster.table();
    let selection = table.map(|table| encode_selection(table.policy().selection));
    let address = |host: u32| {
        let row = cluster.table().and_then(|table| table.host(host));
        row.map_or_else(String::new, |row| row.address.clone())
    };
    let (outcome, chosen) = match decision.outcome {
        Outcome::Send(ranked) => {
            let chosen = ranked.as_slice().iter().map(|host| address(*host));
            (v1::ReceiptOutcome::Send, chosen.collect())
        }
        Outcome::Shed { .. } => (v1::ReceiptOutcome::Shed, Vec::new()),
        Outcome::Hold { .. } => (v1::ReceiptOutcome::Hold, Vec::new()),
        Outcome::Fallback => (v1::ReceiptOutcome::Fallback, Vec::new()),
    };
    let look = |terms: &Terms| {
        let load = cluster.load(terms.host);
        let load_age = load.map(|load| millis(now.saturating_sub(load.observed)));
        encode_look(terms, address(terms.host), load_age)
    };
    let looks = account.terms.iter().take(MAX_LOOKS).map(look);
    let beside = beside.map(|beside| {
        let chosen = beside.ranked.as_slice().iter();
        v1::Beside {
            selection: encode_selection(beside.selection).into(),
            reason: beside.reason.as_str().into(),
            chosen: chosen.map(|host| address(*host)).collect(),
            first: beside.first.as_ref().map(look),
            made: beside.made.as_ref().map(look),
        }
    });
    v1::Receipt {
        id,
        table_epoch: meta.epoch,
        table_version: meta.version,
        table_age_ms: cluster.table_age(now).map_or(0, millis),
        rank: request.rank.number().into(),
        keys: keys.iter().take(MAX_KEYS).map(|key| key.0).collect(),
        key_count: keys.len() as u32,
        selection: selection.unwrap_or_default().into(),
        reason: decision.reason.as_str().into(),
        outcome: outcome.into(),
        chosen,
        salt: account.salt,
        limit: account.limit as u32,
        panics: account.panics,
        looks: looks.collect(),
        suspects: account.suspects,
        instead: account.instead,
        beside,
        ..Default::default()
    }
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
