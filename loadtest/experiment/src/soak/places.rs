// SPDX-License-Identifier: Apache-2.0
//! Where requests can be sent: it changes while the load goes on.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The listeners of the callers that are there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(Arc<Mutex<Lists>>);

#[derive(Debug, Default)]
struct Lists {
    used: Vec<Place>,
    left: Vec<Place>,
}

/// Whoever sends there has a clone of it meanwhile.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) listener: SocketAddr,
    /// Its VMs are killed, so requests may fail there.
    pub(crate) crashes: bool,
    /// Tells how many clones there are.
    pub(crate) senders: Arc<()>,
}

impl Places {
    pub(crate) fn add(&self, place: Place) {
        self.lock().used.push(place);
    }

    /// Nobody begins to send there.
    pub(crate) fn leave(&self, name: &str) {
        let mut lists = self.lock();
        let (left, used) = std::mem::take(&mut lists.used)
            .into_iter()
            .partition(|place| place.name == name);
        lists.used = used;
        let left: Vec<_> = left;
        lists.left.extend(left);
    }

    /// The names of those where nobody sends any more; each is told once.
    pub(crate) fn take_left(&self) -> Vec<String> {
        let mut lists = self.lock();
        let (free, busy): (Vec<_>, Vec<_>) = std::mem::take(&mut lists.left)
            .into_iter()
            .partition(|place| Arc::strong_count(&place.senders) == 1);
        lists.left = busy;
        free.into_iter().map(|place| place.name).collect()
    }

    pub(crate) fn all(&self) -> Vec<Place> {
        self.lock().used.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Lists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_been_left_when_the_last_who_sends_there_is_done() {
        let places = Places::default();
        for name in ["a", "b"] {
            places.add(Place {
                name: name.to_owned(),
                listener: "127.0.0.1:1".parse().unwrap(),
                crashes: false,
                senders: Arc::default(),
            });
        }
        let sending = places.all();
        places.leave("a");
        assert_eq!(
            places.take_left(),
            Vec::<String>::new(),
            "somebody sends there"
        );
        drop(sending);
        assert_eq!(places.take_left(), ["a"]);
        assert_eq!(places.take_left(), Vec::<String>::new(), "it was told");
        assert_eq!(places.all().len(), 1);
    }
}
