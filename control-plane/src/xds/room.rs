// SPDX-License-Identifier: Apache-2.0
//! Room for streams and for what they ask for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::gauge::Gauge;

use crate::config::DiscoveryLimits;
use crate::share::{self, NoRoom, Share};

/// A limit that a stream has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Full {
    #[error("discovery.max_streams is reached")]
    Streams,
    #[error("discovery.max_streams_per_proxy is reached")]
    OfProxy,
    #[error("the names that this stream asks for are over discovery.max_stream_bytes")]
    StreamBytes,
    #[error("the names that all streams ask for are over discovery.max_bytes")]
    Bytes,
    #[error("more than {} resource types", super::session::MAX_TYPES)]
    Types,
    #[error(
        "a name or version is over {} bytes",
        super::subscription::MAX_NAME_BYTES
    )]
    Name,
}

impl Full {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Streams,
        Self::OfProxy,
        Self::StreamBytes,
        Self::Bytes,
        Self::Types,
        Self::Name,
    ];

    /// Its label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Streams => "streams",
            Self::OfProxy => "streams_per_proxy",
            Self::StreamBytes => "stream_bytes",
            Self::Bytes => "bytes",
            Self::Types => "types",
            Self::Name => "name",
        }
    }
}

impl From<NoRoom> for Full {
    fn from(_: NoRoom) -> Self {
        Self::Bytes
    }
}

/// What the streams of a server take. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Room {
    taken: Arc<Mutex<Taken>>,
    limits: DiscoveryLimits,
    bytes: share::Room,
}

#[derive(Debug, Default)]
struct Taken {
    streams: usize,
    of_proxy: BTreeMap<Arc<str>, usize>,
}

/// One stream's part, given up on drop.
#[derive(Debug)]
pub(super) struct Place {
    room: Room,
    proxy: Option<Arc<str>>,
    share: Share,
}

impl Room {
    /// `bytes` shows what the names take.
    pub(super) fn new(limits: DiscoveryLimits, bytes: Gauge) -> Self {
        Self {
            taken: Arc::default(),
            limits,
            bytes: share::Room::new(limits.max_bytes, bytes),
        }
    }

    /// For what comes of one stream's requests until they are whole.
    pub(super) fn begun(&self) -> Share {
        self.bytes.share()
    }

    /// A place for one more stream.
    pub(super) fn enter(&self) -> Result<Place, Full> {
        let mut taken = self.lock();
        if taken.streams >= self.limits.max_streams {
            return Err(Full::Streams);
        }
        taken.streams += 1;
        Ok(Place {
            room: self.clone(),
            proxy: None,
            share: self.bytes.share(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Whose stream it is.
    pub(super) fn belongs_to(&mut self, proxy: &Arc<str>) -> Result<(), Full> {
        let mut taken = self.room.lock();
        let streams = taken.of_proxy.entry(proxy.clone()).or_default();
        if *streams >= self.room.limits.max_streams_per_proxy {
            return Err(Full::OfProxy);
        }
        *streams += 1;
        drop(taken);
        self.proxy = Some(proxy.clone());
        Ok(())
    }

    /// Bytes that its names may take.
    pub(super) fn stream_bytes(&self) -> usize {
        self.room.limits.max_stream_bytes
    }

    /// Its names take so many bytes now. Only who asks for more is refused.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<(), Full> {
        Ok(self.share.hold(bytes)?)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.room.lock();
        taken.streams -= 1;
        let Some(proxy) = &self.proxy else { return };
        if let Some(streams) = taken.of_proxy.get_mut(proxy) {
            *streams -= 1;
            if *streams == 0 {
                taken.of_proxy.remove(proxy);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room() -> Room {
        let limits = DiscoveryLimits {
            max_streams: 3,
            max_streams_per_proxy: 2,
            max_stream_bytes: 100,
            max_bytes: 150,
        };
        Room::new(limits, Gauge::default())
    }

    #[test]
    fn places_end_at_each_limit_and_come_back_with_those_who_leave() {
        let room = room();
        let proxy: Arc<str> = "p".into();
        let mut places: Vec<Place> = (0..3).map(|_| room.enter().unwrap()).collect();
        assert_eq!(room.enter().unwrap_err(), Full::Streams);
        places[0].belongs_to(&proxy).unwrap();
        places[1].belongs_to(&proxy).unwrap();
        assert_eq!(places[2].belongs_to(&proxy), Err(Full::OfProxy));
        places.remove(0);
        places[1].belongs_to(&proxy).unwrap();
        drop(places);
        let taken = room.lock();
        assert_eq!(
            (taken.streams, room.bytes.taken(), taken.of_proxy.len()),
            (0, 0, 0)
        );
    }

    #[test]
    fn only_a_stream_that_asks_for_more_is_refused_when_all_together_have_too_much() {
        let room = room();
        let (mut one, mut two) = (room.enter().unwrap(), room.enter().unwrap());
        one.hold(100).unwrap();
        assert_eq!(two.hold(51), Err(Full::Bytes));
        one.hold(100).unwrap();
        two.hold(50).unwrap();
        drop(one);
        two.hold(100).unwrap();
        assert_eq!(room.bytes.taken(), 100);
    }
}
