// SPDX-License-Identifier: Apache-2.0
//! A request that has not ended.

use std::time::Duration;

use weir_executor::JobId;
use weir_policy::{Request, Ticket};

use crate::ended::Ended;
use crate::workload::Job;

#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) job: Job,
    pub(crate) ended: Ended,
    /// As the last decision was told.
    pub(crate) asked: Option<Request>,
    /// What the last decision named, best first.
    pub(crate) ranked: Vec<usize>,
    /// How many of them did not take the connection.
    pub(crate) tried: usize,
    /// Connections so far; an event of an older one is void.
    pub(crate) connection: u32,
    /// When the attempt began.
    pub(crate) began: Duration,
    /// Where it is; none while it backs off or waits at its caller.
    pub(crate) at: Option<Place>,
    /// Where it is too, by the same connection's number.
    pub(crate) second: Option<Place>,
    /// When the second host is tried, counted from the sending.
    pub(crate) hedge: Option<Duration>,
    /// While it waits at its caller.
    pub(crate) held: Option<Ticket>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) host: usize,
    /// When it was sent there.
    pub(crate) sent: Duration,
    /// Once the host has taken it: the job, and when.
    pub(crate) job: Option<(JobId, Duration)>,
    /// A joblet of it has had a core.
    pub(crate) started: bool,
}

impl Pending {
    pub(crate) fn new(job: Job, ended: Ended) -> Self {
        Self {
            job,
            ended,
            asked: None,
            ranked: Vec::new(),
            tried: 0,
            connection: 0,
            began: Duration::ZERO,
            at: None,
            second: None,
            hedge: None,
            held: None,
        }
    }

    /// The second host, unless the connection has ended.
    pub(crate) fn second_at(&self, connection: u32) -> Option<Place> {
        self.second.filter(|_| self.connection == connection)
    }

    /// The host that this connection goes to, unless it has ended.
    pub(crate) fn at(&self, connection: u32) -> Option<Place> {
        self.at.filter(|_| self.connection == connection)
    }
}
