// SPDX-License-Identifier: Apache-2.0
//! A configuration that Envoy has given, as all its threads know it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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
