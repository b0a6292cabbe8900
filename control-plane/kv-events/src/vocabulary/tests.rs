// SPDX-License-Identifier: Apache-2.0
use serde_json::json;

use super::*;

fn read(json: &Value) -> Result<Vocabulary, Error> {
    Vocabulary::read(json.to_string().as_bytes())
}

#[test]
fn letters_of_gpt_2_are_bytes_and_added_tokens_are_as_written() {
    let vocabulary = read(&json!({
        "model": {"type": "BPE", "vocab": {"Ġhi": 0, "Ċ": 1, "Ã©": 2, "語": 3}},
        "decoder": {"type": "ByteLevel"},
        "added_tokens": [{"id": 5, "content": "<|im_start|>", "special": true}],
        "post_processor": {"type": "Sequence", "processors": [
            {"type": "ByteLevel"},
            {"type": "TemplateProcessing",
             "single": [{"SpecialToken": {"id": "<b>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                        {"SpecialToken": {"id": "<e>", "type_id": 0}}],
             "special_tokens": {"<b>": {"id": "<b>", "ids": [7], "tokens": ["<b>"]}, "<e>": {"ids": [8]}}},
        ]},
    }))
    .unwrap();
    let texts = [
        Some(&b" hi"[..]),
        Some(b"\n"),
        Some("é".as_bytes()),
        Some("語".as_bytes()),
        None,
    ];
    for (id, text) in texts.into_iter().enumerate() {
        assert_eq!(vocabulary.text(id as u32), text, "{id}");
    }
    assert_eq!(vocabulary.text(5), Some(&b"<|im_start|>"[..]));
    assert_eq!(
        (vocabulary.text(6), vocabulary.text(u32::MAX)),
        (None, None)
    );
    assert_eq!(vocabulary.added("<|im_start|>"), Some(5));
    assert!(vocabulary.begins(0, 7) && !vocabulary.begins(1, 7) && !vocabulary.begins(0, 8));
    assert!(!vocabulary.adds_space());
}

#[test]
fn pieces_of_sentencepiece_have_spaces_and_bytes() {
    let llama = json!({
        "model": {"type": "BPE", "byte_fallback": true, "vocab": {"▁the▁end": 0, "<0xE2>": 1, "<0x0>": 2}},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ]},
    });
    let vocabulary = read(&llama).unwrap();
    assert_eq!(vocabulary.text(0), Some(&b" the end"[..]));
    assert_eq!(vocabulary.text(1), Some(&[0xe2][..]));
    assert_eq!(vocabulary.text(2), Some(&b"<0x0>"[..]));
    assert!(vocabulary.adds_space());
    let unigram = json!({
        "model": {"type": "Unigram", "vocab": [["<unk>", 0.0], ["▁a", -1.5]]},
        "decoder": {"type": "Metaspace", "prepend_scheme": "never"},
    });
    let vocabulary = read(&unigram).unwrap();
    assert_eq!(vocabulary.text(1), Some(&b" a"[..]));
    assert!(!vocabulary.adds_space());
}

#[test]
fn what_is_no_vocabulary_is_refused() {
    let refused = |json: Value| read(&json).unwrap_err().to_string();
    assert!(refused(json!({})).contains("missing field `model`"));
    let words = json!({"model": {"type": "WordPiece", "vocab": {"##a": 0}}, "decoder": {"type": "WordPiece"}});
    assert!(refused(words).contains("byte-level BPE"));
    let huge = json!({"model": {"vocab": {"a": 4_194_304}}, "decoder": {"type": "ByteLevel"}});
    assert!(refused(huge).contains("token 4194304 is beyond"));
}

#[test]
fn a_first_token_is_as_the_configuration_beside_it_says() {
    let added = |id: u32, content: &str| json!({"id": id, "content": content});
    let tokenizer = json!({
        "model": {"vocab": {"a": 0}}, "decoder": {"type": "ByteLevel"},
        "added_tokens": [added(7, "<b>"), added(8, "<c>")],
        "post_processor": {
            "type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<c>"}}],
            "special_tokens": {"<c>": {"ids": [8]}},
        },
    });
    let with = |config: Value| {
        let mut vocabulary = read(&tokenizer).unwrap();
        let begun = vocabulary.begin_as(config.to_string().as_bytes());
        begun.map(|()| vocabulary)
    };
    let begins = |config| with(config).map(|of| [of.begins(0, 7), of.begins(0, 8)]);
    let is = |token: Value| json!({"add_bos_token": true, "bos_token": token});
    for token in [
        json!("<b>"),
        json!({"__type": "AddedToken", "content": "<b>"}),
    ] {
        assert_eq!(begins(is(token)).unwrap(), [true, false]);
    }
    for silent in [
        json!({"bos_token": "<b>"}),
        json!({"add_bos_token": null, "bos_token": null}),
        json!({"add_bos_token": false, "bos_token": "<b>"}),
    ] {
        assert_eq!(begins(silent).unwrap(), [false, true]);
    }
    let refused = |config| begins(config).unwrap_err().to_string();
    assert!(refused(json!([])).contains("is no tokenizer_config.json"));
    for none in [json!("<d>"), json!("a"), Value::Null] {
        assert!(refused(is(none)).contains("no added token"));
    }
    assert_ne!(with(json!({})).unwrap(), read(&tokenizer).unwrap());
    assert_eq!(
        with(is(json!("<b>"))).unwrap(),
        with(is(json!("<b>"))).unwrap()
    );
}
