// SPDX-License-Identifier: Apache-2.0
//! The first page: what the file is, how large its parts are.

use std::ops::RangeInclusive;

use super::{
    EVENT_BYTES, FUNCTIONS, HEAD_BYTES, HEADER_BYTES, LIVE, MAGIC, RETIRED, SINCE_NS, STATE,
    VERSION,
};

const LANES: RangeInclusive<u32> = 1..=4096;
const EVENTS_PER_LANE: RangeInclusive<u32> = 16..=65536;

/// What makes a header one that this version cannot use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Something else is in the file.
    #[error("the first 8 bytes are {found:02x?}, those of a ring of events are \"WEIREVT1\"")]
    Magic {
        /// What is there.
        found: [u8; 8],
    },
    /// Made by another release.
    #[error("version is {found}, this program knows {VERSION}")]
    Version {
        /// What is there.
        found: u32,
    },
    /// A number out of its range.
    #[error("{field} is {found}, expected {expected}")]
    Field {
        /// Its name in the layout.
        field: &'static str,
        /// What is there.
        found: u64,
        /// In words.
        expected: &'static str,
    },
    /// Truncated, or longer than it says.
    #[error("the file has {found} bytes, expected {expected}")]
    Length {
        /// What is there.
        found: u64,
        /// By the header, or at least a header.
        expected: u64,
    },
}

/// How many lanes there are and how many events each keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    lanes: u32,
    events_per_lane: u32,
}

impl Default for Geometry {
    /// A lane for each of 256 threads, and 256 events for each: at 10 ms a tick, 25,600 a second before any is
    /// lost. 1.1 MB.
    fn default() -> Geometry {
        Geometry {
            lanes: 256,
            events_per_lane: 256,
        }
    }
}

impl Geometry {
    /// 1 to 4096 lanes; events a power of two, 16 to 65536.
    pub fn new(lanes: u32, events_per_lane: u32) -> Result<Geometry, HeaderError> {
        if !LANES.contains(&lanes) {
            return Err(HeaderError::Field {
                field: "lanes",
                found: lanes.into(),
                expected: "1 to 4096",
            });
        }
        if !EVENTS_PER_LANE.contains(&events_per_lane) || !events_per_lane.is_power_of_two() {
            return Err(HeaderError::Field {
                field: "events_per_lane",
                found: events_per_lane.into(),
                expected: "a power of two, 16 to 65536",
            });
        }
        Ok(Geometry {
            lanes,
            events_per_lane,
        })
    }

    /// How many lanes.
    pub const fn lanes(self) -> u32 {
        self.lanes
    }

    /// How many events each keeps.
    pub const fn events_per_lane(self) -> u32 {
        self.events_per_lane
    }

    /// Where a lane's head is.
    #[inline]
    pub const fn head(self, lane: u32) -> u64 {
        HEADER_BYTES + lane as u64 * HEAD_BYTES
    }

    /// Where a lane's word for a function is.
    pub const fn since(self, lane: u32, function: usize) -> u64 {
        self.head(lane) + SINCE_NS + 8 * function as u64
    }

    /// Where the lane's event with this number is.
    #[inline]
    pub const fn event(self, lane: u32, number: u64) -> u64 {
        let slot = number & (self.events_per_lane as u64 - 1);
        self.head(self.lanes) + (lane as u64 * self.events_per_lane as u64 + slot) * EVENT_BYTES
    }

    /// How long the file is, exactly.
    pub const fn file_bytes(self) -> u64 {
        self.event(self.lanes, 0)
    }
}

/// What the first page says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The sizes.
    pub geometry: Geometry,
    /// Whether the governor has replaced this file.
    pub retired: bool,
    /// When the governor made it.
    pub created_unix_ms: u64,
}

impl Header {
    /// The words in use; zeros follow to the end of the page.
    pub fn encode(&self) -> [u8; 40] {
        let state = if self.retired { RETIRED } else { LIVE };
        let mut page = [0; 40];
        page[..8].copy_from_slice(&MAGIC.to_le_bytes());
        page[8..12].copy_from_slice(&VERSION.to_le_bytes());
        page[12..16].copy_from_slice(&self.geometry.lanes.to_le_bytes());
        page[16..20].copy_from_slice(&self.geometry.events_per_lane.to_le_bytes());
        page[20..24].copy_from_slice(&(FUNCTIONS as u32).to_le_bytes());
        page[STATE as usize..32].copy_from_slice(&state.to_le_bytes());
        page[32..40].copy_from_slice(&self.created_unix_ms.to_le_bytes());
        page
    }

    /// Checks all of it, and that a file of this length can be it.
    pub fn check(page: &[u8], file_bytes: u64) -> Result<Header, HeaderError> {
        // Whatever its length: a file of something else is not one of ours that has been truncated.
        if let Some(found) = page.first_chunk()
            && u64::from_le_bytes(*found) != MAGIC
        {
            return Err(HeaderError::Magic { found: *found });
        }
        let Some(page) = page
            .first_chunk::<40>()
            .filter(|_| file_bytes >= HEADER_BYTES)
        else {
            return Err(HeaderError::Length {
                found: file_bytes,
                expected: HEADER_BYTES,
            });
        };
        let u32_at = |at: usize| {
            page[at..]
                .first_chunk()
                .map_or(0, |b| u32::from_le_bytes(*b))
        };
        let u64_at = |at: usize| {
            page[at..]
                .first_chunk()
                .map_or(0, |b| u64::from_le_bytes(*b))
        };
        if u32_at(8) != VERSION {
            return Err(HeaderError::Version { found: u32_at(8) });
        }
        let geometry = Geometry::new(u32_at(12), u32_at(16))?;
        if u32_at(20) as usize != FUNCTIONS {
            return Err(HeaderError::Field {
                field: "functions",
                found: u32_at(20).into(),
                expected: "16",
            });
        }
        let state = u64_at(STATE as usize);
        if state != LIVE && state != RETIRED {
            return Err(HeaderError::Field {
                field: "state",
                found: state,
                expected: "1 (live) or 2 (retired)",
            });
        }
        if file_bytes != geometry.file_bytes() {
            return Err(HeaderError::Length {
                found: file_bytes,
                expected: geometry.file_bytes(),
            });
        }
        Ok(Header {
            geometry,
            retired: state == RETIRED,
            created_unix_ms: u64_at(32),
        })
    }
}
