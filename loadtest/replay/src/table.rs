// SPDX-License-Identifier: Apache-2.0
//! Text files read strictly: every error has a line, a field and a reason.
//!
//! CSV here is plain: a fixed header, commas, no quoting, no empty lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// Longest line, in bytes.
const MAX_LINE: u64 = 64 * 1024;

/// What is wrong with an input, and where.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {field}: {reason}")]
pub struct BadInput {
    /// From 1.
    pub line: usize,
    /// Name of the field, or `line` if no field is to blame.
    pub field: String,
    /// Why it was refused.
    pub reason: String,
}

impl BadInput {
    /// An error in a field.
    pub fn new(line: usize, field: impl Into<String>, reason: impl ToString) -> Self {
        Self {
            line,
            field: field.into(),
            reason: reason.to_string(),
        }
    }
}

/// Opens a file, unpacking gzip if that is what it holds.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(File::open(path)?);
    if file.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(BufReader::new(MultiGzDecoder::new(file))));
    }
    Ok(Box::new(file))
}

/// Reads lines with their numbers.
pub struct Lines<R> {
    input: R,
    number: usize,
}

impl<R: BufRead> Lines<R> {
    /// Begins at line 1.
    pub fn new(input: R) -> Self {
        Self { input, number: 0 }
    }

    /// The next line without its end, `None` at the end of the input.
    pub fn next_line(&mut self) -> Result<Option<(usize, String)>, BadInput> {
        self.number += 1;
        let line = self.number;
        let bad = |reason: String| BadInput::new(line, "line", reason);
        let mut bytes = Vec::new();
        let n = (&mut self.input)
            .take(MAX_LINE + 1)
            .read_until(b'\n', &mut bytes)
            .map_err(|e| match e.kind() {
                io::ErrorKind::UnexpectedEof => {
                    bad("the packed data end here: cut short".to_owned())
                }
                _ => bad(e.to_string()),
            })?;
        if n == 0 {
            return Ok(None);
        }
        if n as u64 > MAX_LINE {
            return Err(bad(format!("is longer than {MAX_LINE} bytes")));
        }
        let mut text = String::from_utf8(bytes).map_err(|_| bad("is not UTF-8".to_owned()))?;
        text.truncate(text.trim_end_matches(['\n', '\r']).len());
        Ok(Some((line, text)))
    }
}

/// One row of a CSV file whose header was checked.
#[derive(Debug)]
pub struct Row<'a> {
    /// From 1, the header included.
    pub line: usize,
    columns: &'a [&'a str],
    cells: Vec<&'a str>,
}

impl<'a> Row<'a> {
    /// Splits a line into exactly the given columns.
    pub fn split(line: usize, text: &'a str, columns: &'a [&'a str]) -> Result<Row<'a>, BadInput> {
        let cells: Vec<_> = text.split(',').collect();
        if cells.len() != columns.len() {
            let reason = format!("has {} fields instead of {}", cells.len(), columns.len());
            return Err(BadInput::new(line, "line", reason));
        }
        Ok(Row {
            line,
            columns,
            cells,
        })
    }

    /// The cell of a column as it stands. `column` must be one of those given to `split`.
    #[must_use]
    pub fn text(&self, column: &str) -> &'a str {
        let at = self.columns.iter().position(|c| *c == column);
        at.and_then(|at| self.cells.get(at)).copied().unwrap_or("")
    }

    /// The cell of a column as a whole number.
    pub fn whole(&self, column: &str) -> Result<u64, BadInput> {
        let cell = self.text(column);
        let reason = || format!("{cell:?} is not a whole number in 0..2^64");
        cell.parse().map_err(|_| self.bad(column, reason()))
    }

    /// The cell of a column as a finite number that is not negative.
    pub fn number(&self, column: &str) -> Result<f64, BadInput> {
        let cell = self.text(column);
        match cell.parse::<f64>() {
            Ok(n) if n.is_finite() && n >= 0.0 => Ok(n),
            _ => Err(self.bad(column, format!("{cell:?} is not a number from 0 up"))),
        }
    }

    /// An error in this row.
    pub fn bad(&self, column: &str, reason: impl ToString) -> BadInput {
        BadInput::new(self.line, column, reason)
    }
}

/// Reads a CSV file, giving each row to `each`. An empty file is an error, one without rows is not.
pub fn read_csv(
    input: impl BufRead,
    columns: &[&str],
    mut each: impl FnMut(&Row<'_>) -> Result<(), BadInput>,
) -> Result<(), BadInput> {
    let mut lines = Lines::new(input);
    let header = lines.next_line()?.map(|(_, text)| text);
    if header.as_deref() != Some(&columns.join(",")) {
        let reason = format!("expected the header {}", columns.join(","));
        return Err(BadInput::new(1, "line", reason));
    }
    while let Some((line, text)) = lines.next_line()? {
        each(&Row::split(line, &text, columns)?)?;
    }
    Ok(())
}
