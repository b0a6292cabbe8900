// SPDX-License-Identifier: Apache-2.0
//! From the book to the file. The loop only compares; a thread writes, so that no disk holds up a decision.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;
use std::{io, thread};

use tracing::warn;

use super::line::{Job, Line, Named, Sample, Service, Start};
use super::write::{Message, Told, Writer};
use crate::book::shares::{JobBook, SharesBook, reason_name, state_name};
use crate::sensed::{Nanos, Tail};

/// A file does not grow beyond this; some weeks of samples, or a day with some changes a second.
const LIMIT: u64 = 16 << 20;
/// Lines that wait for the disk.
const WAITING: usize = 1024;
/// Between samples.
const SAMPLED: u64 = 1000;
/// Between tries to write after one that failed: a full disk may have room again.
const AGAIN: u64 = 1000;
/// For the last lines to be written.
const DRAIN: Duration = Duration::from_secs(1);

/// Writes down what changes.
#[derive(Debug)]
pub struct Recorder {
    lines: Option<SyncSender<Message>>,
    ended: Receiver<()>,
    told: Arc<Told>,
    said: bool,
    /// When it was written again after a line was lost.
    tried: Option<u64>,
    /// What was written last; none: everything has to be written.
    written: Option<SharesBook>,
    started: bool,
    sampled: u64,
    cpu: (f64, f64),
    tail: Option<Duration>,
    tail_at: Option<Nanos>,
}

impl Recorder {
    /// Goes on with the file in this folder, which is made where it is missing. After this nothing fails: what
    /// cannot be written is said once in the log.
    pub fn open(folder: &Path) -> io::Result<Recorder> {
        Self::with_limit(folder, LIMIT)
    }

    fn with_limit(folder: &Path, limit: u64) -> io::Result<Recorder> {
        let writer = Writer::open(folder, limit)?;
        let (recorder, receiver, ending) = Recorder::new();
        let told = Arc::clone(&recorder.told);
        let thread = thread::Builder::new().name("timeline".into());
        thread.spawn(move || {
            writer.write_all(&receiver, &told);
            drop(ending);
        })?;
        Ok(recorder)
    }

    /// With what its writer reads, and drops when it has ended.
    fn new() -> (Recorder, Receiver<Message>, SyncSender<()>) {
        let (lines, receiver) = mpsc::sync_channel(WAITING);
        let (ending, ended) = mpsc::sync_channel(0);
        let recorder = Recorder {
            lines: Some(lines),
            ended,
            told: Arc::default(),
            said: false,
            tried: None,
            written: None,
            started: false,
            sampled: 0,
            cpu: (0.0, 0.0),
            tail: None,
            tail_at: None,
        };
        (recorder, receiver, ending)
    }

    /// Once a tick, after [`SharesBook::decided`] and when the jobs' codes are in the book; `tail` as it was
    /// sensed. Writes what has changed since the last call and once a second a sample; where nothing has,
    /// nothing. Does not wait for the disk.
    pub fn record(&mut self, unix_ms: u64, book: &SharesBook, tail: Option<Tail>) {
        self.sense(book, tail);
        if self.told.lost.load(Ordering::Relaxed) {
            // A clock that was set back tries at once.
            let since = self.tried.and_then(|tried| unix_ms.checked_sub(tried));
            if since.is_some_and(|since| since < AGAIN) {
                return;
            }
            self.tried = Some(unix_ms);
            self.told.lost.store(false, Ordering::Relaxed);
            self.written = None;
        }
        if self.told.full.swap(false, Ordering::Relaxed) {
            self.written = None;
        }
        let mut line = Line {
            at: unix_ms,
            ..Line::default()
        };
        self.changes(book, &mut line);
        self.sample(unix_ms, &mut line);
        let at = Line {
            at: unix_ms,
            ..Line::default()
        };
        if line != at {
            self.write(&line);
        }
    }

