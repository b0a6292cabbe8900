// SPDX-License-Identifier: Apache-2.0
//! What the mesh says of the service's host, and what it is told of it.

use crate::sensed::Row;

/// Both directions, shared with the loop.
#[derive(Clone, Debug, Default)]
pub struct Link {
    row: Option<Row>,
}

impl Link {
    /// What was said last.
    pub fn row(&self) -> Option<Row> {
        self.row
    }

    /// In thousandths of a core.
    pub fn report(&self, _capacity_millicores: u32) {}
}
