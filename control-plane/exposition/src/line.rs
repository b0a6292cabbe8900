// SPDX-License-Identifier: Apache-2.0
use crate::series::{BLANK, Fault, Reason, Series, Wrong};

/// Characters of a word that an error repeats.
const SHOWN: usize = 40;

/// A line that is no comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// From 1.
    pub number: usize,
    /// What stands before the labels, or before the value.
    pub name: &'a str,
    text: &'a str,
}

impl<'a> Line<'a> {
    /// The series and its value.
    ///
    /// # Errors
    /// They are not written as the format has them.
    pub fn read(&self) -> Result<(Series<'a>, f64), Fault> {
        self.parts().map_err(|wrong| Fault::new(self.text, wrong))
    }

    fn parts(&self) -> Result<(Series<'a>, f64), Wrong> {
        let (series, rest) = Series::split(self.text)?;
        let rest = rest.trim_start_matches(BLANK);
        // What follows the value is a timestamp or an exemplar.
        let word = rest.split(BLANK).next().unwrap_or_default();
        let value = word.parse().map_err(|_| no_number(word).at(rest))?;
        Ok((series, value))
    }
}

fn no_number(word: &str) -> Reason {
    match word {
        "" => Reason::Value,
        _ => Reason::Number(word.chars().take(SHOWN).collect()),
    }
}

/// The lines of a page, but for empty ones and comments.
pub fn lines(page: &str) -> impl Iterator<Item = Line<'_>> {
    (1..).zip(page.lines()).filter_map(|(number, text)| {
        let text = text.trim_start_matches(BLANK);
        if text.is_empty() || text.starts_with('#') {
            return None;
        }
        let name = text.split(['{', ' ', '\t']).next().unwrap_or_default();
        Some(Line { number, name, text })
    })
}
