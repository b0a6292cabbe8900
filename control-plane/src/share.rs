// SPDX-License-Identifier: Apache-2.0
//! Bytes that streams take, each its own share of a room for all of them.

use prometheus_client::metrics::gauge::Gauge;

/// Room for so many bytes. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    /// Those that are taken: what is shown is what is counted.
    taken: Gauge,
    limit: usize,
}

/// What one stream takes, given up on drop.
#[derive(Debug)]
pub struct Share {
    room: Room,
    bytes: usize,
}

/// All together would take more than there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

impl Room {
    /// Of `limit` bytes; `taken` is at zero, and nobody else's.
    pub(crate) fn new(limit: usize, taken: Gauge) -> Self {
        Self { taken, limit }
    }

    /// Of one more stream.
    pub(crate) fn share(&self) -> Share {
        Share {
            room: self.clone(),
            bytes: 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn taken(&self) -> i64 {
        self.taken.get()
    }
}

impl Share {
    /// It takes so many bytes now. Only who wants more is refused.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let change = bytes as i64 - self.bytes as i64;
        self.bytes = bytes;
        let taken = self.room.taken.inc_by(change) + change;
        match change > 0 && taken > self.room.limit as i64 {
            true => Err(NoRoom),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
impl Share {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
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
        assert_eq!(two.hold(41), Err(NoRoom));
        one.hold(50).unwrap();
        drop(two);
        assert_eq!(room.taken(), 50);
        room.share().hold(50).unwrap();
        drop(one);
        assert_eq!(room.taken(), 0);
    }
}
