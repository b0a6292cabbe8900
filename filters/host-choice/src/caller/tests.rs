// SPDX-License-Identifier: Apache-2.0
use weir_policy::KeyHash;

use super::*;
use crate::fake::{FakeHost, FakeRequest};

/// All that a caller may say of a request.
const SAID: &[(&str, &str)] = &[
    ("x-weir-key", "key"),
    ("x-weir-priority", "high"),
    ("x-weir-user", "ann"),
];
const LOW: u8 = 16;

fn read_by(json: &str, request: &FakeRequest) -> Said {
    let config = Config::parse(json.as_bytes()).unwrap();
    let cluster = config.cluster(b"rules").unwrap();
    let headers = request.headers(Map::Request).ok();
    read(
        &config,
        cluster,
        (headers.as_ref(), &[]),
        5,
        (&FakeHost::default(), request),
    )
}

fn trusting(trust: &str) -> String {
    format!(r#"{{"trust":"{trust}","clusters":{{"rules":{{}}}}}}"#)
}

fn is_believed(trust: &str, request: &FakeRequest) -> bool {
    let said = read_by(&trusting(trust), request);
    let read = said.request;
    let is_read = read.keys.last() == Some(KeyHash::of(b"key"));
    let is_left = request.header(Map::Request, "x-weir-key").is_some();
    assert_eq!(is_read, is_left, "what is not believed is removed");
    assert_eq!(is_read, !said.is_disbelieved);
    is_read
}

fn from(address: &str) -> FakeRequest {
    let request = FakeRequest::new(SAID);
    request.set(Text::Caller, address);
    request
}

#[test]
fn a_trusted_caller_says_key_priority_and_user() {
    let request = FakeRequest::new(SAID);
    let Said {
        request: read,
        has_time_out,
        ..
    } = read_by(&trusting("loopback"), &request);
    assert_eq!(read.keys.last(), Some(KeyHash::of(b"key")));
    let ann = user_priority(b"ann", FakeHost::default().hour());
    assert_eq!((read.rank, has_time_out), (Rank::new(0, ann), false));
}

#[test]
fn of_a_stranger_nothing_is_believed_or_passed_on() {
    let request = from("10.0.0.9:1234");
    let read = read_by(&trusting("loopback"), &request).request;
    assert_eq!((read.keys.last(), read.rank), (None, Rank::new(LOW, 5)));
    for (name, _) in SAID {
        assert_eq!(request.header(Map::Request, name), None, "{name}");
    }
}

#[test]
fn a_caller_on_the_loopback_address_has_a_port() {
    for (address, expected) in [
        ("127.0.0.1:50000", true),
        ("127.3.2.1:50000", true),
        ("[::1]:50000", true),
        ("[::ffff:127.0.0.1]:50000", true),
        ("127.0.0.1:0", false),
        ("127.0.0.1", false),
        ("127.0.0.1:", false),
        ("127.0.0.1:99999", false),
        ("10.0.0.9:50000", false),
        ("/run/socket", false),
    ] {
        assert_eq!(
            is_believed("loopback", &from(address)),
            expected,
            "{address}"
        );
    }
}

#[test]
fn trust_goes_by_the_configuration() {
    for (trust, address, certificate, expected) in [
        ("any", "10.0.0.9:1", None, true),
        ("none", "127.0.0.1:1", Some(1), false),
        ("mtls", "127.0.0.1:1", None, false),
        ("mtls", "127.0.0.1:1", Some(0), false),
        ("mtls", "10.0.0.9:1", Some(1), true),
    ] {
        let request = from(address);
        if let Some(shown) = certificate {
            request.set_number(Number::MutualTls, shown);
        }
        assert_eq!(
            is_believed(trust, &request),
            expected,
            "{trust}, {certificate:?}"
        );
    }
}

#[test]
fn headers_that_cannot_be_read_are_removed_all_the_same() {
    let request = FakeRequest::new(SAID);
    let config = Config::parse(trusting("none").as_bytes()).unwrap();
    let cluster = config.cluster(b"rules").unwrap();
    let read = read(
        &config,
        cluster,
        (None, &[]),
        5,
        (&FakeHost::default(), &request),
    )
    .request;
    assert_eq!(read.rank, Rank::new(LOW, 5));
    assert_eq!(request.header(Map::Request, "x-weir-key"), None);
}

#[test]
fn a_user_may_be_the_one_of_the_certificate() {
    let json = r#"{"clusters":{"rules":{"user":"peer_certificate"}}}"#;
    let request = FakeRequest::new(SAID);
    let user = |request: &FakeRequest| read_by(json, request).request.rank;
    assert_eq!(user(&request), Rank::new(0, 5), "without one it is drawn");
    request.set(Text::CallerUri, "spiffe://ann");
    let ann = user_priority(b"spiffe://ann", FakeHost::default().hour());
    assert_eq!(user(&request), Rank::new(0, ann));
}

#[test]
fn a_caller_that_chose_a_time_out_is_known_trusted_or_not() {
    for name in TIME_OUTS {
        let name = std::str::from_utf8(name).unwrap();
        let request = FakeRequest::new(&[(name, "100")]);
        assert!(read_by(&trusting("none"), &request).has_time_out, "{name}");
    }
}
