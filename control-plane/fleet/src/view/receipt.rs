// SPDX-License-Identifier: Apache-2.0
//! A receipt as it is shown, kept in files, and decided again.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_policy::{Account, Rank, Selection};
use weir_tables::{Meta, decode_account, encode_selection, v1};

use crate::receipts::Kept;

/// The account of one decision and what came of it. Numbers of 64 bits are hexadecimal, as JSON's readers round them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ReceiptView {
    /// They are numbered as they come to one weir-control.
    pub number: u64,
    /// Since the request ended.
    pub age_ms: u64,
    pub id: String,
    pub proxy: String,
    pub cluster: String,
    /// `<epoch>.<version>`, as resources have it.
    pub table: String,
    pub table_age_ms: u32,
    pub class: u8,
    pub rank: u32,
    /// Hashes of the first eight.
    pub keys: Vec<String>,
    pub key_count: u32,
    pub selection: String,
    pub reason: String,
    /// `send`, `shed`, `hold` or `fallback`: what was decided.
    pub outcome: String,
    /// Hosts that were chosen, best first.
    pub chosen: Vec<String>,
    /// The choice was carried out, not only made.
    pub steered: bool,
    pub salt: String,
    pub limit: u32,
    pub panics: bool,
    /// Hosts that were looked at, in that order.
    pub looks: Vec<LookView>,
    pub suspects: Vec<u32>,
    pub instead: Option<u32>,
    /// Where the request was when it ended.
    pub host: Option<String>,
    /// Of the answer; 0: there was none.
    pub status: u32,
    pub duration_ms: f64,
    /// What a second selection would have chosen, where the policy has one.
    #[serde(default)]
    pub beside: Option<BesideView>,
}

/// What a second selection would have chosen, and what was to be expected of both by `estimate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct BesideView {
    pub selection: String,
    pub reason: String,
    /// Best first.
    pub chosen: Vec<String>,
    /// Its first host.
    pub first: Option<LookView>,
    /// The first host of the choice that was made.
    pub made: Option<LookView>,
}

/// A host that was looked at, by each term of its estimate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct LookView {
    pub index: u32,
    pub address: String,
    /// `known`, `assumed` or `lacks`.
    pub has: String,
    /// Of the keys, where it lacks some.
    pub lacks: u32,
    /// `wait + crossing + (fetch + run) ÷ speed`.
    pub finish_ms: f64,
    pub wait_ns: f64,
    /// Releases before zones did not say it.
    #[serde(default)]
    pub crossing_ns: f64,
    pub fetch_ns: f64,
    pub run_ns: f64,
    pub speed: f64,
    pub fullness: f64,
    pub avoided: bool,
    pub load_age_ms: Option<u32>,
}

