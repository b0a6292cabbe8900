// SPDX-License-Identifier: Apache-2.0
//! Several processes with several threads each, as a test plays them, on one thread.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::bells::Bells;
pub use crate::metrics::Known;
use crate::process::{self, Time};
use crate::streams::{self, Streams};
use crate::worker::{self, Worker};

/// A process that is played, whose clock stands until it is set, and whose threads are woken by who plays it. It lives
/// for as long as the real one, as everything in it takes it to.
#[derive(Clone, Copy)]
pub struct Process(&'static process::Process);

impl Process {
    /// One with this name in the mesh.
    #[must_use]
    pub fn new(node: &str) -> Self {
        let time = Time::Played(AtomicU64::new(0), AtomicU64::new(0));
        let process = process::Process::with(Bells::silent(), time, Some(node.to_owned()));
        Self(Box::leak(Box::new(process)))
    }

    /// Sets its clocks: monotonic, and since 1970.
    pub fn set_time(&self, now: Duration, since_1970: Duration) {
        self.0.time.play(now, since_1970);
    }

    /// How often its threads want to be woken.
    #[must_use]
    pub fn tick(&self) -> Duration {
        self.0.bells.pause()
    }

    /// Its metrics, and their values.
    #[must_use]
    pub fn metrics(&self) -> Vec<(Known, u64)> {
        self.0.metrics.all()
    }

    /// What its threads share: keys, the number of their last write, values.
    #[must_use]
    pub fn shared(&self) -> Vec<(String, u32, Arc<[u8]>)> {
        self.0.shared.all()
    }
}

/// A thread that is played.
pub struct Thread {
    process: Process,
    worker: Rc<Worker>,
    streams: RefCell<Streams>,
}

impl Thread {
    /// One of this process.
    #[must_use]
    pub fn new(process: Process) -> Self {
        Self {
            process,
            worker: Rc::default(),
            streams: RefCell::default(),
        }
    }

    /// Calls hooks on it; another one's may be called within.
    pub fn run<T>(&self, hooks: impl FnOnce() -> T) -> T {
        struct Left<'a> {
            of: &'a Thread,
            process: &'static process::Process,
            worker: Rc<Worker>,
            streams: Streams,
        }
        impl Drop for Left<'_> {
            fn drop(&mut self) {
                process::enter(self.process);
                worker::enter(Rc::clone(&self.worker));
                let streams = streams::enter(std::mem::take(&mut self.streams));
                self.of.streams.replace(streams);
            }
        }
        let _left = Left {
            of: self,
            process: process::enter(self.process.0),
            worker: worker::enter(Rc::clone(&self.worker)),
            streams: streams::enter(self.streams.take()),
        };
        hooks()
    }
}
