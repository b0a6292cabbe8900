// SPDX-License-Identifier: Apache-2.0
//! What cannot be meant is refused before anything is asked, naming the field.

use std::net::TcpListener;
use std::process::Command;

/// The error of the program with these arguments, which must fail.
fn refusal(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_weir-memcached-load"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(!output.status.success(), "{arguments:?} is taken");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_load_that_cannot_be_is_refused_by_field() {
    // Nobody listens there: these are refused before that is seen.
    let address = "127.0.0.1:1";
    for (arguments, expected) in [
        (vec!["--min", "9", "--max", "8"], "min: 9"),
        (vec!["--interval", "0s"], "interval: 0ns"),
        (vec!["--interval", "2m"], "interval: 120s"),
        (vec!["--duration", "0s"], "duration: 0ns"),
        (vec!["--interval", "10"], "--interval"),
        (vec!["--qps", "0"], "min: 0"),
        (vec!["--qps", "9", "--min", "1"], "--min"),
        (vec!["--scale", "0"], "--scale"),
        (vec!["--slo", "0s"], "--slo"),
        (vec!["--keys", "0"], "keys: 0"),
        (vec!["--value-bytes", "0"], "value-bytes: 0"),
        (vec!["--connections", "0"], "connections: 0"),
        (vec!["--keys-per-get", "1001"], "keys-per-get: 1001"),
        (vec!["--in-flight", "0"], "in-flight: 0"),
        (vec!["--load-only", "--no-load"], "--no-load"),
        (vec!["--json", "/nowhere/there"], "/nowhere/there"),
    ] {
        let refused = refusal(&[&[address], &*arguments].concat());
        assert!(refused.contains(expected), "{arguments:?}: {refused}");
    }
}

#[test]
fn an_address_that_cannot_be_asked_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let free = listener.local_addr().unwrap().to_string();
    drop(listener);
    let refused = refusal(&[&free]);
    assert!(refused.contains(&free), "{refused}");
    assert!(refusal(&["nowhere"]).contains("address: `nowhere`"));
    assert!(refusal(&["192.0.2.1:11211"]).contains("--remote"));
}
