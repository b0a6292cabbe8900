// SPDX-License-Identifier: Apache-2.0
//! What was with Envoy's own choice, beside what would have been with the filter's: by receipts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::receipt::{BesideView, LookView, ReceiptView};

/// The comparison for one cluster. Shares are of 1; what cannot be said is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Shadow {
    pub cluster: String,
    pub mode: String,
    /// Why no request is steered, although the policy says that some are.
    pub withdrawn: Option<String>,
    /// Receipts of requests that were left to Envoy: the two next ones are of these.
    pub left: u64,
    /// What was.
    pub envoy: Side,
    /// What would have been, by the estimates of the same moments.
    pub forecast: Side,
    /// Requests that would have been shed, and that would have waited at their proxies.
    pub would_shed: Option<f64>,
    pub would_hold: Option<f64>,
    /// Receipts of requests that were steered.
    pub steered: u64,
    /// What was with them.
    pub live: Side,
    /// What would have been with a second selection, where receipts have one.
    pub beside: Option<Beside>,
}

/// A second selection, beside the one that was carried out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Beside {
    pub selection: String,
    /// Receipts with its choice, of requests that went where the first selection sent them: both sides are of these.
    pub receipts: u64,
    /// It would have sent them elsewhere.
    pub elsewhere: Option<f64>,
    /// What was.
    pub was: Side,
    /// What would have been, by the estimates of the same moments.
    pub forecast: Side,
}

/// One side of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Side {
    /// At hosts that had all of the data, as far as was known; of requests with a key.
    pub hits: Option<f64>,
    pub mean_ms: Option<f64>,
    /// Absent in a forecast: an estimate is of the mean.
    pub p99_ms: Option<f64>,
    /// With a status from 500 on, or without an answer. Absent in a forecast.
    pub failed: Option<f64>,
    /// Requests at the host that has the most, over the mean of the hosts.
    pub uneven: Option<f64>,
}

/// Compares. `hosts` is how many there are.
pub fn compare(cluster: &str, receipts: &[ReceiptView], hosts: usize) -> Shadow {
    let of = receipts.iter().filter(|receipt| receipt.cluster == cluster);
    let (steered, left): (Vec<_>, Vec<_>) = of.partition(|receipt| receipt.steered);
    let share = |outcome: &str| {
        let so = left.iter().filter(|it| it.outcome == outcome).count();
        ratio(so, left.len())
    };
    Shadow {
        cluster: cluster.to_owned(),
        left: left.len() as u64,
        envoy: was(&left, hosts),
        forecast: would_be(&left, hosts),
        would_shed: share("shed"),
        would_hold: share("hold"),
        steered: steered.len() as u64,
        live: was(&steered, hosts),
        beside: beside(&steered, hosts),
        ..Default::default()
    }
}

/// Of receipts with the selection that the newest has.
fn beside(steered: &[&ReceiptView], hosts: usize) -> Option<Beside> {
    let newest = steered.iter().rev().find_map(|it| it.beside.as_ref())?;
    let selection = newest.selection.as_str();
    let pairs = steered.iter().filter_map(|receipt| {
        let beside = receipt.beside.as_ref()?;
        let is_so = beside.selection == selection
            && beside.made.as_ref()?.address == receipt.host.as_deref()?;
        is_so.then_some((*receipt, beside))
    });
    let pairs: Vec<(&ReceiptView, &BesideView)> = pairs.collect();
    let elsewhere = pairs
        .iter()
        .filter(|(receipt, beside)| {
            let first = beside.first.as_ref();
            first.map(|look| look.address.as_str()) != receipt.host.as_deref()
        })
        .count();
    let lasts: Vec<f64> = pairs
        .iter()
        .filter_map(|(receipt, beside)| {
            would_last(receipt, beside.made.as_ref()?, beside.first.as_ref()?)
        })
        .collect();
    let keyed = pairs.iter().filter(|(receipt, _)| receipt.key_count > 0);
    let keyed: Vec<_> = keyed.collect();
    let hits = |look: fn(&BesideView) -> Option<&LookView>| {
        let hits = keyed.iter().filter_map(|(_, beside)| look(beside));
        ratio(hits.filter(|look| look.has_all()).count(), keyed.len())
    };
    let receipts: Vec<_> = pairs.iter().map(|(receipt, _)| *receipt).collect();
    let chosen = pairs
        .iter()
        .filter_map(|(_, beside)| Some(beside.chosen.first()?.as_str()));
    Some(Beside {
        selection: selection.to_owned(),
        receipts: pairs.len() as u64,
        elsewhere: ratio(elsewhere, pairs.len()),
        was: Side {
            hits: hits(|beside| beside.made.as_ref()),
            ..was(&receipts, hosts)
        },
        forecast: Side {
            hits: hits(|beside| beside.first.as_ref()),
            mean_ms: mean(&lasts),
            p99_ms: None,
            failed: None,
            uneven: uneven(chosen, hosts),
        },
    })
}