const OUTCOMES: [(v1::ReceiptOutcome, &str); 4] = [
    (v1::ReceiptOutcome::Send, "send"),
    (v1::ReceiptOutcome::Shed, "shed"),
    (v1::ReceiptOutcome::Hold, "hold"),
    (v1::ReceiptOutcome::Fallback, "fallback"),
];
const HAS: [(v1::LookHas, &str); 3] = [
    (v1::LookHas::Known, "known"),
    (v1::LookHas::Assumed, "assumed"),
    (v1::LookHas::Lacks, "lacks"),
];
/// The name beside a value; `unknown` where a newer filter says something else.
fn name<T: PartialEq>(names: &[(T, &'static str)], value: Option<T>) -> String {
    let mut named = names.iter();
    let named = named.find(|(known, _)| Some(known) == value.as_ref());
    named.map_or("unknown", |(_, name)| name).to_owned()
}

fn selection(value: i32) -> String {
    let mut all = Selection::ALL.into_iter();
    let named = all.find(|known| i32::from(encode_selection(*known)) == value);
    named.map_or("unknown", Selection::as_str).to_owned()
}

fn hexadecimal(number: u64) -> String {
    format!("{number:016x}")
}

impl ReceiptView {
    /// One that is kept, at this moment of the state's clock.
    pub fn of(kept: &Kept, now: Duration) -> Self {
        let receipt = &kept.receipt;
        let meta = Meta {
            epoch: receipt.table_epoch,
            version: receipt.table_version,
        };
        Self {
            number: kept.number,
            age_ms: now.saturating_sub(kept.ended).as_millis() as u64,
            id: hexadecimal(receipt.id),
            proxy: kept.proxy.clone(),
            cluster: kept.cluster.clone(),
            table: meta.to_string(),
            table_age_ms: receipt.table_age_ms,
            class: Rank::from_number(receipt.rank).map_or(0, Rank::class),
            rank: receipt.rank,
            keys: receipt.keys.iter().map(|key| hexadecimal(*key)).collect(),
            key_count: receipt.key_count,
            selection: selection(receipt.selection),
            reason: receipt.reason.clone(),
            outcome: name(&OUTCOMES, receipt.outcome.try_into().ok()),
            chosen: receipt.chosen.clone(),
            steered: receipt.steered,
            salt: hexadecimal(receipt.salt),
            limit: receipt.limit,
            panics: receipt.panics,
            looks: receipt.looks.iter().map(LookView::of).collect(),
            suspects: receipt.suspects.clone(),
            instead: receipt.instead,
            host: Some(receipt.host.clone()).filter(|host| !host.is_empty()),
            status: receipt.status,
            duration_ms: receipt.duration_us as f64 / 1e3,
            beside: receipt.beside.as_ref().map(BesideView::of),
        }
    }

    /// The look at this host, if there was one.
    pub fn look(&self, address: &str) -> Option<&LookView> {
        self.looks.iter().find(|look| look.address == address)
    }

    /// The account that it carries; none where a look says nothing that is known here.
    pub fn account(&self) -> Option<Account> {
        let looks = self.looks.iter().map(LookView::message);
        decode_account(&v1::Receipt {
            salt: u64::from_str_radix(&self.salt, 16).ok()?,
            key_count: self.key_count,
            limit: self.limit,
            panics: self.panics,
            looks: looks.collect::<Option<_>>()?,
            suspects: self.suspects.clone(),
            instead: self.instead,
            ..Default::default()
        })
    }

    /// Decides again, by the code that filters run.
    pub fn replay(&self) -> Replay {
        if self.outcome != "send" || self.looks.is_empty() {
            return Replay::NothingCompared;
        }
        let Some((ranked, reason)) = self.account().and_then(|account| account.decide()) else {
            return Replay::Unreadable;
        };
        let address = |index: &u32| {
            let look = self.looks.iter().find(|look| look.index == *index);
            look.map(|look| look.address.as_str())
        };
        // A host that was put before the others instead was not looked at, and is known by its address alone.
        let again = ranked.as_slice().iter().zip(&self.chosen);
        let is_same = ranked.as_slice().len() == self.chosen.len()
            && again.into_iter().all(|(index, chosen)| {
                Some(*index) == self.instead || address(index) == Some(chosen.as_str())
            });
        match is_same && reason.as_str() == self.reason {
            true => Replay::Agrees,
            false => Replay::Differs,
        }
    }
}

/// What came of deciding again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// The same hosts in the same order, and the same reason.
    Agrees,
    /// Other ones.
    Differs,
    /// Nothing was compared: another selection than `estimate`, or no host was chosen.
    NothingCompared,
    /// It says something that is not known here.
    Unreadable,
}

impl BesideView {
    fn of(beside: &v1::Beside) -> Self {
        Self {
            selection: selection(beside.selection),
            reason: beside.reason.clone(),
            chosen: beside.chosen.clone(),
            first: beside.first.as_ref().map(LookView::of),
            made: beside.made.as_ref().map(LookView::of),
        }
    }
}

impl LookView {
    fn of(look: &v1::Look) -> Self {
        Self {
            index: look.index,
            address: look.address.clone(),
            has: name(&HAS, look.has.try_into().ok()),
            lacks: look.lacks,
            finish_ms: (look.wait_ns
                + look.crossing_ns
                + (look.fetch_ns + look.run_ns) / look.speed)
                / 1e6,
            wait_ns: look.wait_ns,
            crossing_ns: look.crossing_ns,
            fetch_ns: look.fetch_ns,
            run_ns: look.run_ns,
            speed: look.speed,
            fullness: look.fullness,
            avoided: look.avoided,
            load_age_ms: look.load_age_ms,
        }
    }

    fn message(&self) -> Option<v1::Look> {
        let (has, _) = HAS.iter().find(|(_, name)| *name == self.has)?;
        Some(v1::Look {
            index: self.index,
            address: self.address.clone(),
            has: (*has).into(),
            lacks: self.lacks,
            wait_ns: self.wait_ns,
            crossing_ns: self.crossing_ns,
            fetch_ns: self.fetch_ns,
            run_ns: self.run_ns,
            speed: self.speed,
            fullness: self.fullness,
            avoided: self.avoided,
            load_age_ms: self.load_age_ms,
        })
    }

    /// Whether all of the request's data were there, as far as was known.
    pub fn has_all(&self) -> bool {
        self.has == "known" || self.has == "assumed"
    }
}
