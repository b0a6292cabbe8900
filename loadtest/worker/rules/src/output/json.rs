// SPDX-License-Identifier: Apache-2.0
//! Items as JSON objects: all values are strings, absent ones are left out.

/// What stands before a value: the name and a colon.
pub(super) fn key(name: &str) -> String {
    let mut key = Vec::new();
    string(name, &mut key);
    key.push(b':');
    String::from_utf8_lossy(&key).into_owned()
}

/// Writes an item.
pub(super) fn item<'a>(
    values: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    let start = out.len();
    for (key, value) in values {
        let Some(value) = value else { continue };
        if out.len() > start {
            out.push(b',');
        }
        out.extend_from_slice(key.as_bytes());
        string(value, out);
    }
    out.push(b'}');
}

/// Writes a JSON string (RFC 8259, section 7).
fn string(text: &str, out: &mut Vec<u8>) {
    // Writing to memory cannot fail, and a string can always be written.
    let _ = serde_json::to_writer(out, text);
}
