// SPDX-License-Identifier: Apache-2.0
//! Hash maps by what is a hash already.

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::key::split_mix;

/// Takes the number as it is: for hosts, which weir-control has checked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id;
    }
}

/// Mixes a secret into the number: for keys, which callers make up. Else they could make up such that all
/// fall into one place of the map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Salted(AsIs);

impl Default for Salted {
    fn default() -> Self {
        Self(AsIs(RandomState::new().hash_one(0u64)))
    }
}

impl BuildHasher for Salted {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        *self
    }
}

impl Hasher for Salted {
    fn finish(&self) -> u64 {
        split_mix(&mut self.0.finish())
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn write_u64(&mut self, key: u64) {
        self.0.0 ^= key;
    }
}
