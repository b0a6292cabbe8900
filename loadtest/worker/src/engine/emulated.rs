// SPDX-License-Identifier: Apache-2.0
//! Time from a model: no CPU is burnt and no data is read.

use std::convert::Infallible;
use std::time::Duration;

use weir_executor::{Emulator, Event, Executor, Full, JobId, Load, Modelled, Request};

use crate::engine::Engine;

impl Engine for Emulator {
    type Work = Modelled;

    fn submit(&mut self, now: Duration, request: Request<Modelled>) -> Result<JobId, Full> {
        Emulator::submit(self, now, request)
    }

    fn cancel(&mut self, now: Duration, job: JobId) {
        Emulator::cancel(self, now, job);
    }

    fn abort(&mut self, now: Duration, job: JobId) {
        // A model has nothing that could be stopped: the core is free when its time is over.
        Emulator::cancel(self, now, job);
    }

    fn stop(&mut self) {}

    fn is_still(&self) -> bool {
        true
    }

    fn advance(&mut self, now: Duration) -> Vec<Event<Infallible>> {
        Emulator::advance(self, now)
    }

    async fn wake(&mut self, now: Duration) {
        match self.next_due() {
            Some(due) => tokio::time::sleep(due.saturating_sub(now)).await,
            None => std::future::pending().await,
        }
    }

    fn load(&mut self, now: Duration) -> Load {
        Emulator::load(self, now)
    }

    fn executor(&self) -> &Executor<Modelled> {
        Emulator::executor(self)
    }
}
