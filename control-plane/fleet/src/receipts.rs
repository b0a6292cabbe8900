// SPDX-License-Identifier: Apache-2.0
//! The newest receipts of all proxies, so far as there is room.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use weir_tables::v1;

/// Receipts that are kept.
pub const MOST: usize = 4096;
/// Bytes that they may take.
pub const MOST_BYTES: usize = 8 << 20;
/// One that is larger was not written by the filter: 64 hosts that were looked at take 6 kB.
pub const LARGEST: usize = 16 << 10;
/// Nor was one that takes more than this once it is decoded, where an empty look counts as a whole one.
pub const LARGEST_DECODED: usize = 32 << 10;

/// A receipt, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// They are numbered as they come, from 1.
    pub number: u64,
    /// When the request ended, on the state's clock.
    pub ended: Duration,
    /// Node id.
    pub proxy: String,
    /// The receipt's cluster.
    pub cluster: String,
    /// What it says.
    pub receipt: v1::Receipt,
    bytes: usize,
}

/// The newest, oldest first.
#[derive(Debug, Default)]
pub struct Receipts {
    kept: VecDeque<Kept>,
    ids: HashSet<u64>,
    bytes: usize,
    last: u64,
}

impl Receipts {
    /// Takes one that ended then, unless it is there already: a stream that begins anew repeats the last ones. Returns
    /// its number.
    pub fn take(&mut self, proxy: &str, cluster: &str, told: Told) -> Option<u64> {
        if !self.ids.insert(told.receipt.id) {
            return None;
        }
        self.last += 1;
        let kept = Kept {
            number: self.last,
            ended: told.ended,
            proxy: proxy.to_owned(),
            cluster: cluster.to_owned(),
            receipt: told.receipt,
            bytes: told.bytes + proxy.len() + cluster.len(),
        };
        self.bytes += kept.bytes;
        self.kept.push_back(kept);
        while self.kept.len() > MOST || self.bytes > MOST_BYTES {
            let Some(oldest) = self.kept.pop_front() else {
                break;
            };
            self.bytes -= oldest.bytes;
            self.ids.remove(&oldest.receipt.id);
        }
        Some(self.last)
    }

    /// Those that came after the one with this number, oldest first. A number that was not given yet is of before a
    /// restart: all came after that.
    pub fn after(&self, number: u64) -> impl DoubleEndedIterator<Item = &Kept> {
        let number = if number > self.last { 0 } else { number };
        let first = self.kept.partition_point(|kept| kept.number <= number);
        self.kept.range(first..)
    }
}

/// A receipt as a report told it.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// On the state's clock.
    pub ended: Duration,
    /// What it says.
    pub receipt: v1::Receipt,
    /// What it takes.
    pub bytes: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(id: u64, bytes: usize) -> Told {
        Told {
            ended: Duration::from_secs(id),
            receipt: v1::Receipt {
                id,
                ..Default::default()
            },
            bytes,
        }
    }

    fn numbers(receipts: &Receipts, after: u64) -> Vec<u64> {
        receipts.after(after).map(|kept| kept.receipt.id).collect()
    }

    #[test]
    fn one_that_is_told_again_is_kept_once_and_they_are_numbered_as_they_come() {
        let mut receipts = Receipts::default();
        for id in [5, 6, 5, 7] {
            let number = receipts.take("p", "c", told(id, 10));
            assert_eq!(
                number,
                (id != 5 || receipts.last == 1).then_some(receipts.last)
            );
        }
        assert_eq!(numbers(&receipts, 0), [5, 6, 7]);
        assert_eq!(numbers(&receipts, 2), [7]);
        assert_eq!(
            (numbers(&receipts, 3), numbers(&receipts, 4)),
            (vec![], vec![5, 6, 7])
        );
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_or_too_large_ones() {
        let mut receipts = Receipts::default();
        for id in 0..MOST as u64 + 10 {
            receipts.take("p", "c", told(id, 10));
        }
        assert_eq!(receipts.after(0).count(), MOST);
        assert_eq!(numbers(&receipts, 0)[0], 10);
        for id in 0..2000 {
            receipts.take("p", "c", told(1 << 32 | id, LARGEST));
        }
        assert!(receipts.bytes <= MOST_BYTES);
        assert_eq!(receipts.after(0).count(), MOST_BYTES / (LARGEST + 2));
        receipts.take("p", "c", told(0, 10));
        assert_eq!(
            receipts.after(0).last().unwrap().receipt.id,
            0,
            "it may come again"
        );
    }
}
