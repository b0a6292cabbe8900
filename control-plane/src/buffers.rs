// SPDX-License-Identifier: Apache-2.0
//! Buffers of streams. tonic keeps one for each direction that it encodes or decodes, for as long as the stream lives,
//! and lets it grow for a message that is larger: a thousand sidecars with 8 KiB each, its default, were 24 MB.

use tonic::codec::BufferSettings;

/// An acknowledgement and the answer to a report take some hundred bytes, and so do most reports.
const BYTES: usize = 1 << 10;
/// Messages of so many bytes together go out in one piece: tonic's default.
const TOGETHER: usize = 32 << 10;

/// Of a stream whose messages are small.
pub(crate) fn small() -> BufferSettings {
    BufferSettings::new(BYTES, TOGETHER)
}
