// SPDX-License-Identifier: Apache-2.0
use std::borrow::Cow;

pub(crate) const BLANK: [char; 2] = [' ', '\t'];

/// A metric's name and labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series<'a> {
    /// Of letters, digits, `_` and `:`.
    pub name: &'a str,
    /// Names and values in their order, without escapes.
    pub labels: Vec<(&'a str, Cow<'a, str>)>,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Fault {
    /// The byte where it goes wrong, from 1.
    pub column: usize,
    /// What is wrong there.
    pub reason: Reason,
}

/// See [`Fault`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Reason {
    #[error("no name")]
    Name,
    #[error("no label")]
    Label,
    #[error("a label's value is not quoted")]
    Quote,
    #[error("no closing quote")]
    Unclosed,
    #[error("labels do not end")]
    Brace,
    #[error("more than a series")]
    More,
    #[error("no value")]
    Value,
    #[error("{0:?} is not a number")]
    Number(String),
}

/// What is wrong, and what of the text is left there, in bytes.
pub(crate) type Wrong = (Reason, usize);

impl Fault {
    pub(crate) fn new(text: &str, (reason, left): Wrong) -> Self {
        let column = text.len() - left + 1;
        Self { column, reason }
    }
}

impl Reason {
    pub(crate) fn at(self, rest: &str) -> Wrong {
        (self, rest.len())
    }
}

impl<'a> Series<'a> {
    /// Reads `name` or `name{label="value",…}`, and nothing else.
    ///
    /// # Errors
    /// It is something else.
    pub fn parse(text: &'a str) -> Result<Self, Fault> {
        let whole = |wrong| Fault::new(text, wrong);
        let (series, rest) = Self::split(text).map_err(whole)?;
        match rest.trim_start_matches(BLANK) {
            "" => Ok(series),
            rest => Err(whole(Reason::More.at(rest))),
        }
    }

    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        let mut labels = self.labels.iter();
        let (_, value) = labels.find(|(label, _)| *label == name)?;
        Some(value)
    }

    /// The series at the start of a text, and what follows.
    pub(crate) fn split(text: &'a str) -> Result<(Self, &'a str), Wrong> {
        let (name, rest) = text.split_at(name_length(text));
        if name.is_empty() {
            return Err(Reason::Name.at(rest));
        }
        let mut series = Self {
            name,
            labels: Vec::new(),
        };
        let Some(mut rest) = rest.trim_start_matches(BLANK).strip_prefix('{') else {
            return match rest.starts_with(BLANK) || rest.is_empty() {
                true => Ok((series, rest)),
                false => Err(Reason::Name.at(rest)),
            };
        };
        loop {
            rest = rest.trim_start_matches(BLANK);
            if let Some(after) = rest.strip_prefix('}') {
                return Ok((series, after));
            }
            let (label, after) = label(rest)?;
            series.labels.push(label);
            let after = after.trim_start_matches(BLANK);
            rest = match after.strip_prefix(',') {
                Some(after) => after,
                None if after.starts_with('}') => after,
                None => return Err(Reason::Brace.at(after)),
            };
        }
    }
}

/// Bytes of the name that a text begins with.
fn name_length(text: &str) -> usize {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
    let end = text.bytes().position(|byte| !is_part(byte));
    end.unwrap_or(text.len())
}

/// A label at the start of a text, and what follows.
fn label(text: &str) -> Result<((&str, Cow<'_, str>), &str), Wrong> {
    let (name, after) = text.split_at(name_length(text));
    let after = after.trim_start_matches(BLANK);
    let after = match after.strip_prefix('=') {
        Some(after) if !name.is_empty() => after.trim_start_matches(BLANK),
        _ => return Err(Reason::Label.at(text)),
    };
    let value = after.strip_prefix('"').ok_or(Reason::Quote.at(after))?;
    let mut escaped = false;
    let end = value.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    let end = end.ok_or(Reason::Unclosed.at(value))?;
    let (value, rest) = value.split_at(end);
    Ok(((name, unescaped(value)), &rest[1..]))
}

/// A label's value: `\\`, `\"` and `\n` stand for a backslash, a quote and a line feed.
fn unescaped(value: &str) -> Cow<'_, str> {
    if !value.contains('\\') {
        return Cow::Borrowed(value);
    }
    let mut chars = value.chars();
    let mut plain = String::with_capacity(value.len());
    while let Some(c) = chars.next() {
        plain.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    Cow::Owned(plain)
}