fn was(receipts: &[&ReceiptView], hosts: usize) -> Side {
    let at = receipts
        .iter()
        .filter_map(|it| Some((*it, it.host.as_deref()?)));
    let at: Vec<_> = at.collect();
    let mut lasted: Vec<f64> = at
        .iter()
        .filter(|(receipt, _)| !failed(receipt))
        .map(|(receipt, _)| receipt.duration_ms)
        .collect();
    lasted.sort_by(f64::total_cmp);
    let p99 = lasted.len().saturating_sub(1) * 99 / 100;
    let failures = at.iter().filter(|(receipt, _)| failed(receipt)).count();
    Side {
        hits: hits(&at),
        mean_ms: mean(&lasted),
        p99_ms: lasted.get(p99).copied(),
        failed: ratio(failures, at.len()),
        uneven: uneven(at.iter().map(|(_, host)| *host), hosts),
    }
}

/// What it took, and by how much the estimate for the host where it would have been differs from the one for the host
/// where it was; none where it failed.
fn would_last(receipt: &ReceiptView, was: &LookView, would_be: &LookView) -> Option<f64> {
    let by = would_be.finish_ms - was.finish_ms;
    (!failed(receipt)).then(|| (receipt.duration_ms + by).max(0.0))
}

/// At the hosts that were chosen.
fn would_be(receipts: &[&ReceiptView], hosts: usize) -> Side {
    let chosen = receipts
        .iter()
        .filter_map(|it| Some((*it, it.chosen.first()?.as_str())));
    let chosen: Vec<_> = chosen.collect();
    let lasts: Vec<f64> = chosen
        .iter()
        .filter_map(|(receipt, host)| {
            let was = receipt.look(receipt.host.as_deref()?)?;
            would_last(receipt, was, receipt.look(host)?)
        })
        .collect();
    Side {
        hits: hits(&chosen),
        mean_ms: mean(&lasts),
        p99_ms: None,
        failed: None,
        uneven: uneven(chosen.iter().map(|(_, host)| *host), hosts),
    }
}

fn failed(receipt: &ReceiptView) -> bool {
    receipt.status == 0 || receipt.status >= 500
}

/// A host that was not looked at has nothing: of those that have the data none is left out.
fn hits(at: &[(&ReceiptView, &str)]) -> Option<f64> {
    let keyed: Vec<_> = at
        .iter()
        .filter(|(receipt, _)| receipt.key_count > 0 && !receipt.looks.is_empty())
        .collect();
    let hits = keyed.iter().filter(|(receipt, host)| {
        let look = receipt.look(host);
        look.is_some_and(|look| look.has_all())
    });
    ratio(hits.count(), keyed.len())
}

fn uneven<'a>(at: impl Iterator<Item = &'a str>, hosts: usize) -> Option<f64> {
    let mut by_host = BTreeMap::<&str, usize>::new();
    for host in at {
        *by_host.entry(host).or_default() += 1;
    }
    let most = by_host.values().max()?;
    let all: usize = by_host.values().sum();
    Some(*most as f64 * hosts.max(1) as f64 / all as f64)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn ratio(part: usize, of: usize) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}
