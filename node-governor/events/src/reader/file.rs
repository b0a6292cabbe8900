// SPDX-License-Identifier: Apache-2.0
//! The file: made whole or not at all, taken over from the last governor, replaced where it is of another kind.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{
    DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown,
};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{ReadError, Reader};
use crate::FileError;
use crate::layout::{Geometry, HEADER_BYTES, Header, HeaderError, RETIRED, STATE};

/// Only the owner and the group may write, and nobody else may read.
const MODE: u32 = 0o660;
/// Everybody may find the file; only the governor may put another in its place.
const DIRECTORY_MODE: u32 = 0o755;

/// The origin of a reader's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// There was none.
    Created,
    /// Of a governor before this one: its producers stay attached.
    Adopted,
    /// There was another, for this reason it could not be used. Its producers attach to the new one.
    Replaced(HeaderError),
}

impl Reader<File> {
    /// Makes the file, or takes it over from a governor that ran before, as the same user, with the same sizes.
    ///
    /// `group` is the one whose members may write; `None` for the user's own. The directory is made if it is
    /// missing. Refused, and left as they are: what is no ring, no plain file, another user's, of another group,
    /// with other permissions, in a directory where others may put files, or read by another governor.
    pub fn create_or_adopt(
        path: impl AsRef<Path>,
        geometry: Geometry,
        group: Option<u32>,
    ) -> Result<(Reader<File>, Opened), ReadError> {
        let place = Place {
            path: path.as_ref(),
            group,
        };
        place.directory()?;
        let (file, opened) = match place.open()? {
            None => (place.create(geometry, None)?, Opened::Created),
            Some((file, bytes)) => match place.usable(&file, bytes, geometry)? {
                Ok(()) => (file, Opened::Adopted),
                Err(why) => {
                    let old = Some((&file, bytes));
                    (place.create(geometry, old)?, Opened::Replaced(why))
                }
            },
        };
        let reader = Reader::over(file, place.path, geometry.file_bytes())?;
        Ok((reader, opened))
    }
}

struct Place<'a> {
    path: &'a Path,
    group: Option<u32>,
}

