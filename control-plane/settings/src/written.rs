// SPDX-License-Identifier: Apache-2.0
//! Files as written: shape only. Values stay text with a line number, so that they can be refused with the
//! whole name of the field.

use std::io;
use std::path::Path;

use serde_saphyr::Spanned;

use crate::error::Error;

/// A scalar of any type, as text.
pub type Text = Spanned<String>;

/// A group of fields, each of which may be left out; others are refused. What is said of a field stands in the
/// [reference](crate::Shape); a group that holds others needs nothing said.
#[macro_export]
macro_rules! section {
    ($(#[$meta:meta])* $name:ident { $($(#[doc = $doc:literal])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Default, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name { $(#[doc = concat!("`", stringify!($field), "`", $($doc),*)] pub $field: $type),* }

        impl $crate::Shape for $name {
            fn entries(name: &str, meaning: &str, into: &mut Vec<$crate::Entry>) {
                $crate::group(name, meaning, into);
                $(<$type as $crate::Shape>::entries(
                    &$crate::below(name, stringify!($field)),
                    concat!($($doc, "\n"),*),
                    into,
                );)*
            }
        }
    };
}

/// A whole file, and only a regular one: a device or a pipe may have no end, and what it said is gone when it is
/// looked at again.
///
/// # Errors
/// As of [`std::fs::read`], and [`io::ErrorKind::InvalidInput`] where it is no regular file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let kind = std::fs::metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        let reason = "not a regular file, which can be read again when it changes";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    std::fs::read(path)
}

/// Parses a YAML file's contents; `path` is for the error.
pub fn yaml<T: serde::de::DeserializeOwned>(path: &Path, contents: Vec<u8>) -> Result<T, Error> {
    let refuse = |line, reason| Error {
        file: path.to_owned(),
        line,
        field: String::new(),
        reason,
    };
    let text = String::from_utf8(contents).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        refuse(
            1 + good.iter().filter(|byte| **byte == b'\n').count() as u64,
            "not UTF-8".into(),
        )
    })?;
    serde_saphyr::from_str(&text).map_err(|error| {
        let (line, column) = error
            .location()
            .map_or((0, 0), |place| (place.line(), place.column()));
        Error {
            field: key_before(&text, line, column),
            ..refuse(line, yaml_reason(&error))
        }
    })
}

/// The key whose value begins at this place, if it is on the same line: the parser does not say.
fn key_before(text: &str, line: u64, column: u64) -> String {
    let line = text
        .lines()
        .nth(line.saturating_sub(1) as usize)
        .unwrap_or_default();
    let before: String = line
        .chars()
        .take(column.saturating_sub(1) as usize)
        .collect();
    let Some(before) = before.trim_end().strip_suffix(':') else {
        return String::new();
    };
    let key = before
        .rsplit(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
        .next();
    key.unwrap_or_default().to_owned()
}

/// The first line of the parser's message, without the place, which comes first in ours.
fn yaml_reason(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let text = text.lines().next().unwrap_or_default();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let text = match text
        .strip_prefix("line ")
        .and_then(|rest| rest.split_once(": "))
    {
        Some((_, reason)) => reason,
        None => text,
    };
    let text = text.split(" at line ").next().unwrap_or(text);
    text.split(", set DuplicateKeyPolicy")
        .next()
        .unwrap_or(text)
        .to_owned()
}
