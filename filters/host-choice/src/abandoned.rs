// SPDX-License-Identifier: Apache-2.0
//! Requests whose exchange went away before Envoy said how they ended. Their guards leave here on drop what is
//! to be undone, and the VM takes it back before it decides again.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use weir_policy::{HostId, Ticket};

/// What a dropped guard leaves to be undone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Abandoned {
    /// An attempt that was in flight.
    InFlight {
        table: Rc<str>,
        host: HostId,
        at: Duration,
        /// The host of its second try.
        second: Option<HostId>,
        /// What its attempts found it by.
        tries: Option<u64>,
    },
    /// A place in the wait queue.
    Held { table: Rc<str>, ticket: Ticket },
}

/// What the guards of one VM have left. Each exchange leaves one entry at most, and one more for the host that reads its
/// prompt.
#[derive(Clone, Debug, Default)]
pub(crate) struct AbandonedQueue(Rc<RefCell<Vec<Abandoned>>>);

impl AbandonedQueue {
    pub(crate) fn push(&self, abandoned: Abandoned) {
        self.0.borrow_mut().push(abandoned);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    pub(crate) fn take(&self) -> Vec<Abandoned> {
        self.0.take()
    }
}
