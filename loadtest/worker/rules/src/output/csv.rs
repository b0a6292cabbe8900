// SPDX-License-Identifier: Apache-2.0
//! Items as CSV records (RFC 4180).

/// Ends a record.
pub(super) const END: &[u8] = b"\r\n";

/// Writes an item; absent values are empty.
pub(super) fn item<'a>(values: impl Iterator<Item = Option<&'a str>>, out: &mut Vec<u8>) {
    for (at, value) in values.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(value.unwrap_or_default(), out);
    }
    out.extend_from_slice(END);
}

/// A value as a cell, quoted if it must be.
pub(super) fn cell(value: &str) -> String {
    let mut cell = Vec::new();
    write(value, &mut cell);
    String::from_utf8_lossy(&cell).into_owned()
}

fn write(value: &str, out: &mut Vec<u8>) {
    // A fold looks at all bytes, and so at many at once; `any` goes one by one.
    let special = |byte: u8| (byte == b'"') | (byte == b',') | (byte == b'\r') | (byte == b'\n');
    if !value
        .bytes()
        .fold(false, |found, byte| found | special(byte))
    {
        out.extend_from_slice(value.as_bytes());
        return;
    }
    out.push(b'"');
    for (at, part) in value.split('"').enumerate() {
        if at > 0 {
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(part.as_bytes());
    }
    out.push(b'"');
}
