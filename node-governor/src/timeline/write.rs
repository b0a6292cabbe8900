// SPDX-License-Identifier: Apache-2.0
//! The file, and its thread.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use tracing::warn;

use super::{FILE, OLD_FILE};
use crate::regular;
use crate::state::only_ours;

/// For the thread. With its line feed.
#[derive(Debug)]
pub(super) enum Message {
    /// Says everything: a file may begin with it.
    Whole(Vec<u8>),
    /// Says what has changed since the one before.
    Change(Vec<u8>),
    /// The last one.
    End(Vec<u8>),
}

/// What the recorder is told; it answers with a whole line.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// A line was.
    pub(super) lost: AtomicBool,
    /// The file is; the next whole line begins a new one.
    pub(super) full: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Writer {
    folder: PathBuf,
    /// None while it could not be opened again.
    file: Option<File>,
    /// Which are in it.
    bytes: u64,
    limit: u64,
    /// What is there does not end with a whole line.
    torn: bool,
    /// Changes say nothing until everything is said again.
    lost: bool,
    said: bool,
}

impl Writer {
    pub(super) fn open(folder: &Path, limit: u64) -> io::Result<Writer> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(folder)?;
        only_ours(folder)?;
        let mut writer = Writer {
            folder: folder.to_owned(),
            file: None,
            bytes: 0,
            limit,
            torn: false,
            lost: false,
            said: false,
        };
        writer.file = Some(writer.file()?);
        Ok(writer)
    }

    /// Until nobody sends any more.
    pub(super) fn write_all(mut self, lines: &Receiver<Message>, told: &Told) {
        while let Ok(message) = lines.recv() {
            self.take(&message, told);
        }
    }

    pub(super) fn take(&mut self, message: &Message, told: &Told) {
        let done = match message {
            Message::Whole(line) => self.whole(line),
            Message::Change(_) if self.lost => return,
            Message::Change(line) | Message::End(line) => self.line(line),
        };
        match done {
            Ok(()) => told.full.store(self.bytes > self.limit, Ordering::Relaxed),
            Err(error) => {
                self.lost = true;
                told.lost.store(true, Ordering::Relaxed);
                if !self.said {
                    self.said = true;
                    let path = self.folder.join(FILE);
                    warn!(?path, %error, "the timeline cannot be written; some of it is lost");
                }
            }
        }
    }

    fn whole(&mut self, line: &[u8]) -> io::Result<()> {
        if self.bytes > self.limit {
            match fs::rename(self.folder.join(FILE), self.folder.join(OLD_FILE)) {
                // Somebody has removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                renamed => renamed?,
            }
            (self.file, self.bytes, self.torn) = (None, 0, false);
        }
        self.line(line)?;
        self.lost = false;
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.file()?,
        };
        let written = match self.torn {
            true => file.write_all(b"\n"),
            false => Ok(()),
        };
        self.torn = true;
        let written = written.and_then(|()| file.write_all(line));
        self.torn = written.is_err();
        // As much as there is, also of a line that was cut off.
        self.bytes = file.metadata()?.len();
        self.file = Some(file);
        written
    }

    /// The one that is there, or a new one.
    fn file(&mut self) -> io::Result<File> {
        let mut options = File::options();
        options.read(true).append(true).create(true);
        let file = regular::open(&mut options, &self.folder.join(FILE))?;
        self.bytes = file.metadata()?.len();
        let mut last = [b'\n'];
        if self.bytes > 0 {
            file.read_exact_at(&mut last, self.bytes - 1)?;
        }
        self.torn = last != [b'\n'];
        Ok(file)
    }

    /// Writes there instead: a disk that is full.
    #[cfg(test)]
    pub(super) fn with_file(self, file: File) -> Writer {
        let file = Some(file);
        Writer { file, ..self }
    }
}
