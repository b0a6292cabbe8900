// SPDX-License-Identifier: Apache-2.0
//! Files in folders that others may write to: a link there would lead elsewhere, and a pipe would be waited for.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens what is nobody's but a file; an error where it is a link or anything else.
pub(crate) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // Does not wait for the other end of a pipe.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = options.custom_flags(flags.bits() as i32).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "not a file")),
    }
}
