// SPDX-License-Identifier: Apache-2.0
//! All simulated sidecars of a server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::task::JoinSet;
use weir_stage::interrupt;

use super::receipts::Receipts;
use super::sidecar::{self, Task};
use crate::fleet::hosts::Hosts;

/// One in so many looks into the tables it gets: to look into all of them would keep the machine
/// busier than what is measured.
pub(super) const LOOKING: usize = 10;

/// Connecting all of them takes a second or two.
const SERVED: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(5);

/// Connected for as long as it is kept.
pub(super) struct Crowd {
    pub(super) receipts: Arc<Receipts>,
    sidecars: JoinSet<()>,
}

impl Crowd {
    /// Starts all at once, and returns when the last of them has been served, with the time it took.
    pub(super) async fn connect(
        size: usize,
        server: SocketAddr,
        names: &[String],
        hosts: &Hosts,
    ) -> Result<(Self, Duration)> {
        let started = Instant::now();
        let receipts = Arc::new(Receipts::default());
        let mut sidecars = JoinSet::new();
        for number in 0..size {
            sidecars.spawn(sidecar::run(Task {
                number,
                server,
                names: names.to_vec(),
                receipts: receipts.clone(),
                history: (number % LOOKING == 0).then(|| hosts.history.clone()),
            }));
        }
        let crowd = Self { receipts, sidecars };
        while crowd.receipts.served.load(Ordering::Relaxed) < size as u64 {
            interrupt::check()?;
            let served = &crowd.receipts.served;
            ensure!(
                started.elapsed() < SERVED,
                "only {} of {size} simulated sidecars were served within {} s",
                served.load(Ordering::Relaxed),
                SERVED.as_secs()
            );
            tokio::time::sleep(LOOK).await;
        }
        Ok((crowd, started.elapsed()))
    }

    /// Ends all of them, connections included.
    pub(super) async fn leave(mut self) {
        self.sidecars.shutdown().await;
    }
}
