// SPDX-License-Identifier: Apache-2.0
//! One thread's part in a ring.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use super::attached::{Attached, RETRY_NS, Shared};
use crate::Problem;
use crate::lane::{Calls, Lane};
use crate::layout::{Event, FunctionId, Kind, Owner};
use crate::map::{self, core, now_ns};

/// A thread's lane, if it has one, and what it is in the middle of.
#[derive(Debug)]
pub(super) struct Thread {
    shared: Arc<Shared>,
    calls: Calls,
    lane: Option<Claimed>,
    retry_ns: u64,
}

#[derive(Debug)]
struct Claimed {
    attached: Arc<Attached>,
    lane: Lane,
    forks: u64,
}

impl Claimed {
    #[inline]
    fn is_mine(&self) -> bool {
        self.forks == map::forks() && self.lane.is_mine(&self.attached.map)
    }
}

impl Thread {
    pub(super) fn new(shared: Arc<Shared>) -> Thread {
        Thread {
            shared,
            calls: Calls::default(),
            lane: None,
            retry_ns: 0,
        }
    }

    #[inline]
    pub(super) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    pub(super) fn is_wanted(&self) -> bool {
        !self.shared.is_closed()
    }

    #[inline]
    pub(super) fn enter(&mut self, function: FunctionId) {
        if !self.calls.enter(function) {
            return;
        }
        let time_ns = now_ns();
        self.calls.began(function, time_ns);
        match &mut self.lane {
            Some(claimed) if claimed.is_mine() => {
                let event = Event {
                    time_ns,
                    kind: Kind::Enter,
                    function,
                    core: core(),
                };
                claimed.lane.record(&claimed.attached.map, &event);
            }
            _ => self.claim(time_ns),
        }
    }

    #[inline]
    pub(super) fn leave(&mut self, function: FunctionId) {
        if !self.calls.leave(function) {
            return;
        }
        if let Some(claimed) = &mut self.lane
            && claimed.is_mine()
        {
            let event = Event {
                time_ns: now_ns(),
                kind: Kind::Leave,
                function,
                core: core(),
            };
            claimed.lane.record(&claimed.attached.map, &event);
        }
    }

    /// Claims a lane, and says in it what runs.
    #[cold]
    fn claim(&mut self, now_ns: u64) {
        self.release();
        if now_ns < self.retry_ns {
            return;
        }
        let Some(attached) = self.shared.attached(now_ns) else {
            return;
        };
        // Before the lane is claimed: a fork after this is seen at the next call.
        let forks = map::forks();
        let owner = Owner {
            pid: std::process::id(),
            tid: nix::unistd::gettid().as_raw() as u32,
        };
        match Lane::claim(&attached.map, attached.geometry, owner) {
            Some(mut lane) => {
                lane.introduce(&attached.map, started(), namespace());
                self.calls.tell(&attached.map, &mut lane, core());
                self.lane = Some(Claimed {
                    attached,
                    lane,
                    forks,
                });
            }
            None => {
                self.retry_ns = now_ns.saturating_add(RETRY_NS);
                self.shared.full(attached.geometry);
            }
        }
    }

    fn release(&mut self) {
        if let Some(claimed) = self.lane.take()
            && claimed.is_mine()
        {
            claimed.lane.release(&claimed.attached.map);
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.release();
    }
}

/// Field 22 of this thread's `stat`, or 0. The name before it may have spaces and brackets of its own.
fn started() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let field = after_name.split_ascii_whitespace().nth(22 - 3);
    field.and_then(|field| field.parse().ok()).unwrap_or(0)
}

fn namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

/// On standard error, which may be closed.
pub(super) fn complain(problem: &Problem) {
    let _ = writeln!(
        std::io::stderr(),
        "weir-events: {problem}; hot functions are not told to the governor until that is over"
    );
}
