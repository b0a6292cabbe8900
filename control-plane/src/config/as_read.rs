// SPDX-License-Identifier: Apache-2.0
//! What a file was when it was read, to see when it becomes something else.

#[cfg(test)]
mod tests;

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use xxhash_rust::xxh64::xxh64;

/// From so many bytes on a file is not kept, and not read each time: a tokenizer has ten million.
const LARGE: usize = 256 << 10;
/// A file that has changed within this time before it was read may change again without a sign of it: the times of
/// filesystems are as coarse as 2 s.
const SETTLED: Duration = Duration::from_secs(3);

/// A file as it was read.
#[derive(Clone, Debug)]
pub struct AsRead(Form);

#[derive(Clone, Debug)]
enum Form {
    Unreadable,
    Small(Vec<u8>),
    Large {
        digest: u64,
        /// None: it has changed too short a time before.
        stamp: Option<Stamp>,
    },
}

/// What changes with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl AsRead {
    /// Reads a regular file.
    pub(super) fn read(path: &Path) -> (io::Result<Vec<u8>>, Self) {
        Self::read_at(path, SystemTime::now())
    }

    fn read_at(path: &Path, now: SystemTime) -> (io::Result<Vec<u8>>, Self) {
        // Before it is read: what is written meanwhile is seen the next time.
        let stamp = Stamp::of(path).filter(|stamp| stamp.is_settled(now));
        let read = weir_settings::read(path);
        let form = match &read {
            Err(_) => Form::Unreadable,
            Ok(bytes) if bytes.len() < LARGE => Form::Small(bytes.clone()),
            Ok(bytes) => Form::Large {
                digest: xxh64(bytes, 0),
                stamp,
            },
        };
        (read, Self(form))
    }

    /// Whether the file could be read.
    pub fn was_read(&self) -> bool {
        !matches!(self.0, Form::Unreadable)
    }

    /// Whether the file is still the same.
    pub fn is_now(&mut self, path: &Path) -> bool {
        if self.is_known_to_be(path) {
            return true;
        }
        let (_, now) = Self::read(path);
        let is_same = match (&self.0, &now.0) {
            (Form::Unreadable, Form::Unreadable) => true,
            (Form::Small(old), Form::Small(new)) => old == new,
            (Form::Large { digest: old, .. }, Form::Large { digest: new, .. }) => old == new,
            _ => false,
        };
        if is_same {
            *self = now;
        }
        is_same
    }

    /// Whether it need not be read.
    fn is_known_to_be(&self, path: &Path) -> bool {
        match &self.0 {
            Form::Large { stamp, .. } => stamp.is_some() && *stamp == Stamp::of(path),
            Form::Unreadable | Form::Small(_) => false,
        }
    }
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let file: Metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: file.dev(),
            inode: file.ino(),
            length: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }

    fn is_settled(&self, now: SystemTime) -> bool {
        let last = self.modified.0.max(self.changed.0);
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let settled = now.saturating_sub(SETTLED).as_secs();
        i64::try_from(settled).is_ok_and(|settled| last < settled)
    }
}
