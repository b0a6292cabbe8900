// SPDX-License-Identifier: Apache-2.0
//! Where requests can be sent: it changes while the load goes on.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The listeners of the callers that are there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(Arc<Mutex<Vec<Place>>>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) listener: SocketAddr,
    /// Its VMs are killed, so requests may fail there.
    pub(crate) crashes: bool,
}

impl Places {
    pub(crate) fn add(&self, place: Place) {
        self.lock().push(place);
    }

    pub(crate) fn remove(&self, name: &str) {
        self.lock().retain(|place| place.name != name);
    }

    pub(crate) fn all(&self) -> Vec<Place> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
