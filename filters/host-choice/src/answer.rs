// SPDX-License-Identifier: Apache-2.0
//! What an answer says of the host that gave it.

use weir_policy::Answer;

use crate::headers::Headers;

/// gRPC: the host cannot. What Envoy's outlier detection takes for a 5xx: UNKNOWN, DEADLINE_EXCEEDED, INTERNAL,
/// UNAVAILABLE, DATA_LOSS. (Not UNIMPLEMENTED: the caller asked for what nobody does.)
const FAILED: [&[u8]; 5] = [b"2", b"4", b"13", b"14", b"15"];
/// gRPC: DEADLINE_EXCEEDED.
const LATE: &[u8] = b"4";
/// gRPC: RESOURCE_EXHAUSTED, as hosts refuse what is too much.
const REFUSED: &[u8] = b"8";

/// The value of `:status`, which has three digits (RFC 9110, section 15).
pub fn status(value: &[u8]) -> Option<u32> {
    let digits = <[u8; 3]>::try_from(value).ok()?;
    let is_number = digits.iter().all(u8::is_ascii_digit);
    let value = |number, digit: u8| 10 * number + u32::from(digit.wrapping_sub(b'0'));
    is_number.then(|| digits.into_iter().fold(0, value))
}

/// By the status, and by headers where that says too little: a host that says when to come back, or whose
/// Envoy says that it is overloaded, refuses because it is full (RFC 9110, section 15.6.4). `is_grpc` says whether
/// there is a `grpc-status`, which nearly never there is: a host that fails at once sends it so (Trailers-Only, of
/// gRPC over HTTP/2); after messages it comes in trailers, which are not looked at.
pub fn of(status: u32, is_grpc: bool, headers: &Headers) -> Answer {
    if is_grpc && let Some(status) = headers.get("grpc-status") {
        return match status {
            REFUSED => Answer::Refused,
            status if FAILED.contains(&status) => Answer::Failed,
            _ => Answer::Well,
        };
    }
    let has = |name| headers.get(name).is_some();
    match status {
        429 => Answer::Refused,
        503 if has("retry-after") || has("x-envoy-overloaded") => Answer::Refused,
        500.. => Answer::Failed,
        _ => Answer::Well,
    }
}

/// Whether an answer that is a failure says that the time was over: 504, or gRPC's DEADLINE_EXCEEDED.
pub fn is_late(status: Option<u32>, is_grpc: bool, headers: &Headers) -> bool {
    match is_grpc {
        true => headers.get("grpc-status") == Some(LATE),
        false => status == Some(504),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_three_digits() {
        assert_eq!(status(b"200"), Some(200));
        assert_eq!(status(b"099"), Some(99));
        for none in ["", "20", "2000", "20x", "+20", " 20", "\u{ff}0"] {
            assert_eq!(status(none.as_bytes()), None, "{none}");
        }
    }

    fn answer(status: u32, name: &str, value: &str) -> Answer {
        let sizes = [1, name.len() as u32, value.len() as u32];
        let sizes = sizes.iter().flat_map(|size| size.to_le_bytes());
        let texts = format!("{name}\0{value}\0");
        let headers = Headers::new(sizes.chain(texts.bytes()).collect());
        of(status, headers.get("grpc-status").is_some(), &headers)
    }

    #[test]
    fn an_answer_is_a_failure_if_the_host_cannot_and_a_refusal_if_it_has_too_much_to_do() {
        let (well, failed, refused) = (Answer::Well, Answer::Failed, Answer::Refused);
        for (status, name, value, expected) in [
            (200, "x", "y", well),
            (302, "x", "y", well),
            (404, "x", "y", well),
            (429, "x", "y", refused),
            (500, "x", "y", failed),
            (500, "retry-after", "1", failed),
            (503, "x", "y", failed),
            (503, "retry-after", "1", refused),
            (503, "x-envoy-overloaded", "true", refused),
            (504, "x", "y", failed),
            (200, "grpc-status", "0", well),
            (200, "grpc-status", "5", well),
            (200, "grpc-status", "8", refused),
            (200, "grpc-status", "12", well),
            (200, "grpc-status", "13", failed),
            (200, "grpc-status", "14", failed),
        ] {
            assert_eq!(
                answer(status, name, value),
                expected,
                "{status} {name}: {value}"
            );
        }
    }
}
