// SPDX-License-Identifier: Apache-2.0
//! The same by serde_json: what is named at the top of `prompt.rs`, from the whole document.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use xxhash_rust::xxh64::xxh64;

const APART: [&str; 4] = ["model", "lora_path", "cache_salt", "extra_key"];
const MEMBERS: [&str; 6] = [
    "tools",
    "system",
    "instructions",
    "prompt",
    "input",
    "messages",
];

/// The members of an object in their order, also those that come twice.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Whole;
        impl<'de> Visitor<'de> for Whole {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Whole)
    }
}

/// Its text, as `prompt.rs` defines it; an error where some string is none.
fn text(value: &RawValue, text_so_far: &mut Vec<u8>) -> serde_json::Result<()> {
    let written = value.get().trim();
    match written.as_bytes()[0] {
        b'{' => {
            text_so_far.push(b'{');
            for (name, value) in serde_json::from_str::<Members<'_>>(written)?.0 {
                text_so_far.extend(name.as_bytes());
                text_so_far.push(0xfe);
                text(value, text_so_far)?;
            }
            text_so_far.push(b'}');
        }
        b'[' => {
            text_so_far.push(b'[');
            for value in serde_json::from_str::<Vec<&RawValue>>(written)? {
                text(value, text_so_far)?;
            }
            text_so_far.push(b']');
        }
        b'"' => {
            text_so_far.extend(serde_json::from_str::<String>(written)?.as_bytes());
            text_so_far.push(0xff);
        }
        _ => {
            text_so_far.extend(written.as_bytes());
            text_so_far.push(0xff);
        }
    }
    Ok(())
}

/// The document with U+FFFD in place of each half of a surrogate pair, which serde_json refuses.
pub(crate) fn with_whole_pairs(document: &str) -> String {
    let unit = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_hex.then(|| u16::from_str_radix(digits, 16).unwrap())
    };
    let (mut whole, mut rest) = (String::new(), document);
    while let Some(first) = rest.chars().next() {
        let (written, length) = match (unit(rest), unit(rest.get(6..).unwrap_or_default())) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (&rest[..12], 12),
            (Some(0xd800..=0xdfff), _) => ("\\ufffd", 6),
            (Some(_), _) => (&rest[..6], 6),
            (None, _) if first == '\\' => {
                let escaped = rest[1..].chars().next().map_or(0, char::len_utf8);
                (&rest[..=escaped], 1 + escaped)
            }
            (None, _) => (&rest[..first.len_utf8()], first.len_utf8()),
        };
        whole.push_str(written);
        rest = &rest[length..];
    }
    whole
}

/// Blocks that have a name, counted from 1.
fn ends_key(number: usize) -> bool {
    let mut ends = (1..=32)
        .chain((34..=48).step_by(2))
        .chain((52..=80).step_by(4))
        .chain((88..=144).step_by(8))
        .chain((160..=272).step_by(16));
    ends.any(|end| end == number)
}

/// The names of a document's blocks; none where it is no JSON.
pub(crate) fn names(document: &str, block_bytes: usize) -> Option<Vec<String>> {
    let document: &RawValue = serde_json::from_str(document).ok()?;
    // Where some string is none, whatever member it is in.
    text(document, &mut Vec::new()).ok()?;
    let Ok(Members(members)) = serde_json::from_str(document.get()) else {
        return Some(Vec::new());
    };
    let (mut names, mut seed, mut number) = (Vec::new(), 0, 0);
    for member in APART.into_iter().chain(MEMBERS) {
        let is_named = MEMBERS.contains(&member);
        let mut whole = Vec::new();
        for (_, value) in members.iter().filter(|(name, _)| name == member) {
            text(value, &mut whole).ok()?;
        }
        if whole.is_empty() {
            continue;
        }
        let blocks = whole.chunks_exact(block_bytes);
        let (mut chain, rest) = (0, blocks.remainder());
        for block in blocks {
            chain = xxh64(block, chain);
            if is_named {
                number += 1;
            }
            if is_named && ends_key(number) {
                names.push(format!("{:016x}", xxh64(&chain.to_le_bytes(), seed)));
            }
        }
        seed = xxh64(&xxh64(rest, chain).to_le_bytes(), seed);
    }
    Some(names)
}
