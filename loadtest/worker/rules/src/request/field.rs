// SPDX-License-Identifier: Apache-2.0
//! The plain fields of a request.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// Characters of a session's name, a priority's name and a project's name.
const NAME_LENGTH: usize = 128;

/// Seconds of an hour, the longest time-out.
const LONGEST: f64 = 3600.0;

pub(super) fn yes() -> bool {
    true
}

pub(super) fn session<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    name(String::deserialize(from)?)
}

pub(super) fn priority<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Option::<String>::deserialize(from)?.map(name).transpose()
}

fn name<E: Error>(name: String) -> Result<String, E> {
    match name.chars().count() {
        0..=NAME_LENGTH => Ok(name),
        long => Err(E::custom(format!(
            "has {long} characters, at most {NAME_LENGTH} are allowed"
        ))),
    }
}

pub(super) fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(from)?;
    if !(seconds > 0.0 && seconds <= LONGEST) {
        return Err(D::Error::custom(format!(
            "{seconds} seconds: must be over 0 and at most {LONGEST}"
        )));
    }
    Ok(Duration::from_secs_f64(seconds))
}

pub(super) fn project<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    from.deserialize_any(Project)
}

struct Project;

impl Visitor<'_> for Project {
    type Value = String;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a project's name or a whole number")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<String, E> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty()
            || name.len() > NAME_LENGTH
            || name.starts_with('.')
            || !name.bytes().all(allowed)
        {
            return Err(E::custom(format!(
                "not a project's name: 1 to {NAME_LENGTH} letters, digits, `.`, `_` or `-`, not starting with `.`"
            )));
        }
        Ok(name.to_owned())
    }
}
