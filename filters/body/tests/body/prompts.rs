// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;
use serde_json::{Value, json};
use weir_body::Body;

use super::{names, read, reference};

/// Small, so that short documents have several.
const BLOCK: usize = 16;

fn of(body: &Value) -> Vec<String> {
    names(&read(Body::prompt(BLOCK), body.to_string().as_bytes(), &[]))
}

fn shared(one: &Value, other: &Value) -> usize {
    let (one, other) = (of(one), of(other));
    let pairs = one.iter().zip(&other);
    let shared = pairs.take_while(|(one, other)| one == other).count();
    let elsewhere = one.iter().skip(shared).filter(|name| other.contains(name));
    assert_eq!(elsewhere.count(), 0, "what differs once stays different");
    shared
}

#[test]
fn a_conversation_that_goes_on_keeps_the_names_of_what_was_said() {
    let said = |more: &[Value]| {
        let begin = [
            json!({"role": "system", "content": "You answer in one short sentence."}),
            json!({"role": "user", "content": "Who sends a request where its data are?"}),
        ];
        let messages: Vec<_> = begin.iter().chain(more).cloned().collect();
        json!({"model": "m", "messages": messages, "stream": true})
    };
    let before = said(&[]);
    let after = said(&[
        json!({"role": "assistant", "content": "The one who knows who has them."}),
        json!({"role": "user", "content": "And if that host is busy?"}),
    ]);
    let (before_names, after_names) = (of(&before), of(&after));
    assert!(before_names.len() > 5, "{before_names:?}");
    assert!(after_names.len() > before_names.len());
    // Its last block may have the bracket in it that ends the list.
    assert!(shared(&before, &after) >= before_names.len() - 1);
}

#[test]
fn a_name_stands_for_the_model_and_for_all_that_the_engine_puts_before() {
    let talk = json!([{"role": "user", "content": "the same words, as long as this or longer"}]);
    let plain = json!({"model": "m", "messages": talk});
    assert!(of(&plain).len() > 3);
    let same = json!({"messages": talk, "temperature": 0.5, "model": "m"});
    assert_eq!(
        of(&plain),
        of(&same),
        "neither order nor other members matter"
    );
    for other in [
        json!({"model": "adapter", "messages": talk}),
        json!({"model": "m", "messages": talk, "lora_path": "adapter"}),
        json!({"model": "m", "messages": talk, "cache_salt": "ours"}),
        json!({"model": "m", "messages": talk, "extra_key": "ours"}),
        json!({"model": "m", "messages": talk, "system": "Be brief."}),
        json!({"model": "m", "messages": talk, "tools": [{"name": "clock"}]}),
    ] {
        assert_eq!(shared(&plain, &other), 0, "{other}");
    }
    let system = "long enough to have some blocks of its own";
    let with = |text: &str| {
        let talk = json!([{"role": "user", "content": text}]);
        json!({"messages": talk, "system": system, "model": "m"})
    };
    assert_eq!(shared(&with("one"), &with("another")), 2);
}

#[test]
fn every_form_of_a_prompt_has_blocks_and_other_documents_have_none() {
    let long = "0123456789abcdef0123456789abcdef";
    for body in [
        json!({"prompt": long}),
        json!({"prompt": [long, long]}),
        json!({"prompt": [1000, 2000, 3000, 4000]}),
        json!({"input": [{"role": "user", "content": long}]}),
        json!({"instructions": long}),
        json!({"messages": [{"content": [{"type": "text", "text": long}]}]}),
    ] {
        assert!(!of(&body).is_empty(), "{body}");
    }
    for body in [
        json!({"model": long, "cache_salt": long, "suffix": long, "prompts": long, "promp": long}),
        json!({"metadata": {"prompt": long}}),
        json!([{"prompt": long}]),
        json!("prompt"),
        json!({"prompt": "short"}),
        json!({}),
    ] {
        assert_eq!(of(&body), Vec::<String>::new(), "{body}");
    }
}

#[test]
fn a_prompt_of_any_length_has_at_most_so_many_names() {
    let long = "x".repeat(BLOCK * 200);
    let names = of(&json!({"system": long, "prompt": long}));
    assert_eq!(names.len(), weir_policy::MAX_KEYS);
    let longer = of(&json!({"system": long, "prompt": long, "messages": long}));
    assert_eq!(longer, names);
}

#[test]
fn the_later_a_name_the_more_of_the_prompt_it_stands_for() {
    // `VALUE_END` fills the last block.
    let named = |blocks: usize| of(&json!({"prompt": "x".repeat(BLOCK * blocks - 1)})).len();
    for (blocks, names) in [
        (32, 32),
        (33, 32),
        (34, 33),
        (48, 40),
        (51, 40),
        (52, 41),
        (271, 63),
        (272, 64),
        (900, 64),
    ] {
        assert_eq!(named(blocks), names, "{blocks} blocks");
    }
}

