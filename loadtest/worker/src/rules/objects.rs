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
    /// cached items go on serving; the next look is due `recheck` later, as a store that is down is
    /// slow to say so.
    pub async fn find(&self, project: &str) -> Result<Object, StoreError> {
        let known = self.known().get(project).cloned();
        if let Some((at, object)) = &known
            && at.elapsed() < self.recheck
        {
            return Ok(object.clone());
        }
        if let Some((_, object)) = &known {
            // Whoever comes while this one looks takes what is known.
            self.remember(object);
        }
        match (self.store.find(project).await, known) {
            (Ok(object), _) => {
                self.remember(&object);
                Ok(object)
            }
            (Err(error @ StoreError::Unreachable { .. }), Some((_, object))) => {
                warn!(project, %error, "taking the project's last known object");
                self.remember(&object);
                Ok(object)
            }
            (Err(error), _) => {
                self.forget(project);
                Err(error)
            }
        }
    }

    fn remember(&self, object: &Object) {
        let mut known = self.known();
        if known.len() >= MOST {
            known.clear();
        }
        let entry = (Instant::now(), object.clone());
        known.insert(Arc::clone(&object.project), entry);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_store_that_is_down_was_looked_at_all_the_same() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("items");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("a.ndjson"), "{}\n").unwrap();
        let store = ItemStore::open(folder.to_str().unwrap()).unwrap();
        let objects = Objects::new(store, Duration::ZERO);
        let object = objects.find("a").await.unwrap();
        let (looked, _) = objects.known()["a"];

        // A file where the folder was is no answer at all.
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::write(&folder, "").unwrap();
        assert_eq!(objects.find("a").await.unwrap(), object);
        let (again, _) = objects.known()["a"];
        assert!(again > looked);
    }
}
