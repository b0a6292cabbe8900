// SPDX-License-Identifier: Apache-2.0
//! What memcached is to hold: numbered keys, each with a value that follows from its number.

use std::io::Write;

use thiserror::Error;
use weir_replay::rng::SplitMix64;

/// Bytes of a key, as mcperf's ancestor mutilate has them by default (`--keysize`).
pub const KEY_BYTES: usize = 30;
/// All keys are kept in memory, 31 MB for so many.
const MOST_KEYS: u32 = 1_000_000;
/// memcached holds up to 1 MB an item unless told otherwise (`-I`).
const LARGEST_VALUE: usize = 1_000_000;
/// Values of keys whose numbers differ by less than this differ.
const VALUES: usize = 251;

/// Why there are no such keys.
#[derive(Debug, Error, PartialEq)]
pub enum Refused {
    /// How many.
    #[error("keys: {0} is not between 1 and 1,000,000")]
    Count(u32),
    /// How long their values are.
    #[error("value-bytes: {0} is not between 1 and 1,000,000")]
    ValueBytes(usize),
}

/// The keys and their values.
#[derive(Debug)]
pub struct Keys {
    count: u32,
    value_bytes: usize,
    keys: Vec<u8>,
    values: Vec<u8>,
}

impl Keys {
    /// So many keys with values of so many bytes.
    ///
    /// # Errors
    /// They are none or too many.
    pub fn new(count: u32, value_bytes: usize) -> Result<Self, Refused> {
        if !(1..=MOST_KEYS).contains(&count) {
            return Err(Refused::Count(count));
        }
        if !(1..=LARGEST_VALUE).contains(&value_bytes) {
            return Err(Refused::ValueBytes(value_bytes));
        }
        let mut keys = Vec::with_capacity(count as usize * KEY_BYTES);
        for number in 0..count {
            // To a vector, nothing can fail.
            let _ = write!(keys, "weir-{number:025}");
        }
        let mut random = SplitMix64::new(0);
        let values = (0..value_bytes + VALUES)
            .map(|_| b'a' + (random.next_u64() % 26) as u8)
            .collect();
        Ok(Self {
            count,
            value_bytes,
            keys,
            values,
        })
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Bytes of each value.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    /// The key with this number, which is below the count.
    #[must_use]
    pub fn key(&self, number: u32) -> &[u8] {
        &self.keys[number as usize * KEY_BYTES..][..KEY_BYTES]
    }

    /// Its value.
    #[must_use]
    pub fn value(&self, number: u32) -> &[u8] {
        &self.values[number as usize % VALUES..][..self.value_bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_so_do_values_of_neighbours() {
        let keys = Keys::new(300, 40).unwrap();
        assert_eq!(keys.key(42), b"weir-0000000000000000000000042");
        for number in 1..300 {
            assert_ne!(keys.key(number - 1), keys.key(number));
            assert_ne!(keys.value(number - 1), keys.value(number));
            assert_eq!(keys.value(number).len(), 40);
        }
    }

    #[test]
    fn none_and_too_many_are_refused() {
        assert_eq!(Keys::new(0, 1).unwrap_err(), Refused::Count(0));
        assert!(Keys::new(1_000_001, 1).is_err());
        assert_eq!(Keys::new(1, 0).unwrap_err(), Refused::ValueBytes(0));
        assert!(Keys::new(1, 1_000_001).is_err());
    }
}
