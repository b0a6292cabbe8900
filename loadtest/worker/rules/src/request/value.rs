// SPDX-License-Identifier: Apache-2.0
//! Values as written: a text, a number, a boolean, or the value of a field.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::BadRequest;
use super::object::objects;
use super::path::Path;
use crate::limits::Limits;
use crate::number;

/// A value that stands in the request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scalar {
    /// As the text of an item: numbers keep their literal, booleans are `true` and `false`.
    pub(crate) text: Arc<str>,
    /// Set if it was written as a JSON number.
    pub(crate) number: Option<f64>,
}

/// Either a scalar or the name of the field to take the value from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Static(Scalar),
    Field(Arc<str>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
struct Tagged {
    #[serde(rename = "type")]
    kind: Kind,
    value: Box<RawValue>,
}

objects!(Tagged);

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Static,
    Field,
}

impl Value {
    /// `{"type": "static", "value": 0}`, `{"type": "field", "value": "price"}` or a bare scalar.
    pub(crate) fn read(
        path: &Path<'_>,
        json: &RawValue,
        limits: &Limits,
    ) -> Result<Self, BadRequest> {
        if !json.get().starts_with('{') {
            return Scalar::read(path, json, limits).map(Value::Static);
        }
        let tagged: Tagged = path.read(json)?;
        let path = path.key("value");
        match tagged.kind {
            Kind::Static => Scalar::read(&path, &tagged.value, limits).map(Value::Static),
            Kind::Field => {
                let name: String = path.read(&tagged.value)?;
                field_name(&path, &name, limits).map(Value::Field)
            }
        }
    }
}

impl Scalar {
    pub(crate) fn read(
        path: &Path<'_>,
        json: &RawValue,
        limits: &Limits,
    ) -> Result<Self, BadRequest> {
        let literal = json.get();
        let (text, number) = match literal.as_bytes().first() {
            Some(b'"') => (path.read::<String>(json)?, None),
            Some(b't' | b'f') => (literal.to_owned(), None),
            Some(b'-' | b'0'..=b'9') => {
                let number = number::read(literal)
                    .ok_or_else(|| path.refuse(format!("the number {literal} is out of range")))?;
                (literal.to_owned(), Some(number))
            }
            _ => return Err(path.refuse("must be a text, a number, true or false")),
        };
        fits(path, &text, limits)?;
        Ok(Self {
            text: text.into(),
            number,
        })
    }
}

/// A name of a field: not empty, not longer than a value.
pub(crate) fn field_name(
    path: &Path<'_>,
    name: &str,
    limits: &Limits,
) -> Result<Arc<str>, BadRequest> {
    if name.is_empty() {
        return Err(path.refuse("a field's name must not be empty"));
    }
    fits(path, name, limits)?;
    Ok(name.into())
}

/// A text of at most the bytes a value may have.
pub(crate) fn fits(path: &Path<'_>, text: &str, limits: &Limits) -> Result<(), BadRequest> {
    let (bytes, limit) = (text.len(), limits.value_bytes);
    if bytes > limit {
        return Err(path.refuse(format!("has {bytes} bytes, at most {limit} are allowed")));
    }
    Ok(())
}

/// An object of texts to scalars. A key written twice is refused, as in the rest of a request.
pub(crate) struct Table(pub(crate) BTreeMap<String, Box<RawValue>>);

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Entries)
    }
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Table;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object of texts to values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Table, A::Error> {
        let mut table = BTreeMap::new();
        while let Some((key, value)) = from.next_entry::<String, Box<RawValue>>()? {
            if let Some(_twice) = table.insert(key, value) {
                return Err(A::Error::custom("a key stands in the table twice"));
            }
        }
        Ok(Table(table))
    }
}
