// SPDX-License-Identifier: Apache-2.0

mod interleavings;
mod lies;
mod model;
mod world;

use crate::layout::{Geometry, Header};

/// A file's words before any thread has come.
fn words(geometry: Geometry) -> Vec<u64> {
    let header = Header {
        geometry,
        retired: false,
        created_unix_ms: 0,
    };
    let mut words = vec![0; geometry.file_bytes() as usize / 8];
    for (word, bytes) in words.iter_mut().zip(header.encode().as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}
