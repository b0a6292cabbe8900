// SPDX-License-Identifier: Apache-2.0
//! The file, and its thread.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use tracing::warn;

use super::record::Message;
use super::{FILE, OLD_FILE};

#[derive(Debug)]
pub(super) struct Writer {
    folder: PathBuf,
    /// None after it could not be turned over: nothing is written beyond the limit.
    file: Option<File>,
    /// What is there does not end with a whole line.
    torn: bool,
    said: bool,
}

impl Writer {
    /// The writer, and how much is there.
    pub(super) fn open(folder: &Path) -> io::Result<(Writer, u64)> {
        fs::create_dir_all(folder)?;
        let file = open(folder)?;
        let bytes = file.metadata()?.len();
        let mut last = [b'\n'];
        if bytes > 0 {
            file.read_exact_at(&mut last, bytes - 1)?;
        }
        let writer = Writer {
            folder: folder.to_owned(),
            file: Some(file),
            torn: last != [b'\n'],
            said: false,
        };
        Ok((writer, bytes))
    }

    /// Until nobody sends any more. Sets `lost` whenever a line is.
    pub(super) fn write_all(mut self, lines: &Receiver<Message>, lost: &AtomicBool) {
        while let Ok(message) = lines.recv() {
            let done = match message {
                Message::Line(line) => self.line(&line),
                Message::Turn => self.turn(),
            };
            if let Err(error) = done {
                lost.store(true, Ordering::Relaxed);
                if !self.said {
                    self.said = true;
                    let path = self.folder.join(FILE);
                    warn!(?path, %error, "the timeline cannot be written; some of it is lost");
                }
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        if self.torn {
            file.write_all(b"\n")?;
        }
        self.torn = true;
        file.write_all(line)?;
        self.torn = false;
        Ok(())
    }

    fn turn(&mut self) -> io::Result<()> {
        self.file = None;
        let file = self.folder.join(FILE);
        fs::rename(&file, self.folder.join(OLD_FILE))?;
        self.file = Some(open(&self.folder)?);
        self.torn = false;
        Ok(())
    }
}

fn open(folder: &Path) -> io::Result<File> {
    let path = folder.join(FILE);
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(path)
}
