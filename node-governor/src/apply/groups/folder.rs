// SPDX-License-Identifier: Apache-2.0
//! A folder of a cgroup file system, with its files. Errors name the file.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;

use super::named;
use super::processes::number;
use crate::cores::Cores;
use crate::root::core_list;

/// Open, so that what is removed and made anew under its name is another.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    open: OwnedFd,
    id: (u64, u64),
}

impl Folder {
    /// None where there is none.
    pub(super) fn open(path: PathBuf) -> io::Result<Option<Folder>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(open) => open,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NODEV) => return Ok(None),
            Err(error) => return Err(named(&path, error)),
        };
        let stat = rustix::fs::fstat(&open).map_err(|error| named(&path, error))?;
        let id = (stat.st_dev, stat.st_ino);
        Ok(Some(Folder { path, open, id }))
    }

    /// The same, made if it is not there; none where that is not allowed. Its parent is there.
    pub(super) fn make(path: PathBuf) -> io::Result<Option<Folder>> {
        let is_refused = |error| matches!(error, Errno::ACCESS | Errno::PERM | Errno::ROFS);
        match rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) if is_refused(error) => return Ok(None),
            Err(error) => return Err(named(&path, error)),
        }
        match rustix::fs::access(&path, Access::WRITE_OK) {
            Ok(()) => Folder::open(path),
            Err(error) if is_refused(error) => Ok(None),
            Err(error) => Err(named(&path, error)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Which it is, as long as the machine runs.
    pub(super) fn id(&self) -> (u64, u64) {
        self.id
    }

    /// Its name is still its own.
    pub(super) fn is_there(&self) -> bool {
        let now = std::fs::symlink_metadata(&self.path);
        now.is_ok_and(|now| (now.dev(), now.ino()) == self.id)
    }

    pub(super) fn has(&self, file: &str) -> bool {
        rustix::fs::accessat(&self.open, file, Access::EXISTS, AtFlags::empty()).is_ok()
    }

    pub(super) fn read(&self, file: &str) -> io::Result<String> {
        let mut text = String::new();
        let read = self.file(file, OFlags::RDONLY);
        let read = read.and_then(|mut open| open.read_to_string(&mut text));
        read.map_err(|error| named(&self.path.join(file), error))?;
        Ok(text)
    }

    /// The first line.
    pub(super) fn line(&self, file: &str) -> io::Result<String> {
        let text = self.read(file)?;
        Ok(text.lines().next().unwrap_or_default().trim().to_owned())
    }

    /// A list of cores, which may be empty.
    pub(super) fn cores(&self, file: &str) -> io::Result<Cores> {
        let text = self.line(file)?;
        let cores = core_list(&text).ok_or_else(|| {
            let reason = format!("{}: {text:?} is no list of cores", self.show(file));
            io::Error::new(io::ErrorKind::InvalidData, reason)
        })?;
        Ok(cores.into_iter().collect())
    }

    /// Who is in it, of those that can be seen from here.
    pub(super) fn processes(&self) -> io::Result<Vec<Pid>> {
        let text = self.read(super::DOOR)?;
        // 0 is one of another pid namespace.
        Ok(text.lines().filter_map(number).collect())
    }

    /// One write, as attributes want it.
    pub(super) fn write(&self, file: &str, text: &str) -> io::Result<()> {
        self.write_by(file, text, OFlags::WRONLY)
    }

    /// The same, without waiting for what comes of it where the kernel can do so: `memory.high` takes memory back
    /// before it returns.
    pub(super) fn put(&self, file: &str, text: &str) -> io::Result<()> {
        self.write_by(file, text, OFlags::WRONLY | OFlags::NONBLOCK)
    }

    fn write_by(&self, file: &str, text: &str, flags: OFlags) -> io::Result<()> {
        let bytes = format!("{text}\n");
        let written = self.file(file, flags);
        let written = written.and_then(|open| Ok(rustix::io::write(&open, bytes.as_bytes())?));
        written
            .map_err(|error| named(&self.path.join(file), error))
            .map(drop)
    }

    fn file(&self, file: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC;
        let open = rustix::fs::openat(&self.open, file, flags, Mode::empty())?;
        Ok(open.into())
    }

    fn show(&self, file: &str) -> String {
        self.path.join(file).display().to_string()
    }

    /// Those in it, by name.
    pub(super) fn below(&self) -> io::Result<Vec<Folder>> {
        let mut names = Vec::new();
        let listed = std::fs::read_dir(&self.path).map_err(|error| named(&self.path, error))?;
        for entry in listed {
            let entry = entry.map_err(|error| named(&self.path, error))?;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                names.push(entry.file_name());
            }
        }
        names.sort();
        let mut below = Vec::new();
        for name in names {
            // One that was removed meanwhile.
            below.extend(Folder::open(self.path.join(name))?);
        }
        Ok(below)
    }

    /// Removes it with those below it; all are without processes.
    pub(super) fn remove(&self) -> io::Result<()> {
        if !self.is_there() {
            return Ok(());
        }
        for below in self.below()? {
            below.remove()?;
        }
        match std::fs::remove_dir(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(named(&self.path, error)),
            _ => Ok(()),
        }
    }
}
