// SPDX-License-Identifier: Apache-2.0
//! The shared memory as the governor sees it: positioned reads, so that a truncated file is an error and never a
//! signal.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{self, Ordering};

/// Something with the bytes of the layout.
pub trait Memory {
    /// Fills the buffer from there, or fails.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes all of it there.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Reads and writes before it come before those after it. Nothing else orders them.
    fn fence(&self) {
        atomic::fence(Ordering::SeqCst);
    }
}

impl Memory for File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }
}
