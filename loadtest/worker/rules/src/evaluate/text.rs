// SPDX-License-Identifier: Apache-2.0
//! Texts are rewritten.

use regex::Captures;

use super::cells::{Cells, TooLong};
use crate::plan::{Case, Part, Pattern};
use crate::stop::Stop;

/// Writes `text` in another case.
pub(super) fn case(text: &str, case: Case, cells: &mut Cells) -> Result<(), TooLong> {
    match case {
        Case::Lowercase => cells.write(&text.to_lowercase()),
        Case::Uppercase => cells.write(&text.to_uppercase()),
        Case::Trim => cells.write(text.trim()),
        Case::Capitalize => capitalized(text, cells, str::to_owned),
        Case::Titlecase => {
            // `split_inclusive` keeps the white space at the end of each word.
            for word in text.split_inclusive(char::is_whitespace) {
                capitalized(word, cells, str::to_lowercase)?;
            }
            Ok(())
        }
    }
}

/// The first letter in upper case, then `rest` of the others.
fn capitalized(text: &str, cells: &mut Cells, rest: fn(&str) -> String) -> Result<(), TooLong> {
    let mut letters = text.chars();
    if let Some(first) = letters.next() {
        let mut utf8 = [0; 4];
        for upper in first.to_uppercase() {
            cells.write(upper.encode_utf8(&mut utf8))?;
        }
    }
    cells.write(&rest(letters.as_str()))
}

/// Replaces each `search` by `replacement`.
pub(super) fn replace(
    text: &str,
    search: &str,
    replacement: &str,
    cells: &mut Cells,
) -> Result<(), TooLong> {
    let mut after = 0;
    for (at, found) in text.match_indices(search) {
        cells.write(&text[after..at])?;
        cells.write(replacement)?;
        after = at + found.len();
    }
    cells.write(&text[after..])
}

/// Replaces each match. A raised `stop` leaves the rest as it is: all matches of a text of `n` bytes
/// may take n² steps, too many to look only between batches.
pub(super) fn replace_regex(
    text: &str,
    search: &Pattern,
    replacement: &[Part],
    stop: &Stop,
    cells: &mut Cells,
) -> Result<(), TooLong> {
    let mut after = 0;
    for captures in search.regex.captures_iter(text) {
        let Some(found) = captures.get(0).filter(|_| !stop.raised()) else {
            break;
        };
        cells.write(&text[after..found.start()])?;
        write_parts(replacement, &captures, cells)?;
        after = found.end();
    }
    cells.write(&text[after..])
}

fn write_parts(parts: &[Part], captures: &Captures<'_>, cells: &mut Cells) -> Result<(), TooLong> {
    for part in parts {
        match part {
            Part::Text(text) => cells.write(text)?,
            Part::Group(group) => {
                cells.write(captures.get(*group).map_or("", |found| found.as_str()))?
            }
        }
    }
    Ok(())
}
