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
