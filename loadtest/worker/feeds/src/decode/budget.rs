// SPDX-License-Identifier: Apache-2.0
//! What a feed has cost so far, over all threads.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Refused;
use crate::limits::FeedLimits;

/// Bytes of a cell beside its text: a 32-bit offset and a bit of validity.
const CELL_BITS: u64 = 33;

/// Counts up to the limits.
pub(crate) struct Budget<'a> {
    pub(crate) limits: &'a FeedLimits,
    items: AtomicU64,
    bits: AtomicU64,
}

impl<'a> Budget<'a> {
    pub(crate) fn new(limits: &'a FeedLimits) -> Self {
        let (items, bits) = (AtomicU64::new(0), AtomicU64::new(0));
        Self {
            limits,
            items,
            bits,
        }
    }

    pub(crate) fn add_items(&self, items: u64) -> Result<(), Refused> {
        let total = self
            .items
            .fetch_add(items, Ordering::Relaxed)
            .saturating_add(items);
        match total <= self.limits.max_items {
            true => Ok(()),
            false => {
                let limit = self.limits.max_items;
                Err(Refused::TooLarge(format!("more than {limit} items")))
            }
        }
    }

    /// `cells` cells, present or absent, with `text` bytes in all.
    pub(crate) fn add_cells(&self, cells: u64, text: u64) -> Result<(), Refused> {
        let bits = (cells.saturating_mul(CELL_BITS)).saturating_add(text.saturating_mul(8));
        let total = self
            .bits
            .fetch_add(bits, Ordering::Relaxed)
            .saturating_add(bits);
        match total.div_ceil(8) <= self.limits.max_bytes {
            true => Ok(()),
            false => {
                let limit = self.limits.max_bytes;
                let reason = format!("the decoded items take more than {limit} bytes");
                Err(Refused::TooLarge(reason))
            }
        }
    }

    pub(crate) fn check_columns(&self, columns: usize) -> Result<(), Refused> {
        let limit = self.limits.max_columns;
        match columns <= limit {
            true => Ok(()),
            false => Err(Refused::TooLarge(format!(
                "more than {limit} different fields"
            ))),
        }
    }

    pub(crate) fn check_name(&self, name: &str) -> Result<(), Refused> {
        let limit = self.limits.max_value_bytes;
        match name.len() <= limit {
            true => Ok(()),
            false => Err(Refused::TooLarge(format!(
                "a field's name has more than {limit} bytes"
            ))),
        }
    }

    pub(crate) fn check_value(&self, name: &str, bytes: usize) -> Result<(), Refused> {
        let limit = self.limits.max_value_bytes;
        match bytes <= limit {
            true => Ok(()),
            false => {
                let reason = format!("a value of the field {name:?} has more than {limit} bytes");
                Err(Refused::TooLarge(reason))
            }
        }
    }
}
