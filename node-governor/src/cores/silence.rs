// SPDX-License-Identifier: Apache-2.0
//! For how long nothing has been heard of the service.

use std::time::Duration;

use crate::sensed::Nanos;

/// What to do when nothing is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Something,
    /// Lately: go on with what there is.
    NothingYet,
    /// For too long: the service gets what it may have.
    NothingForLong,
}

/// Since when nothing has been heard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silence {
    since: Option<Nanos>,
}

impl Silence {
    pub(super) fn hear(&mut self, now: Nanos, heard: bool, patience: Duration) -> Heard {
        if heard {
            self.since = None;
            return Heard::Something;
        }
        let since = *self.since.get_or_insert(now);
        if now.since(since) < patience {
            Heard::NothingYet
        } else {
            Heard::NothingForLong
        }
    }
}
