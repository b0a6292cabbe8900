// SPDX-License-Identifier: Apache-2.0
//! A configuration that Envoy has given, as all its threads know it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::abi::Configuration;
use crate::bells::Bell;
use crate::metrics::Numbers;

/// A configuration of the process.
pub(crate) struct Installed {
    /// As its roots are numbered, one a thread.
    pub(crate) id: u32,
    pub(crate) json: Vec<u8>,
    pub(crate) tick: Duration,
    /// Requests that are paused wait for their bodies.
    pub(crate) reads_bodies: bool,
    /// Envoy's; hooks that come by this configuration alone may use it.
    pub(crate) envoy: Configuration,
    pub(crate) numbers: Numbers,
    is_gone: AtomicBool,
    bell: Mutex<Option<Arc<Bell>>>,
}

impl Installed {
    pub(crate) fn new(
        (id, json): (u32, &[u8]),
        (tick, reads_bodies): (Duration, bool),
        (envoy, numbers): (Configuration, Numbers),
    ) -> Self {
        Self {
            id,
            json: json.into(),
            tick,
            reads_bodies,
            envoy,
            numbers,
            is_gone: AtomicBool::new(false),
            bell: Mutex::default(),
        }
    }

    /// It has ticks on the main thread by this bell.
    pub(crate) fn hang(&self, bell: Arc<Bell>) {
        *self.bell.lock().unwrap_or_else(PoisonError::into_inner) = Some(bell);
    }

    /// A tick has come.
    pub(crate) fn heard(&self) {
        let bell = self.bell.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = &*bell {
            bell.heard();
        }
    }

    /// Envoy has given it up, on any thread. Gives back its bell.
    pub(crate) fn go(&self) -> Option<Arc<Bell>> {
        self.is_gone.store(true, Ordering::Release);
        let mut bell = self.bell.lock().unwrap_or_else(PoisonError::into_inner);
        bell.take()
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }
}

/// The configurations of the process. Each thread enters all of them, also those by which no request of its own has
/// come yet: a VM does by one what another one asks for.
pub(crate) struct Configurations {
    last: AtomicU32,
    added: AtomicU64,
    alive: Mutex<Vec<Weak<Installed>>>,
}

impl Configurations {
    pub(crate) const fn new() -> Self {
        Self {
            last: AtomicU32::new(0),
            added: AtomicU64::new(0),
            alive: Mutex::new(Vec::new()),
        }
    }

    /// The number of the next one.
    pub(crate) fn number(&self) -> u32 {
        self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// One is there for all threads.
    pub(crate) fn add(&self, installed: &Arc<Installed>) {
        let mut alive = self.lock();
        alive.retain(|known| known.strong_count() > 0);
        alive.push(Arc::downgrade(installed));
        drop(alive);
        self.added.fetch_add(1, Ordering::Release);
    }

    /// How many were added so far: another number than before says that a thread has some to enter.
    pub(crate) fn added(&self) -> u64 {
        self.added.load(Ordering::Acquire)
    }

    /// Those that Envoy has not given up.
    pub(crate) fn alive(&self) -> Vec<Arc<Installed>> {
        let alive = self.lock();
        let known = alive.iter().filter_map(Weak::upgrade);
        known.filter(|installed| !installed.is_gone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Installed>>> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
