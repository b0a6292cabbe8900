// SPDX-License-Identifier: Apache-2.0
//! Fields: their names, defaults, ranges, and how they are refused.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use crate::error::Error;
use crate::reference::{note, span};
use crate::scalar::{self, show_duration, show_size};
use crate::written::Text;

/// A scalar that may be left out.
pub type Value = Option<Text>;

/// Where in which file a group of fields is.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    file: &'a Path,
    /// With a dot behind it, if not empty.
    prefix: String,
    /// Of the group, for fields that are not there.
    line: u64,
}

impl<'a> Scope<'a> {
    /// The whole file.
    pub fn root(file: &'a Path) -> Self {
        Self {
            file,
            prefix: String::new(),
            line: 1,
        }
    }

    /// The file as named.
    pub fn file(&self) -> &'a Path {
        self.file
    }

    /// A group of fields in this one.
    pub fn section(&self, name: &str) -> Self {
        Self {
            file: self.file,
            prefix: format!("{}{name}.", self.prefix),
            line: self.line,
        }
    }

    /// An entry of the list that this scope is.
    pub fn item(&self, index: usize) -> Self {
        let prefix = format!("{}[{index}].", self.prefix.trim_end_matches('.'));
        Self {
            file: self.file,
            prefix,
            line: self.line,
        }
    }

    /// The same, beginning at this line.
    pub fn at(&self, line: u64) -> Self {
        Self {
            line,
            ..self.clone()
        }
    }

    /// The whole name of a field.
    pub fn name(&self, field: &str) -> String {
        format!("{}{field}", self.prefix)
    }

    /// What is wrong with a field; an empty name stands for the group itself.
    pub fn refuse(&self, value: &Value, field: &str, reason: impl Display) -> Error {
        let field = self.name(field);
        Error {
            file: self.file.to_owned(),
            line: value
                .as_ref()
                .map_or(self.line, |text| text.referenced.line()),
            field: field.trim_end_matches('.').to_owned(),
            reason: reason.to_string(),
        }
    }

    /// Tells whoever makes a reference of a field that is read by [`parse`](Self::parse): how it is written, and what
    /// counts where it is not.
    pub fn note(&self, field: &str, kind: &str, default: Option<String>, range: Option<String>) {
        note(self.name(field).trim_end_matches('.'), kind, default, range);
    }

    /// What `parse` makes of the text, or the default where there is none.
    pub fn parse<T>(
        &self,
        value: &Value,
        field: &str,
        default: T,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, Error> {
        let Some(text) = value else {
            return Ok(default);
        };
        parse(&text.value).map_err(|reason| self.refuse(value, field, reason))
    }

    /// A number with a unit of time.
    pub fn duration(
        &self,
        value: &Value,
        field: &str,
        default: Duration,
        range: RangeInclusive<Duration>,
    ) -> Result<Duration, Error> {
        self.note(
            field,
            "duration",
            Some(show_duration(default)),
            Some(span(&range, show_duration)),
        );
        self.parse(value, field, default, |text| {
            let duration = scalar::duration(text)?;
            within(duration, range, text, show_duration)
        })
    }

    /// A number with a unit of size.
    pub fn size(
        &self,
        value: &Value,
        field: &str,
        default: usize,
        range: RangeInclusive<usize>,
    ) -> Result<usize, Error> {
        self.note(
            field,
            "size",
            Some(show_size(default)),
            Some(span(&range, show_size)),
        );
        self.parse(value, field, default, |text| {
            within(scalar::size(text)?, range, text, show_size)
        })
    }

    /// A whole number.
    pub fn whole(
        &self,
        value: &Value,
        field: &str,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> Result<u64, Error> {
        self.note(
            field,
            "whole number",
            Some(default.to_string()),
            Some(span(&range, |at| at)),
        );
        self.parse(value, field, default, |text| {
            let number = text
                .parse()
                .map_err(|_| format!("{text:?} is not a whole number"))?;
            within(number, range, text, |number| number.to_string())
        })
    }

    /// Any number.
    pub fn share(
        &self,
        value: &Value,
        field: &str,
        default: f64,
        range: RangeInclusive<f64>,
    ) -> Result<f64, Error> {
        self.note(
            field,
            "number",
            Some(default.to_string()),
            Some(span(&range, |at| at)),
        );
        self.parse(value, field, default, |text| {
            let number: f64 = text
                .parse()
                .map_err(|_| format!("{text:?} is not a number"))?;
            within(number, range, text, |number| number.to_string())
        })
    }

    /// `true` or `false`.
    pub fn boolean(&self, value: &Value, field: &str, default: bool) -> Result<bool, Error> {
        self.note(field, "boolean", Some(default.to_string()), None);
        self.parse(value, field, default, |text| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(format!("{text:?} is not true or false")),
        })
    }

    /// One of the names.
    pub fn choice<T: Copy + PartialEq>(
        &self,
        value: &Value,
        field: &str,
        default: T,
        names: &[(&str, T)],
    ) -> Result<T, Error> {
        let all: Vec<String> = names.iter().map(|(name, _)| format!("`{name}`")).collect();
        let same = |name: &&(&str, T)| name.1 == default;
        let default_name = names.iter().find(same).map(|(name, _)| (*name).to_owned());
        self.note(field, "name", default_name, Some(all.join(", ")));
        self.parse(value, field, default, |text| {
            let found = names.iter().find(|(name, _)| *name == text);
            found.map(|(_, choice)| *choice).ok_or_else(|| {
                let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
                format!("{text:?} is unknown; one of {}", names.join(", "))
            })
        })
    }

    /// An address; port 0 takes any free port.
    pub fn address(&self, value: &Value, field: &str, default: &str) -> Result<SocketAddr, Error> {
        self.note(field, "ip:port", Some(default.to_owned()), None);
        let text = value.as_ref().map_or(default, |text| &text.value);
        text.parse()
            .map_err(|_| self.refuse(value, field, format!("{text:?} is not ip:port")))
    }

    /// An address in the one spelling that every part of Weir uses.
    pub fn host_address(&self, value: &Value, field: &str) -> Result<String, Error> {
        self.note(field, "ip:port", None, None);
        let Some(text) = value else {
            return Err(self.refuse(value, field, "required; ip:port"));
        };
        let text = text.value.as_str();
        let address: SocketAddr = text
            .parse()
            .map_err(|_| self.refuse(value, field, format!("{text:?} is not ip:port")))?;
        if address.port() == 0 {
            return Err(self.refuse(value, field, "port 0 is no port"));
        }
        let canonical = address.to_string();
        match canonical == text {
            true => Ok(canonical),
            false => Err(self.refuse(
                value,
                field,
                format!("{text:?} has to be written {canonical:?}"),
            )),
        }
    }

    /// Text for which `fits` holds.
    pub fn text(
        &self,
        value: &Value,
        field: &str,
        default: &str,
        fits: impl FnOnce(&str) -> bool,
        shape: &str,
    ) -> Result<String, Error> {
        self.note(
            field,
            "text",
            (!default.is_empty()).then(|| default.to_owned()),
            Some(shape.to_owned()),
        );
        self.parse(value, field, default.to_owned(), |text| match fits(text) {
            true => Ok(text.to_owned()),
            false => Err(format!("{text:?} is not {shape}")),
        })
    }
}

fn within<T: PartialOrd>(
    value: T,
    range: RangeInclusive<T>,
    written: &str,
    show: impl Fn(T) -> String,
) -> Result<T, String> {
    if range.contains(&value) {
        return Ok(value);
    }
    let (low, high) = range.into_inner();
    Err(format!(
        "{written} is not in {} to {}",
        show(low),
        show(high)
    ))
}
