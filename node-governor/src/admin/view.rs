// SPDX-License-Identifier: Apache-2.0
//! What `/state` says.

use serde::{Deserialize, Serialize};

use super::shares::SharesView;
use crate::book::{Book, CoreBook, ZoneBook};

/// What `/state` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct View {
    /// By number.
    pub cores: Vec<CoreView>,
    /// Decisions, and how many of them were late.
    pub ticks: u64,
    /// See `ticks_late` of the metrics.
    pub ticks_late: u64,
    /// Until the next decision.
    pub sleep_ms: f64,
    /// Lanes with an owner.
    pub lanes: u32,
    /// Events read.
    pub events: u64,
    /// Events that were overwritten.
    pub events_lost: u64,
    /// What producers said that cannot be.
    pub lies: u64,
    /// The service's latency; null while nothing is measured.
    pub tail_ms: Option<f64>,
    /// Energy, zone by zone; zones contain one another.
    pub zones: Vec<ZoneBook>,
    /// The service's cores and the jobs; null where cores are not divided.
    pub shares: Option<SharesView>,
}

/// One core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CoreView {
    /// As the kernel counts.
    pub core: u32,
    /// Whether it is there.
    pub online: bool,
    /// Whether plans are followed.
    pub governed: bool,
    /// What was written last.
    pub mhz: Option<u32>,
    /// Of the policy's ladder.
    pub rung: usize,
    /// Share of time not idle.
    pub busy: f64,
    /// Hot functions that run, with the time since they were entered.
    pub hot: Vec<HotView>,
    /// Changes of the rung.
    pub transitions: u64,
    /// Writes that failed.
    pub write_errors: u64,
    /// Times that another program wrote.
    pub foreign_writes: u64,
}

/// A hot function that runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HotView {
    /// As configured.
    pub function: String,
    /// Since it was entered.
    pub ms: f64,
}

impl View {
    pub(super) fn new(book: &Book, functions: &[(u8, String)]) -> Self {
        let events = &book.events;
        let core = |core: &CoreBook| CoreView {
            core: core.number,
            online: core.status.online,
            governed: core.status.governed && core.status.online,
            mhz: core.status.khz.map(|khz| khz.0 / 1000),
            rung: core.rung,
            busy: core.busy,
            hot: hot(book, core, functions),
            transitions: core.transitions,
            write_errors: core.status.write_errors,
            foreign_writes: core.status.foreign_writes,
        };
        Self {
            cores: book.cores.iter().map(core).collect(),
            ticks: book.ticks,
            ticks_late: book.late,
            sleep_ms: book.sleep.as_secs_f64() * 1e3,
            lanes: events.lanes,
            events: events.events,
            events_lost: events.lost,
            lies: events.future + events.jumped,
            tail_ms: book.tail.map(|tail| tail.latency.as_secs_f64() * 1e3),
            zones: book.zones.clone(),
            shares: book.shares.as_ref().map(SharesView::new),
        }
    }
}

fn hot(book: &Book, core: &CoreBook, functions: &[(u8, String)]) -> Vec<HotView> {
    let running = core.since.iter().enumerate();
    let running = running.filter_map(|(function, since)| Some((function, (*since)?)));
    let view = running.map(|(function, since)| {
        let named = functions
            .iter()
            .find(|(id, _)| usize::from(*id) == function);
        HotView {
            function: named.map_or(format!("function{function}"), |(_, name)| name.clone()),
            ms: book.now.since(since).as_secs_f64() * 1e3,
        }
    });
    view.collect()
}
