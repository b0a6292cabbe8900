// SPDX-License-Identifier: Apache-2.0
//! An answer of the filter's own to a call by gRPC: status and message in the headers, which are all of it
//! ("gRPC over HTTP2", Trailers-Only).

use std::fmt::Write;

use weir_filter::host::Response;

/// Whether a request of this content type is a call by gRPC, as Envoy has it.
pub(crate) fn is_grpc(content_type: &[u8]) -> bool {
    let rest = content_type.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"+"))
}

/// The headers of the answer, with those that it has anyway.
pub(crate) fn of(response: &Response, more: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut headers = vec![
        (":status".to_owned(), "200".to_owned()),
        ("content-type".to_owned(), "application/grpc".to_owned()),
        ("grpc-status".to_owned(), response.grpc_status.to_string()),
    ];
    if !response.body.is_empty() {
        headers.push(("grpc-message".to_owned(), encoded(&response.body)));
    }
    headers.extend(more);
    headers
}

/// A message, percent-encoded ("gRPC over HTTP2", Status-Message).
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(byte.into()),
            // Into a string.
            _ => _ = write!(encoded, "%{byte:02X}"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_by_grpc_are_known_by_their_content_type() {
        for (content_type, expected) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc-web", false),
            ("application/json", false),
            ("", false),
        ] {
            assert_eq!(is_grpc(content_type.as_bytes()), expected, "{content_type}");
        }
    }

    #[test]
    fn the_message_is_the_body_and_no_byte_of_it_breaks_a_header() {
        let response = Response {
            status: 429,
            grpc_status: 8,
            details: "weir_overloaded",
            headers: Vec::new(),
            body: "100 % of it\ntoo mäny".to_owned(),
        };
        let headers = of(&response, vec![("retry-after".into(), "3".into())]);
        let expected = [
            (":status", "200"),
            ("content-type", "application/grpc"),
            ("grpc-status", "8"),
            ("grpc-message", "100 %25 of it%0Atoo m%C3%A4ny"),
            ("retry-after", "3"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(headers, expected);
    }
}
