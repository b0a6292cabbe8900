// SPDX-License-Identifier: Apache-2.0
//! Writes records, gathers figures and shows progress, on a thread of its own so that a slow disk
//! or terminal never delays a request.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::record::{COLUMNS, Outcome, Record};
use crate::summary::Figures;

/// How often the line is drawn on a terminal, and written elsewhere.
const ON_TERMINAL: Duration = Duration::from_secs(1);
const ELSEWHERE: Duration = Duration::from_secs(10);

/// What the dispatcher tells the recorder.
#[derive(Debug)]
pub enum Message {
    /// A request was sent.
    Sent,
    /// A request has ended.
    Ended(Box<Record>),
}

/// Where records go; the form follows the name: `.csv` or `.ndjson`, each also with `.gz`.
pub struct Sink {
    out: Output,
    json: bool,
}

enum Output {
    Plain(BufWriter<File>),
    Packed(GzEncoder<BufWriter<File>>),
}

impl Sink {
    /// Creates the file and writes its header.
    pub fn create(path: &Path) -> io::Result<Self> {
        let name = path.to_string_lossy();
        let (stem, packed) = match name.strip_suffix(".gz") {
            Some(stem) => (stem, true),
            None => (name.as_ref(), false),
        };
        let json = match stem.rsplit('.').next() {
            Some("csv") => false,
            Some("ndjson") => true,
            _ => {
                let reason = "the name must end in .csv, .ndjson, .csv.gz or .ndjson.gz";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
            }
        };
        let file = BufWriter::new(File::create(path)?);
        let out = if packed {
            Output::Packed(GzEncoder::new(file, Compression::default()))
        } else {
            Output::Plain(file)
        };
        let mut sink = Self { out, json };
        if !json {
            writeln!(sink.writer(), "{COLUMNS}")?;
        }
        Ok(sink)
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        if self.json {
            record.write_json(self.writer())
        } else {
            record.write_csv(self.writer())
        }
    }

    fn finish(self) -> io::Result<()> {
        match self.out {
            Output::Plain(mut file) => file.flush(),
            Output::Packed(packed) => packed.finish()?.flush(),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.out {
            Output::Plain(out) => out,
            Output::Packed(out) => out,
        }
    }
}

/// Receives until the senders are gone; returns the figures.
pub fn record(
    inbox: &Receiver<Message>,
    mut sink: Option<Sink>,
    total: usize,
) -> io::Result<Figures> {
    let mut progress = Progress::new(total);
    let mut figures = Figures::default();
    loop {
        match inbox.recv_timeout(progress.until_next()) {
            Ok(Message::Sent) => progress.sent += 1,
            Ok(Message::Ended(record)) => {
                // One that was never sent is not in flight either.
                progress.ended += usize::from(record.attempts > 0);
                figures.add(&record);
                if let Some(sink) = &mut sink {
                    sink.write(&record)?;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        progress.show(&figures);
    }
    progress.finish(&figures);
    sink.map_or(Ok(()), Sink::finish)?;
    Ok(figures)
}

struct Progress {
    total: usize,
    sent: usize,
    ended: usize,
    terminal: bool,
    next: Instant,
}

impl Progress {
    fn new(total: usize) -> Self {
        let terminal = io::stderr().is_terminal();
        let mut progress = Self {
            total,
            sent: 0,
            ended: 0,
            terminal,
            next: Instant::now(),
        };
        progress.next += progress.pause();
        progress
    }

    fn pause(&self) -> Duration {
        if self.terminal {
            ON_TERMINAL
        } else {
            ELSEWHERE
        }
    }

    fn until_next(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    fn show(&mut self, figures: &Figures) {
        if self.until_next().is_zero() {
            self.next = Instant::now() + self.pause();
            let (start, end) = if self.terminal {
                ("\r", "\x1b[K")
            } else {
                ("", "\n")
            };
            eprint!("{start}{}{end}", self.line(figures));
        }
    }

    fn finish(&self, figures: &Figures) {
        let (start, end) = if self.terminal {
            ("\r", "\x1b[K\n")
        } else {
            ("", "\n")
        };
        eprint!("{start}{}{end}", self.line(figures));
    }

    fn line(&self, figures: &Figures) -> String {
        let outcomes = Outcome::ALL.map(|o| format!("{} {}", o.as_str(), figures.ended(o)));
        format!(
            "sent {}/{}, {} in flight, {}",
            self.sent,
            self.total,
            self.sent.saturating_sub(self.ended),
            outcomes.join(", ")
        )
    }
}
