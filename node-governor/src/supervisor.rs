// SPDX-License-Identifier: Apache-2.0
//! What the service manager is told: that cores are governed, that the loop moves, and that it ends. The loop tells it
//! itself: a thread of its own would go on while the loop hangs.

use std::time::Duration;

use weir_notify::{Manager, News};

use crate::sensed::Nanos;

/// The service manager, seen from the loop.
#[derive(Debug)]
pub(crate) struct Supervisor {
    manager: Manager,
    /// None where it waits for no heartbeat.
    every: Option<Duration>,
    told: Option<Nanos>,
}

impl Supervisor {
    /// By the environment.
    pub(crate) fn find() -> Self {
        let manager = Manager::find();
        Self {
            every: manager.limit().map(|limit| limit / 2),
            manager,
            told: None,
        }
    }

    /// A decision has been made.
    pub(crate) fn ticked(&mut self, now: Nanos) {
        let news = match self.told {
            None => News::Ready,
            Some(last) if self.every.is_some_and(|every| now.since(last) >= every) => News::Works,
            Some(_) => return,
        };
        self.manager.tell(news);
        self.told = Some(now);
    }

    /// Jobs may take long to end.
    pub(crate) fn ends(&self) {
        self.manager.tell(News::Ends);
    }
}
