// SPDX-License-Identifier: Apache-2.0
//! Room for the reports that wait for the state's owner, of all streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus_client::metrics::gauge::Gauge;

use super::end::End;

/// Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Room {
    taken: Arc<AtomicUsize>,
    limit: usize,
    bytes: Gauge,
}

/// What one stream takes, given up on drop.
#[derive(Debug)]
pub(super) struct Share {
    room: Room,
    bytes: usize,
}

impl Room {
    /// Of so many bytes, `bytes` of which are shown to be taken.
    pub(super) fn new(limit: usize, bytes: Gauge) -> Self {
        Self {
            taken: Arc::default(),
            limit,
            bytes,
        }
    }

    /// Of one more stream.
    pub(super) fn share(&self) -> Share {
        Share {
            room: self.clone(),
            bytes: 0,
        }
    }
}

impl Share {
    /// So many bytes wait now. Only who wants more is refused.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<(), End> {
        let before = std::mem::replace(&mut self.bytes, bytes);
        let room = &self.room;
        // Wraps where it gets less; what others add in between is theirs.
        let change = bytes.wrapping_sub(before);
        let taken = room.taken.fetch_add(change, Ordering::Relaxed);
        let taken = taken.wrapping_add(change);
        room.bytes.set(taken as i64);
        match bytes > before && taken > room.limit {
            true => Err(End::NoRoom),
            false => Ok(()),
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let _ = self.hold(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_stream_that_wants_more_is_refused_and_what_it_had_is_room_again() {
        let room = Room::new(100, Gauge::default());
        let (mut one, mut two) = (room.share(), room.share());
        one.hold(60).unwrap();
        assert_eq!(two.hold(41).unwrap_err().as_str(), "no_room");
        one.hold(50).unwrap();
        drop(two);
        assert_eq!(room.bytes.get(), 50);
        room.share().hold(50).unwrap();
        drop(one);
        assert_eq!(room.bytes.get(), 0);
    }
}