impl Place<'_> {
    fn group(&self) -> u32 {
        self.group
            .unwrap_or_else(|| nix::unistd::getegid().as_raw())
    }

    fn directory(&self) -> Result<(), ReadError> {
        let path = match self.path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let made = DirBuilder::new().mode(DIRECTORY_MODE).create(path);
        match made {
            Ok(()) => {
                // Whatever the umask.
                let permissions = Permissions::from_mode(DIRECTORY_MODE);
                fs::set_permissions(path, permissions).map_err(FileError::of(path))?;
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(FileError::of(path)(error).into()),
        }
        // Of a link, whoever may change it says where the file is.
        let found = fs::symlink_metadata(path).map_err(FileError::of(path))?;
        if !found.is_dir() {
            let expected = "a directory, not by a link".to_owned();
            return Err(refused(path, "no directory".to_owned(), expected));
        }
        let user = nix::unistd::geteuid().as_raw();
        if found.mode() & 0o022 != 0 || ![0, user].contains(&found.uid()) {
            return Err(refused(
                path,
                format!("a directory of user {}, {}", found.uid(), mode(&found)),
                format!("one where only root or user {user} may put files, 755"),
            ));
        }
        Ok(())
    }

    /// The file that is there, after it has been looked at, not through a link.
    fn open(&self) -> Result<Option<(File, u64)>, ReadError> {
        match fs::symlink_metadata(self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FileError::of(self.path)(error).into()),
            Ok(found) => self.check(&found)?,
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(self.path)
            .map_err(FileError::of(self.path))?;
        let found = file.metadata().map_err(FileError::of(self.path))?;
        self.check(&found)?;
        self.lock(&file)?;
        Ok(Some((file, found.len())))
    }

    fn check(&self, found: &Metadata) -> Result<(), ReadError> {
        let user = nix::unistd::geteuid().as_raw();
        let refuse = |found, expected| Err(refused(self.path, found, expected));
        if !found.is_file() {
            return refuse("no plain file".to_owned(), "a file, or nothing".to_owned());
        }
        if found.uid() != user {
            let found = format!("owned by user {}", found.uid());
            return refuse(found, format!("user {user}, who runs the governor"));
        }
        let group = self.group();
        if found.gid() != group {
            let found = format!("of group {}", found.gid());
            return refuse(found, format!("group {group}, the one that may write"));
        }
        if found.mode() & 0o7777 != MODE {
            return refuse(mode(found), format!("mode {MODE:o}"));
        }
        Ok(())
    }

    /// Whether the file can be used, or why it is to be replaced. Nothing of somebody else's is replaced.
    fn usable(
        &self,
        file: &File,
        bytes: u64,
        geometry: Geometry,
    ) -> Result<Result<(), HeaderError>, ReadError> {
        let mut page = [0; 40];
        let read = file
            .read_at(&mut page, 0)
            .map_err(FileError::of(self.path))?;
        Ok(match Header::check(&page[..read], bytes) {
            Err(error @ HeaderError::Magic { .. }) => {
                let expected = "a ring of events, or nothing".to_owned();
                return Err(refused(self.path, error.to_string(), expected));
            }
            Err(why) => Err(why),
            Ok(header) if header.retired => Err(HeaderError::Field {
                field: "state",
                found: RETIRED,
                expected: "1 (live)",
            }),
            Ok(header) if header.geometry.lanes() != geometry.lanes() => Err(HeaderError::Field {
                field: "lanes",
                found: header.geometry.lanes().into(),
                expected: "as configured",
            }),
            Ok(header) if header.geometry != geometry => Err(HeaderError::Field {
                field: "events_per_lane",
                found: header.geometry.events_per_lane().into(),
                expected: "as configured",
            }),
            Ok(_) => Ok(()),
        })
    }

    /// Tells the producers that are attached to go. Those of a truncated file would die of their next store: it
    /// gets its length back first.
    fn retire(&self, file: &File, bytes: u64, geometry: Geometry) -> Result<(), ReadError> {
        let mut sizes = [0; 8];
        let whole = match file.read_exact_at(&mut sizes, 12) {
            Ok(()) => {
                let [a, b, c, d, e, f, g, h] = sizes;
                let (lanes, events) = ([a, b, c, d], [e, f, g, h]);
                Geometry::new(u32::from_le_bytes(lanes), u32::from_le_bytes(events))
            }
            Err(_) => Ok(geometry),
        };
        let whole = whole.map_or(HEADER_BYTES, Geometry::file_bytes);
        if bytes < whole {
            file.set_len(whole).map_err(FileError::of(self.path))?;
        }
        let retired = file.write_all_at(&RETIRED.to_le_bytes(), STATE);
        Ok(retired.map_err(FileError::of(self.path))?)
    }

    /// Under another name first, so that nobody sees half of it, and producers that are told to go find it at once.
    fn create(&self, geometry: Geometry, old: Option<(&File, u64)>) -> Result<File, ReadError> {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let new = self.path.with_file_name(name);
        let made = self.write(&new, geometry);
        let made = made.and_then(|file| {
            self.lock(&file)?;
            if let Some((old, bytes)) = old {
                self.retire(old, bytes, geometry)?;
            }
            fs::rename(&new, self.path).map_err(FileError::of(self.path))?;
            Ok(file)
        });
        if made.is_err() {
            // The first error is the one to tell.
            let _ = fs::remove_file(&new);
        }
        made
    }

    fn write(&self, new: &PathBuf, geometry: Geometry) -> Result<File, ReadError> {
        // Left by a governor with this process id that was killed right here.
        let _ = fs::remove_file(new);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let header = Header {
            geometry,
            retired: false,
            created_unix_ms: since_1970.map_or(0, |since| since.as_millis() as u64),
        };
        let written = || -> io::Result<File> {
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(new)?;
            // Every byte is written: a hole that finds no room later would kill the producer that stores there.
            let zeros = [0; HEADER_BYTES as usize];
            let mut left = geometry.file_bytes();
            while left > 0 {
                let bytes = left.min(HEADER_BYTES);
                file.write_all(&zeros[..bytes as usize])?;
                left -= bytes;
            }
            file.write_all_at(&header.encode(), 0)?;
            fchown(&file, None, Some(self.group()))?;
            file.set_permissions(Permissions::from_mode(MODE))?;
            Ok(file)
        };
        Ok(written().map_err(FileError::of(new))?)
    }

    /// One governor a file. The lock ends with the process.
    fn lock(&self, file: &File) -> Result<(), ReadError> {
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => refused(
                self.path,
                "another governor reads it".to_owned(),
                "one governor for each file".to_owned(),
            ),
            TryLockError::Error(error) => FileError::of(self.path)(error).into(),
        })
    }
}

fn refused(path: &Path, found: String, expected: String) -> ReadError {
    ReadError::Refused {
        file: path.to_owned(),
        found,
        expected,
    }
}

fn mode(found: &Metadata) -> String {
    format!("mode {:o}", found.mode() & 0o7777)
}
