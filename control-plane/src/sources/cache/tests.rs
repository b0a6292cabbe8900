// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use proptest::prelude::*;
use weir_policy::Salt;

use super::*;
use crate::config::Poll;

fn limits() -> Cache {
    let second = Duration::from_secs(1);
    let poll = Poll {
        interval: second,
        timeout: second,
        path: "/cache".into(),
        max_bytes: 1 << 24,
        tls: None,
    };
    Cache {
        poll,
        max_keys: 5,
        max_key_bytes: 16,
        salt: None,
    }
}

fn answer(conversation: &mut Conversation, json: &str) -> Result<Changes, Fault> {
    conversation
        .answer(json.as_bytes(), &limits())
        .map_err(|error| error.fault)
}

/// A conversation that has heard version 7 of epoch 3, with two keys.
fn begun() -> Conversation {
    let mut conversation = Conversation::default();
    let all = r#"{"version":7,"epoch":3,"reset":true,"added":["a","b"],"removed":[]}"#;
    let changes = answer(&mut conversation, all).unwrap();
    assert_eq!(changes.added, [KeyHash::of(b"a"), KeyHash::of(b"b")]);
    conversation
}

#[test]
fn each_question_asks_for_what_changed_since_the_last_answer() {
    let mut conversation = Conversation::default();
    assert_eq!(conversation.question("/cache"), "/cache");
    conversation = begun();
    assert_eq!(conversation.question("/cache"), "/cache?since=7&epoch=3");
    let changes = answer(
        &mut conversation,
        r#"{"version":9,"epoch":3,"added":["c"],"removed":["a"]}"#,
    )
    .unwrap();
    assert_eq!(
        changes,
        Changes {
            reset: false,
            added: vec![KeyHash::of(b"c")],
            removed: vec![KeyHash::of(b"a")]
        }
    );
    assert_eq!(conversation.question("/cache"), "/cache?since=9&epoch=3");
}

#[test]
fn keys_are_hashed_with_the_clusters_salt_and_found_by_those_who_have_it() {
    let salt = Salt::parse("000102030405060708090a0b0c0d0e0f").unwrap();
    let limits = Cache {
        salt: Some(salt.clone()),
        ..limits()
    };
    let all = br#"{"version":1,"epoch":3,"reset":true,"added":["a"]}"#;
    let mut conversation = Conversation::default();
    let [key] = conversation.answer(all, &limits).unwrap().added[..] else {
        panic!("one key was added");
    };
    assert_eq!(key, KeyHash::under(Some(&salt), b"a"));
    let others = [None, Salt::parse("00112233445566778899aabbccddeeff")];
    for other in others {
        assert_ne!(key, KeyHash::under(other.as_ref(), b"a"));
    }
}

#[test]
fn an_answer_that_cannot_be_true_makes_the_next_question_start_from_scratch() {
    let cases = [
        (r#"not json"#, Fault::BadBody),
        (r#""x""#, Fault::BadBody),
        (r#"{"version":-1,"epoch":3}"#, Fault::BadBody),
        (
            r#"{"version":8,"epoch":4,"added":["c"]}"#,
            Fault::Inconsistent,
        ),
        (
            r#"{"version":6,"epoch":3,"added":["c"]}"#,
            Fault::Inconsistent,
        ),
        (
            r#"{"version":6,"epoch":3,"reset":true}"#,
            Fault::Inconsistent,
        ),
        (
            r#"{"version":7,"epoch":3,"added":["c"]}"#,
            Fault::Inconsistent,
        ),
        (
            r#"{"version":8,"epoch":3,"reset":true,"removed":["a"]}"#,
            Fault::Inconsistent,
        ),
        (
            r#"{"version":8,"epoch":3,"added":["c"],"removed":["c"]}"#,
            Fault::Inconsistent,
        ),
        (
            r#"{"version":8,"epoch":3,"added":["0123456789abcdefg"]}"#,
            Fault::TooLarge,
        ),
    ];
    for (json, fault) in cases {
        let mut conversation = begun();
        assert_eq!(answer(&mut conversation, json), Err(fault), "{json}");
        assert_eq!(conversation.question("/cache"), "/cache", "{json}");
        assert_eq!(
            answer(&mut conversation, r#"{"version":8,"epoch":3}"#),
            Err(Fault::Inconsistent)
        );
        let all = r#"{"version":1,"epoch":3,"reset":true,"added":["z"]}"#;
        assert!(answer(&mut conversation, all).unwrap().reset, "{json}");
    }
}

#[test]
fn a_restarted_host_may_reset_to_a_lower_version_of_a_new_epoch() {
    let mut conversation = begun();
    let all = r#"{"version":1,"epoch":4,"reset":true,"added":["z"]}"#;
    assert!(answer(&mut conversation, all).unwrap().reset);
    assert_eq!(conversation.question("/cache"), "/cache?since=1&epoch=4");
}

#[test]
fn a_key_of_a_megabyte_is_refused() {
    let json = format!(
        r#"{{"version":1,"epoch":1,"reset":true,"added":["{}"]}}"#,
        "k".repeat(1 << 20)
    );
    let error = Conversation::default()
        .answer(json.as_bytes(), &limits())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "too_large: a key of 1048576 bytes, the limit is 16"
    );
}

proptest! {
    #[test]
    fn no_body_makes_it_panic(body in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = begun().answer(&body, &limits());
    }
}
