// SPDX-License-Identifier: Apache-2.0
//! One line: a JSON object whose values become text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::columns::Columns;
use crate::decode::Refused;

/// Reads `line` as the next item of `columns`.
pub(super) fn read(line: &str, columns: &mut Columns<'_>) -> Result<(), Refused> {
    let mut refused = None;
    let mut json = serde_json::Deserializer::from_str(line);
    let row = Row {
        columns,
        refused: &mut refused,
    };
    let read = row.deserialize(&mut json).and_then(|()| json.end());
    match (refused, read) {
        (Some(refused), _) => Err(refused),
        (None, Err(error)) => Err(Refused::bad(reason(&error))),
        (None, Ok(())) => columns.end_row(),
    }
}

/// Without the "line 1" of a document of one line.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    match error.column() {
        0 => format!("not a JSON object: {text}"),
        byte => format!("not a JSON object: {text}, at byte {byte}"),
    }
}

struct Row<'a, 'b> {
    columns: &'a mut Columns<'b>,
    /// Our own reason to stop, which serde cannot carry.
    refused: &'a mut Option<Refused>,
}

impl<'de> DeserializeSeed<'de> for Row<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Row<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("one JSON object a line")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let Self { columns, refused } = self;
        let mut refuse = |why| {
            *refused = Some(why);
            A::Error::custom("refused")
        };
        while let Some(place) = fields.next_key_seed(Name(columns))? {
            let place = place.map_err(&mut refuse)?;
            let value: &RawValue = fields.next_value()?;
            let value = text(value.get()).map_err(A::Error::custom)?;
            columns.set(place, value.as_deref()).map_err(&mut refuse)?;
        }
        Ok(())
    }
}

/// Looks a field's name up where it stands in the line, without a copy of it.
struct Name<'a, 'b>(&'a mut Columns<'b>);

impl<'de> DeserializeSeed<'de> for Name<'_, '_> {
    type Value = Result<usize, Refused>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_, '_> {
    type Value = Result<usize, Refused>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a field's name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.place(name))
    }
}

/// A JSON value as text: a string's content, null as absent, anything else as it is written.
fn text(json: &str) -> Result<Option<Cow<'_, str>>, serde_json::Error> {
    let inner = json
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    match inner {
        Some(plain) if memchr::memchr(b'\\', plain.as_bytes()).is_none() => {
            Ok(Some(Cow::Borrowed(plain)))
        }
        Some(_) => serde_json::from_str(json).map(|text: String| Some(Cow::Owned(text))),
        None if json == "null" => Ok(None),
        None => Ok(Some(Cow::Borrowed(json))),
    }
}
