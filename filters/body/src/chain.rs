// SPDX-License-Identifier: Apache-2.0
//! A member's text, cut into blocks of which each has the hash of all before it.

use xxhash_rust::xxh64::{Xxh64, xxh64};

use weir_policy::MAX_BLOCKS;

/// Behind a member's name.
pub const NAME_END: &[u8] = &[0xfe];
/// Behind a string, and behind a number or word. No byte of UTF-8.
pub const VALUE_END: &[u8] = &[0xff];

/// What is kept of a text that is being read: it can be copied where two texts go on differently.
#[derive(Clone)]
pub struct Chain {
    hash: Xxh64,
    /// Of the block that is being read.
    bytes: usize,
    /// Full ones.
    blocks: usize,
}

impl Chain {
    /// Reads on, in blocks of so many bytes, at least one, and tells of each that is full its number, from 1, and its
    /// chained hash. Blocks beyond the first [`MAX_BLOCKS`] are not read.
    pub fn extend(
        &mut self,
        mut text: &[u8],
        block_bytes: usize,
        mut full: impl FnMut(usize, u64),
    ) {
        while !text.is_empty() && self.blocks < MAX_BLOCKS {
            let room = block_bytes.saturating_sub(self.bytes);
            let (part, rest) = text.split_at_checked(room).unwrap_or((text, &[]));
            self.hash.update(part);
            self.bytes += part.len();
            if self.bytes >= block_bytes {
                let block = self.hash.digest();
                self.blocks += 1;
                full(self.blocks, block);
                self.hash = Xxh64::new(block);
                self.bytes = 0;
            }
            text = rest;
        }
    }

    /// Whether no more of it will ever be read.
    pub fn is_full(&self) -> bool {
        self.blocks >= MAX_BLOCKS
    }

    /// What seeds the members behind this one, where that is what it was seeded with.
    pub fn seed(&self, seed: u64) -> u64 {
        match self.bytes == 0 && self.blocks == 0 {
            true => seed,
            false => mixed(self.hash.digest(), seed),
        }
    }
}

impl Default for Chain {
    /// Nothing is read.
    fn default() -> Self {
        Self {
            hash: Xxh64::new(0),
            bytes: 0,
            blocks: 0,
        }
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { bytes, blocks, .. } = self;
        write!(f, "Chain({blocks} blocks, {bytes} bytes)")
    }
}

/// What seeds the member behind `model`, where that is the string `model`.
pub fn seed_of_model(model: &[u8], block_bytes: usize) -> u64 {
    let mut chain = Chain::default();
    chain.extend(model, block_bytes, |_, _| ());
    chain.extend(VALUE_END, block_bytes, |_, _| ());
    chain.seed(0)
}

/// The name of a block in a member with this seed: 16 hexadecimal digits.
pub fn name(block: u64, seed: u64) -> [u8; 16] {
    let mut name = mixed(block, seed);
    let mut digits = [0; 16];
    for digit in digits.iter_mut().rev() {
        let nibble = (name & 0xf) as u8;
        *digit = match nibble {
            0..10 => b'0' + nibble,
            _ => b'a' + (nibble - 10),
        };
        name >>= 4;
    }
    digits
}

fn mixed(hash: u64, seed: u64) -> u64 {
    xxh64(&hash.to_le_bytes(), seed)
}
