// SPDX-License-Identifier: Apache-2.0
//! What simulated sidecars have received.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use weir_tables::v1;

use crate::fleet::hosts::{Age, History};

/// Of all sidecars together.
#[derive(Default)]
pub(super) struct Receipts {
    /// Sidecars that have had an answer.
    pub(super) served: AtomicU64,
    pub(super) messages: AtomicU64,
    /// Of messages, with the five bytes that gRPC puts before each.
    pub(super) bytes: AtomicU64,
    /// Times that a stream ended or could not be opened.
    pub(super) lost: AtomicU64,
    /// Whether ages are kept.
    pub(super) keeping: AtomicBool,
    ages: Mutex<Vec<Age>>,
}

/// What one sidecar was told last of each host.
#[derive(Default)]
pub(super) struct Known(HashMap<String, u32>);

impl Receipts {
    pub(super) fn count(&self, bytes: usize) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64 + 5, Ordering::Relaxed);
    }

    /// Looks for changes in a table that has just come.
    pub(super) fn table(&self, known: &mut Known, table: &v1::HostTable, history: &History) {
        let now = Instant::now();
        let keeping = self.keeping.load(Ordering::Relaxed);
        let mut ages = Vec::new();
        for host in &table.hosts {
            let Some(change) = host.load.as_ref().map(|load| load.in_progress) else {
                continue;
            };
            if known.0.get(&host.address) == Some(&change) {
                continue;
            }
            known.0.insert(host.address.clone(), change);
            ages.extend(history.age(&host.address, change, now));
        }
        if keeping {
            self.ages().extend(ages);
        }
    }

    pub(super) fn take_ages(&self) -> Vec<Age> {
        std::mem::take(&mut *self.ages())
    }

    fn ages(&self) -> std::sync::MutexGuard<'_, Vec<Age>> {
        self.ages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