#[test]
fn what_is_no_json_is_malformed_and_has_no_names() {
    let begin = r#"{"prompt":"0123456789abcdef0123456789abcdef""#;
    for end in [
        "",
        ",",
        "}}",
        "} x",
        ",}",
        ":1}",
        ",\"a\"}",
        ",\"a\":01}",
        ",\"a\":1.}",
        ",\"a\":-}",
        ",\"a\":1e}",
        ",\"a\":tru}",
        ",\"a\":truex}",
        ",\"a\":\"\u{1}\"}",
        ",\"a\":\"\\x\"}",
        ",\"a\":\"\\u00g0\"}",
        ",\"a\":[1,]}",
        ",\"a\":[1}",
        ",a:1}",
        ",\"a\":+1}",
    ] {
        let document = format!("{begin}{end}");
        assert_eq!(reference::names(&document, BLOCK), None, "{document}");
        let body = read(Body::prompt(BLOCK), document.as_bytes(), &[]);
        assert!(body.is_malformed(), "{document}");
        assert_eq!(body.names(), Vec::<Vec<u8>>::new());
    }
    // As deep as serde_json goes, and one deeper.
    for (depth, is_malformed) in [(126, false), (127, true)] {
        let document = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(
            serde_json::from_str::<Value>(&document).is_err(),
            is_malformed
        );
        let body = read(Body::prompt(BLOCK), document.as_bytes(), &[]);
        assert_eq!(body.is_malformed(), is_malformed, "{depth}");
    }
}

#[test]
fn half_of_a_surrogate_pair_is_read_as_a_replacement_character() {
    for (half, whole) in [
        (r"\ud800", "\u{fffd}"),
        (r"\udc00", "\u{fffd}"),
        (r"\ud83dx", "\u{fffd}x"),
        (r"\ud83d\n", "\u{fffd}\n"),
        (r"\ud83dA", "\u{fffd}A"),
        (r"\ud83d\ud83d\ude00", "\u{fffd}\u{1f600}"),
    ] {
        let long = "0123456789abcdef0123456789abcdef";
        let document = format!(r#"{{"prompt":"{half}{long}"}}"#);
        let body = read(Body::prompt(BLOCK), document.as_bytes(), &[]);
        let meant = of(&json!({"prompt": format!("{whole}{long}")}));
        assert_eq!(
            (names(&body), body.is_malformed()),
            (meant, false),
            "{half}"
        );
    }
}

#[test]
fn names_are_those_of_the_example() {
    let document = br#"{"model":"m","prompt":"abcdefgh"}"#;
    let names = names(&read(Body::prompt(4), document, &[]));
    assert_eq!(names, ["d7588a6fac7bb735", "e1c1e58050d5af2e"]);
    let text = std::str::from_utf8(document).unwrap();
    assert_eq!(reference::names(text, 4), Some(names));
}

/// Documents, most of them objects with members of prompts, and what no serializer would write.
fn document() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        "[ -~]{0,40}",
        "\\PC{0,20}",
        Just("\\u00e9\\ud83d\\ude00\\n\\/\\\"\\\\\\u0000".to_owned()),
    ];
    let string = (text, any::<bool>()).prop_map(|(text, raw)| match raw {
        // Perhaps no string at all.
        true => format!("\"{text}\""),
        false => serde_json::to_string(&text).unwrap(),
    });
    let scalar = prop_oneof![
        3 => string,
        1 => Just("true".to_owned()),
        1 => Just(" null ".to_owned()),
        1 => "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
        1 => "[-+0-9.eE]{1,5}",
    ];
    let name = prop_oneof![
        3 => prop::sample::select(vec![
            "model", "messages", "prompt", "system", "tools", "input", "cache_salt", "lora_path", "extra_key",
        ]),
        1 => Just("pro\\u006dpt"),
        1 => Just("other"),
    ];
    scalar.prop_recursive(4, 24, 5, move |inner| {
        let array = prop::collection::vec(inner.clone(), 0..5);
        let object = prop::collection::vec((name.clone(), inner), 0..5);
        prop_oneof![
            array.prop_map(|values| format!("[{}]", values.join(" ,"))),
            object.prop_map(|members| {
                let members = members.iter();
                let members: Vec<_> = members.map(|(n, v)| format!("\"{n}\" :\t{v}")).collect();
                format!("{{{}}}", members.join(",\n"))
            }),
        ]
    })
}

/// The same with one byte changed, now and then.
fn damaged() -> impl Strategy<Value = String> {
    let damage = (any::<prop::sample::Index>(), prop::char::range(' ', '~'));
    (document(), prop::option::weighted(0.3, damage)).prop_map(|(document, damage)| {
        let mut characters: Vec<char> = document.chars().collect();
        if let (Some((at, by)), false) = (damage, characters.is_empty()) {
            let at = at.index(characters.len());
            characters[at] = by;
        }
        characters.into_iter().collect()
    })
}

proptest! {
    #[test]
    fn any_document_in_any_chunks_is_read_as_by_serde_json(
        document in damaged(),
        chunks in prop::collection::vec(0_usize..9, 0..40),
    ) {
        let body = read(Body::prompt(BLOCK), document.as_bytes(), &chunks);
        let expected = reference::names(&reference::with_whole_pairs(&document), BLOCK);
        prop_assert_eq!(body.is_malformed(), expected.is_none());
        prop_assert_eq!(names(&body), expected.unwrap_or_default());
    }

    #[test]
    fn any_bytes_in_any_chunks_are_read_alike(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        chunks in prop::collection::vec(0_usize..9, 0..10),
    ) {
        let whole = read(Body::prompt(BLOCK), &bytes, &[]);
        let in_chunks = read(Body::prompt(BLOCK), &bytes, &chunks);
        prop_assert_eq!(whole.is_malformed(), in_chunks.is_malformed());
        prop_assert_eq!(whole.names(), in_chunks.names());
    }
}