    /// When the governor ends as asked; what was recorded until now is on the disk then, unless that takes longer
    /// than a second.
    pub fn end(mut self, unix_ms: u64) {
        self.write(&Line {
            at: unix_ms,
            end: true,
            ..Line::default()
        });
        self.lines = None;
        // Fails when the writer is gone, which is what is waited for.
        let _ = self.ended.recv_timeout(DRAIN);
    }

    fn sense(&mut self, book: &SharesBook, tail: Option<Tail>) {
        if let Some(cpu) = book.cpu {
            self.cpu = (self.cpu.0 + cpu, self.cpu.1 + 1.0);
        }
        let tail = tail.filter(|tail| tail.requests > 0 && Some(tail.at) != self.tail_at);
        if let Some(tail) = tail {
            self.tail_at = Some(tail.at);
            self.tail = self.tail.max(Some(tail.latency));
        }
    }

    /// Compares first and makes text only of what differs: most ticks change nothing.
    fn changes(&mut self, book: &SharesBook, line: &mut Line) {
        let Some(written) = &mut self.written else {
            line.start = Some(Start {
                cores: book.machine.to_string(),
                target_ms: book.target.map(millis),
                jobs: book.jobs.iter().map(named).collect(),
                goes_on: self.started,
            });
            line.service = Some(service(book));
            let now = |book: &JobBook| (book.name.clone(), job(book));
            line.jobs = book.jobs.iter().map(now).collect();
            self.written = Some(book.clone());
            self.started = true;
            return;
        };
        let of = |book: &SharesBook| (book.reason, book.pressed);
        if (of(book), &book.service) != (of(written), &written.service) {
            line.service = Some(service(book));
            written.service.clone_from(&book.service);
            (written.reason, written.pressed) = of(book);
        }
        for (now, written) in book.jobs.iter().zip(&mut written.jobs) {
            let of = |job: &JobBook| (job.state, job.code);
            let same = of(now) == of(written)
                && now.cores == written.cores
                && now.trouble == written.trouble;
            if !same {
                line.jobs.insert(now.name.clone(), job(now));
                written.clone_from(now);
            }
        }
    }

    fn sample(&mut self, unix_ms: u64, line: &mut Line) {
        // A clock that was set back samples at once.
        if unix_ms >= self.sampled && unix_ms - self.sampled < SAMPLED {
            return;
        }
        self.sampled = unix_ms;
        let (sum, count) = std::mem::take(&mut self.cpu);
        let sample = Sample {
            cpu: (count > 0.0).then(|| round(sum / count)),
            tail_ms: self.tail.take().map(millis),
        };
        line.sample = (sample != Sample::default()).then_some(sample);
    }

    fn write(&mut self, line: &Line) {
        // Maps of text and numbers that are finite always are JSON.
        let Ok(mut text) = serde_json::to_vec(line) else {
            return;
        };
        text.push(b'\n');
        let message = match line {
            Line { start: Some(_), .. } => Message::Whole(text),
            Line { end: true, .. } => Message::End(text),
            _ => Message::Change(text),
        };
        let sent = self.lines.as_ref().map(|lines| lines.try_send(message));
        if let Some(Err(_)) = sent {
            self.told.lost.store(true, Ordering::Relaxed);
            if !self.said {
                self.said = true;
                warn!("the disk is too slow for the timeline; some of it is lost");
            }
        }
    }
}

fn service(book: &SharesBook) -> Service {
    Service {
        cores: book.service.to_string(),
        why: reason_name(book.reason).to_owned(),
        pressed: book.pressed,
    }
}

fn job(job: &JobBook) -> Job {
    Job {
        state: state_name(job.state).to_owned(),
        cores: job.cores.to_string(),
        code: job.code,
        trouble: job.trouble.clone(),
    }
}

fn named(job: &JobBook) -> Named {
    Named {
        name: job.name.clone(),
        queue: job.queue.to_owned(),
        threads: job.threads,
    }
}

fn millis(time: Duration) -> f64 {
    round(time.as_secs_f64() * 1e3)
}

/// Thousandths are enough for a drawing.
fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests;
