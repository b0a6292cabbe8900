// SPDX-License-Identifier: Apache-2.0
//! Which object of the store holds a project, asked anew when the last answer is old.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::warn;
use weir_feeds::{ItemStore, Object, StoreError};

/// Projects remembered. Beyond that all are forgotten, which costs one question each.
const MOST: usize = 100_000;

/// The latest known object of every project asked for.
#[derive(Debug)]
pub struct Objects {
    store: ItemStore,
    recheck: Duration,
    known: Mutex<HashMap<Arc<str>, (Instant, Object)>>,
}

impl Objects {
    /// An answer is good for `recheck`; new data is seen after that time.
    #[must_use]
    pub fn new(store: ItemStore, recheck: Duration) -> Self {
        Self {
            store,
            recheck,
            known: Mutex::default(),
        }
    }

    /// The object of a project. While the store cannot be reached, the last known one, so that
    /// cached items go on serving.
    pub async fn find(&self, project: &str) -> Result<Object, StoreError> {
        let known = self.known().get(project).cloned();
        if let Some((at, object)) = &known
            && at.elapsed() < self.recheck
        {
            return Ok(object.clone());
        }
        match (self.store.find(project).await, known) {
            (Ok(object), _) => {
                let mut known = self.known();
                if known.len() >= MOST {
                    known.clear();
                }
                let entry = (Instant::now(), object.clone());
                known.insert(Arc::clone(&object.project), entry);
                Ok(object)
            }
            (Err(error @ StoreError::Unreachable { .. }), Some((_, object))) => {
                warn!(project, %error, "taking the project's last known object");
                Ok(object)
            }
            (Err(error), _) => {
                self.forget(project);
                Err(error)
            }
        }
    }

    /// The object is not what it was.
    pub fn forget(&self, project: &str) {
        self.known().remove(project);
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, (Instant, Object)>> {
        // The map is whole between any two calls, so a panic elsewhere leaves nothing half-done.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
