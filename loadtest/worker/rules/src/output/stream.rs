// SPDX-License-Identifier: Apache-2.0
//! Bytes are made on several cores and handed on in order.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bytes::Bytes;

use super::{Columns, Place, SinkClosed, csv, json};
use crate::evaluate::EvaluateError;
use crate::limits::Limits;
use crate::request::Format;
use crate::stop::Stop;

/// Bytes of a chunk: what a sink gets at once, and what a formatting core holds back.
const CHUNK: usize = 64 << 10;

/// Items that a core formats before another core's turn. At a few hundred bytes an item this is
/// several chunks.
const PIECE: usize = 1024;

/// Chunks that a core may be ahead of the sink.
const AHEAD: usize = 8;

/// What may be spent on an answer.
#[derive(Clone, Copy)]
pub(super) struct Effort<'a> {
    pub(super) cores: usize,
    pub(super) limits: &'a Limits,
    pub(super) stop: &'a Stop,
}

/// Writes the items of `order` in `format`.
pub(super) fn write(
    columns: &Columns<'_>,
    order: &[Place],
    format: Format,
    effort: Effort<'_>,
    sink: &mut dyn FnMut(Bytes) -> Result<(), SinkClosed>,
) -> Result<(), EvaluateError> {
    let mut chunks = Chunks {
        pending: Vec::new(),
        total: 0,
        limit: effort.limits.output_bytes,
        sink,
    };
    let (before, after) = around(columns, format);
    chunks.push(before.into_bytes())?;
    let pieces = Pieces {
        columns,
        order,
        format,
        stop: effort.stop,
    };
    let cores = effort.cores.min(pieces.count());
    if cores <= 1 {
        let _work = effort.stop.work();
        for piece in 0..pieces.count() {
            if effort.stop.border() {
                return Err(EvaluateError::Stopped);
            }
            pieces.format(piece, &mut |chunk| chunks.push(chunk))?;
        }
    } else {
        on_threads(&pieces, cores, &mut chunks)?;
    }
    chunks.push(after.as_bytes().to_vec())?;
    chunks.flush()
}

/// What stands before and after the items.
fn around(columns: &Columns<'_>, format: Format) -> (String, &'static str) {
    match format {
        Format::Ndjson => (String::new(), ""),
        Format::Json => ("[".to_owned(), "]"),
        Format::Csv => (columns.names().join(",") + "\r\n", ""),
    }
}

/// Part of a piece, from a core to the calling thread.
enum Part {
    Some(Vec<u8>),
    Last,
}

/// Core `n` formats pieces `n`, `n + cores` and so on, so the next piece is always with the next core. None of them
/// stands at a border: another may wait for what it has.
fn on_threads(
    pieces: &Pieces<'_>,
    cores: usize,
    chunks: &mut Chunks<'_>,
) -> Result<(), EvaluateError> {
    std::thread::scope(|scope| {
        let start = |core: usize| {
            let (sender, receiver) = sync_channel(AHEAD);
            scope.spawn(move || {
                for piece in (core..pieces.count()).step_by(cores) {
                    // An error means that the calling thread has ended or `stop` is raised: it knows.
                    if send(pieces, piece, &sender).is_err() {
                        return;
                    }
                }
            });
            receiver
        };
        let receivers: Vec<Receiver<Part>> = (0..cores).map(start).collect();
        for piece in 0..pieces.count() {
            loop {
                match receivers[piece % cores].recv() {
                    Ok(Part::Some(chunk)) => chunks.push(chunk)?,
                    Ok(Part::Last) => break,
                    Err(_) => return Err(EvaluateError::Stopped),
                }
            }
        }
        Ok(())
    })
}

fn send(pieces: &Pieces<'_>, piece: usize, sender: &SyncSender<Part>) -> Result<(), EvaluateError> {
    let gone = |_| EvaluateError::ClientGone;
    pieces.format(piece, &mut |chunk| {
        sender.send(Part::Some(chunk)).map_err(gone)
    })?;
    sender.send(Part::Last).map_err(gone)
}

/// The items in their order, cut into pieces.
struct Pieces<'a> {
    columns: &'a Columns<'a>,
    order: &'a [Place],
    format: Format,
    stop: &'a Stop,
}

impl Pieces<'_> {
    fn count(&self) -> usize {
        self.order.len().div_ceil(PIECE)
    }

    /// Gives the bytes of a piece, in chunks, to `push`.
    fn format(
        &self,
        piece: usize,
        push: &mut dyn FnMut(Vec<u8>) -> Result<(), EvaluateError>,
    ) -> Result<(), EvaluateError> {
        if self.stop.raised() {
            return Err(EvaluateError::Stopped);
        }
        let start = piece * PIECE;
        let end = self.order.len().min(start + PIECE);
        let mut out = Vec::with_capacity(CHUNK + CHUNK / 4);
        for at in start..end {
            let item = self.columns.item(self.order[at]);
            match self.format {
                Format::Ndjson => {
                    json::item(item, &mut out);
                    out.push(b'\n');
                }
                Format::Json => {
                    if at > 0 {
                        out.push(b',');
                    }
                    json::item(item, &mut out);
                }
                Format::Csv => csv::item(item.map(|(_, value)| value), &mut out),
            }
            if out.len() >= CHUNK {
                push(std::mem::replace(
                    &mut out,
                    Vec::with_capacity(CHUNK + CHUNK / 4),
                ))?;
            }
        }
        push(out)
    }
}

/// Collects bytes until they make a chunk, and counts them.
struct Chunks<'a> {
    pending: Vec<u8>,
    total: u64,
    limit: u64,
    sink: &'a mut dyn FnMut(Bytes) -> Result<(), SinkClosed>,
}

impl Chunks<'_> {
    fn push(&mut self, bytes: Vec<u8>) -> Result<(), EvaluateError> {
        self.total += bytes.len() as u64;
        if self.total > self.limit {
            return Err(EvaluateError::OutputTooLarge(self.limit));
        }
        if self.pending.is_empty() {
            self.pending = bytes;
        } else {
            self.pending.extend_from_slice(&bytes);
        }
        if self.pending.len() >= CHUNK {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), EvaluateError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let chunk = Bytes::from(std::mem::take(&mut self.pending));
        (self.sink)(chunk).map_err(|SinkClosed| EvaluateError::ClientGone)
    }
}
