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
    let special = |byte: u8| matches!(byte, b'"' | b',' | b'\r' | b'\n');
    if !value.bytes().any(special) {
        out.extend_from_slice(value.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in value.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
