// SPDX-License-Identifier: Apache-2.0
//! The caller's name for what it hopes to find.

use std::sync::Arc;

/// One name for a prompt, or one for each of its last full blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    text: Arc<str>,
    /// None: the text names the prompt.
    blocks: Option<Vec<Arc<str>>>,
}

impl Key {
    /// With a separator, names of full blocks in their order: of fewer than the prompt has, the last ones,
    /// so that what every prompt begins with can be left out. Without, a name of the prompt.
    #[must_use]
    pub fn new(text: &str, separator: Option<char>) -> Self {
        let names = |separator| {
            let names = text.split(separator).map(str::trim_ascii);
            names
                .filter(|name| !name.is_empty())
                .map(Arc::from)
                .collect()
        };
        Self {
            text: text.into(),
            blocks: separator.map(names),
        }
    }

    /// As the caller wrote it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What a block of a prompt of so many is known by.
    pub(crate) fn of(&self, block: usize, blocks: usize) -> Option<&Arc<str>> {
        let Some(names) = &self.blocks else {
            return Some(&self.text);
        };
        names.get((block + names.len()).checked_sub(blocks)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_belong_to_the_last_blocks() {
        let named = |key: &Key, blocks| -> Vec<Option<String>> {
            let of = |block| key.of(block, blocks).map(ToString::to_string);
            (0..blocks).map(of).collect()
        };
        let list = Key::new("a; b;", Some(';'));
        let (a, b) = (Some("a".to_owned()), Some("b".to_owned()));
        assert_eq!(named(&list, 3), [None, a.clone(), b.clone()]);
        assert_eq!(named(&list, 2), [a, b.clone()]);
        assert_eq!(named(&list, 1), [b], "more names than blocks");
        let whole = Some("a; b;".to_owned());
        assert_eq!(named(&Key::new("a; b;", None), 2), [whole.clone(), whole]);
    }
}
