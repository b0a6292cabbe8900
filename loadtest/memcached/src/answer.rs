// SPDX-License-Identifier: Apache-2.0
//! What memcached says to `get`, a piece at a time, as `doc/protocol.txt` of memcached lays it out.

use memchr::memchr;
use thiserror::Error;

/// No line that memcached writes is longer: a key has up to 250 bytes.
const LONGEST_LINE: usize = 512;

/// One piece of an answer, with the bytes it takes.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Piece<'a> {
    Value {
        key: &'a [u8],
        value: &'a [u8],
        bytes: usize,
    },
    /// The answer's end: keys that had no value before it are not there.
    End { bytes: usize },
    /// The whole request, or its rest, is refused (`SERVER_ERROR out of memory …`).
    Refused { bytes: usize },
}

/// After this, nothing that the connection says can be told apart.
#[derive(Debug, Error, Eq, PartialEq)]
pub(crate) enum Broken {
    /// The server, or something between, has hung up.
    #[error("it has closed the connection")]
    Closed,
    /// Not memcached's text protocol.
    #[error("it says `{0}`, which is no answer of memcached to `get`")]
    Foreign(String),
    /// Somebody else's keys, or an earlier load's.
    #[error("a value has {0} bytes instead of {1}: was it loaded with another --value-bytes?")]
    Size(usize, usize),
    /// An answer to another question.
    #[error("it answers with a key that was not asked for, `{0}`")]
    Key(String),
    /// More answers than questions.
    #[error("it answers what nobody has asked")]
    Unasked,
}

/// The first piece; none while bytes are missing.
pub(crate) fn piece(said: &[u8], value_bytes: usize) -> Result<Option<Piece<'_>>, Broken> {
    let Some(newline) = memchr(b'\n', &said[..said.len().min(LONGEST_LINE)]) else {
        return match said.len() {
            ..LONGEST_LINE => Ok(None),
            _ => Err(foreign(&said[..LONGEST_LINE])),
        };
    };
    let (line, bytes) = (&said[..newline], newline + 1);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if let Some(rest) = line.strip_prefix(b"VALUE ") {
        let (key, size) = value_line(rest).ok_or_else(|| foreign(line))?;
        if size != value_bytes {
            return Err(Broken::Size(size, value_bytes));
        }
        let Some(value) = said.get(bytes..bytes + size + 2) else {
            return Ok(None);
        };
        let value = value.strip_suffix(b"\r\n").ok_or_else(|| foreign(line))?;
        let bytes = bytes + size + 2;
        return Ok(Some(Piece::Value { key, value, bytes }));
    }
    match line {
        b"END" => Ok(Some(Piece::End { bytes })),
        b"ERROR" => Ok(Some(Piece::Refused { bytes })),
        _ if line.starts_with(b"SERVER_ERROR ") || line.starts_with(b"CLIENT_ERROR ") => {
            Ok(Some(Piece::Refused { bytes }))
        }
        _ => Err(foreign(line)),
    }
}

/// The key and the size in `<key> <flags> <bytes>`.
fn value_line(rest: &[u8]) -> Option<(&[u8], usize)> {
    let mut words = rest.split(|&byte| byte == b' ');
    let (key, _flags, size) = (words.next()?, words.next()?, words.next()?);
    Some((key, std::str::from_utf8(size).ok()?.parse().ok()?))
}

fn foreign(line: &[u8]) -> Broken {
    let shown = &line[..line.len().min(80)];
    Broken::Foreign(String::from_utf8_lossy(shown).escape_debug().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &[u8] = b"VALUE k 0 3\r\n\r\nv\r\nEND\r\n";

    #[test]
    fn a_value_may_hold_line_ends() {
        let bytes = SAID.len() - 5;
        let expected = Piece::Value {
            key: b"k",
            value: b"\r\nv",
            bytes,
        };
        assert_eq!(piece(SAID, 3), Ok(Some(expected)));
        assert_eq!(piece(&SAID[bytes..], 3), Ok(Some(Piece::End { bytes: 5 })));
    }

    #[test]
    fn nothing_is_found_before_the_last_byte_of_a_piece() {
        for length in 0..SAID.len() - 5 {
            assert_eq!(piece(&SAID[..length], 3), Ok(None), "{length}");
        }
        assert_eq!(piece(b"END\r", 3), Ok(None));
    }

    #[test]
    fn refusals_end_a_request() {
        for line in ["ERROR\r\n", "SERVER_ERROR out of memory\r\n"] {
            let bytes = line.len();
            assert_eq!(
                piece(line.as_bytes(), 3),
                Ok(Some(Piece::Refused { bytes }))
            );
        }
    }

    #[test]
    fn what_is_not_memcached_is_shown() {
        let refused = piece(b"HTTP/1.1 400 Bad Request\r\n", 3).unwrap_err();
        assert!(refused.to_string().contains("HTTP/1.1 400"), "{refused}");
        assert!(piece(&[b'x'; 600], 3).is_err());
        assert!(piece(b"VALUE k 0\r\n", 3).is_err());
        assert_eq!(piece(b"VALUE k 0 4\r\n", 3), Err(Broken::Size(4, 3)));
        // The value is longer than its line says.
        assert!(piece(b"VALUE k 0 3\r\nabcd\r\n", 3).is_err());
    }
}
