// SPDX-License-Identifier: Apache-2.0
//! A request that has not ended.

use std::collections::VecDeque;
use std::time::Duration;

use weir_policy::{Request, Ticket};

use crate::ended::Ended;
use crate::machine::TaskId;
use crate::workload::Job;

#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) job: Job,
    pub(crate) ended: Ended,
    /// As the last decision was told.
    pub(crate) asked: Option<Request>,
    /// What the last decision named, best first.
    pub(crate) ranked: Vec<usize>,
    /// How long it may wait at each, as far as there are bounds.
    pub(crate) bounds: Vec<Duration>,
    /// How many of them did not take the connection, or gave it back.
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
    /// How many requests its caller wants to have there, where hosts give credits.
    pub(crate) demand: Option<u32>,
    /// Once the host has taken it: the job, and when.
    pub(crate) job: Option<(TaskId, Duration)>,
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
            bounds: Vec::new(),
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

/// Requests that have not ended, by their number, which rises by one from request to request.
#[derive(Debug, Default)]
pub(crate) struct AllPending {
    /// The number of the first of `places`.
    first: u32,
    /// Of every request from the oldest that has not ended on; none of those that have.
    places: VecDeque<Option<u32>>,
    /// They are large, so none is moved; places of those that have ended are empty until others
    /// take them.
    requests: Vec<Option<Pending>>,
    free: Vec<u32>,
}

impl AllPending {
    /// Takes the request from where this connection has brought it: that host, and when it was sent there.
    pub(crate) fn leave(
        &mut self,
        request: u32,
        connection: u32,
    ) -> Option<(&mut Pending, (usize, Duration))> {
        let pending = self.get_mut(&request)?;
        let Place { host, sent, .. } = pending.at(connection)?;
        pending.at = None;
        Some((pending, (host, sent)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The next request.
    pub(crate) fn insert(&mut self, request: u32, pending: Pending) {
        if self.places.is_empty() {
            self.first = request;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.requests.push(None);
            self.requests.len() as u32 - 1
        });
        self.requests[place as usize] = Some(pending);
        self.places.push_back(Some(place));
    }

    fn place(&self, request: u32) -> Option<u32> {
        let place = request.checked_sub(self.first)?;
        self.places.get(place as usize).copied().flatten()
    }

    pub(crate) fn get(&self, request: &u32) -> Option<&Pending> {
        self.requests[self.place(*request)? as usize].as_ref()
    }

    pub(crate) fn get_mut(&mut self, request: &u32) -> Option<&mut Pending> {
        let place = self.place(*request)?;
        self.requests[place as usize].as_mut()
    }

    pub(crate) fn remove(&mut self, request: &u32) -> Option<Pending> {
        let place = self.place(*request)?;
        self.places[(*request - self.first) as usize] = None;
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.first += 1;
        }
        self.free.push(place);
        self.requests[place as usize].take()
    }
}
