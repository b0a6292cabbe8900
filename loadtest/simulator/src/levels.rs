// SPDX-License-Identifier: Apache-2.0
//! How admission levels moved.

use std::cmp::Ordering;

use weir_policy::{Level, Table};

/// How the levels of all hosts moved, as tables told it.
#[derive(Debug, Clone)]
pub struct Levels {
    /// How often a level moved the other way than before.
    pub reversals: u64,
    /// By host: its level, and which way it moved last.
    hosts: Vec<(Level, Ordering)>,
}

impl Levels {
    pub(crate) fn new(hosts: usize) -> Self {
        Self {
            reversals: 0,
            hosts: vec![(Level::ALL, Ordering::Equal); hosts],
        }
    }

    pub(crate) fn see(&mut self, table: &Table) {
        for ((level, way), host) in self.hosts.iter_mut().zip(table.hosts()) {
            let moved = host.level.cmp(level);
            if moved.is_eq() {
                continue;
            }
            self.reversals += u64::from(moved == way.reverse());
            (*level, *way) = (host.level, moved);
        }
    }
}
