// SPDX-License-Identifier: Apache-2.0
use serde_json::json;

use super::*;

fn names() -> Names {
    let json = json!({"model": {"vocab": {"a": 0}}, "decoder": {"type": "ByteLevel"}});
    let vocabulary = Arc::new(Vocabulary::read(json.to_string().as_bytes()).unwrap());
    Names::new(vocabulary, Template::None, "m", 1, None).unwrap()
}

#[test]
fn adapters_with_long_names_are_not_kept() {
    let mut names = names();
    for length in [1, 256, 257, 1 << 20] {
        let adapter = "a".repeat(length);
        let seed = names.begin(Some(&adapter)).seed;
        assert_eq!(seed, seed_of_model(adapter.as_bytes(), 1));
    }
    let kept: usize = names.adapters.keys().map(String::len).sum();
    assert_eq!(kept, 257);
}

#[test]
fn no_more_adapters_are_kept_than_the_limit() {
    let mut names = names();
    for number in 0..=MAX_ADAPTERS {
        names.begin(Some(&number.to_string()));
    }
    assert_eq!(names.adapters.len(), MAX_ADAPTERS);
}

/// Names of prefixes of these tokens, each a letter of `abc` but for marks from 10 on.
fn named(template: Template, tokens: &[u32]) -> (Vec<KeyHash>, bool) {
    let mark = |content: &str, id| json!({"content": content, "id": id});
    let begin = |id: &str| json!({"SpecialToken": {"id": id}});
    let json = json!({
        "model": {"vocab": {"a": 0, "b": 1, "c": 2, "Ċ": 3}},
        "decoder": {"type": "ByteLevel"},
        "added_tokens": [mark("<|im_start|>", 10), mark("<|im_end|>", 11), mark("<s>", 12), mark("<t>", 13)],
        "post_processor": {"type": "TemplateProcessing", "single": [begin("<s>"), begin("<t>")],
                           "special_tokens": {"<s>": {"ids": [12]}, "<t>": {"ids": [13]}}},
    });
    let vocabulary = Arc::new(Vocabulary::read(json.to_string().as_bytes()).unwrap());
    let mut names = Names::new(vocabulary, template, "m", 1, None).unwrap();
    let mut cursor = names.begin(None);
    let mut named = Vec::new();
    let mut tokens = tokens.iter();
    let all = tokens.all(|token| names.pass(&mut cursor, *token, |name| named.push(name)));
    (named, all)
}

#[test]
fn what_the_tokenizer_puts_first_has_no_text_there_and_only_in_its_order() {
    let bare = named(Template::None, &[0, 1]);
    assert_eq!(bare.0.len(), 2);
    assert_eq!(named(Template::None, &[12, 0, 1]), bare);
    assert_eq!(named(Template::None, &[12, 13, 0, 1]), bare);
    for others in [
        &[13, 0, 1][..],
        &[12, 12, 0, 1],
        &[0, 12, 1],
        &[12, 13, 13, 0, 1],
    ] {
        assert_ne!(named(Template::None, others), bare, "{others:?}");
    }
}

#[test]
fn a_chat_with_text_between_its_messages_is_no_chat_of_its_template() {
    let message = [10, 0, 3, 1, 11];
    let chat = |between: &[u32]| {
        named(
            Template::Chatml,
            &[&message[..], between, &message].concat(),
        )
    };
    let (whole, is_known) = chat(&[3]);
    assert!(is_known);
    assert_eq!(chat(&[3, 3]), (whole.clone(), true));
    assert_eq!(chat(&[]), (whole.clone(), true));
    for between in [&[0][..], &[3, 0], &[12]] {
        let (names, is_known) = chat(between);
        assert!(!is_known, "{between:?}");
        assert!(names.len() < whole.len() && whole.starts_with(&names));
    }
}
