// SPDX-License-Identifier: Apache-2.0
//! A request that has not ended.

use std::time::Duration;

use rustc_hash::FxHashMap;
use weir_executor::JobId;
use weir_policy::Request;

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
    /// Where it is; none while it backs off.
    pub(crate) at: Option<Place>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) host: usize,
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
        }
    }

    /// The host that this connection goes to, unless it has ended.
    pub(crate) fn at(&self, connection: u32) -> Option<Place> {
        self.at.filter(|_| self.connection == connection)
    }
}

/// Requests that have not ended, by their number. They are large, so the map holds places and not
/// them.
#[derive(Debug, Default)]
pub(crate) struct AllPending {
    places: FxHashMap<u32, usize>,
    /// Places of those that have ended are empty until others take them.
    requests: Vec<Option<Pending>>,
    free: Vec<usize>,
}

impl AllPending {
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(crate) fn insert(&mut self, request: u32, pending: Pending) {
        let place = match self.free.pop() {
            Some(place) => {
                self.requests[place] = Some(pending);
                place
            }
            None => {
                self.requests.push(Some(pending));
                self.requests.len() - 1
            }
        };
        self.places.insert(request, place);
    }

    pub(crate) fn get(&self, request: &u32) -> Option<&Pending> {
        self.requests[*self.places.get(request)?].as_ref()
    }

    pub(crate) fn get_mut(&mut self, request: &u32) -> Option<&mut Pending> {
        self.requests[*self.places.get(request)?].as_mut()
    }

    pub(crate) fn remove(&mut self, request: &u32) -> Option<Pending> {
        let place = self.places.remove(request)?;
        self.free.push(place);
        self.requests[place].take()
    }
}
