// SPDX-License-Identifier: Apache-2.0
//! What is kept of the text before the end of a block, so that the blocks behind it can be named.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use weir_body::chain::{Chain, name, seed_of_model};
use weir_policy::{KeyHash, Salt, ends_key};

use crate::template::{self, Marks, Part, Template};
use crate::vocabulary::Vocabulary;

/// Adapters whose names are kept; those of others are hashed again each time.
const MAX_ADAPTERS: usize = 1024;
/// Of a name that is kept: an engine chooses what it sends.
const MAX_ADAPTER_BYTES: usize = 256;

/// How tokens become names.
#[derive(Clone, Debug)]
pub struct Names {
    vocabulary: Arc<Vocabulary>,
    marks: Option<Marks>,
    block_bytes: usize,
    salt: Option<Salt>,
    model: u64,
    adapters: HashMap<String, u64>,
}

/// A template has a mark that the vocabulary has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tokenizer has no {0}, which the template needs")]
pub struct NoMark(pub &'static str);

impl Names {
    /// Names in blocks of so many bytes, at least one, of prompts for this model.
    ///
    /// # Errors
    /// The template is of another tokenizer.
    pub fn new(
        vocabulary: Arc<Vocabulary>,
        template: Template,
        model: &str,
        block_bytes: usize,
        salt: Option<Salt>,
    ) -> Result<Self, NoMark> {
        let block_bytes = block_bytes.max(1);
        let missing = template.marks().iter();
        if let Some(mark) = missing
            .copied()
            .find(|mark| vocabulary.added(mark).is_none())
        {
            return Err(NoMark(mark));
        }
        Ok(Self {
            marks: template.ids(&vocabulary),
            model: seed_of_model(model.as_bytes(), block_bytes),
            vocabulary,
            block_bytes,
            salt,
            adapters: HashMap::new(),
        })
    }

    /// The beginning of a prompt for the model, or for one of its adapters, which requests name as they name a model.
    pub(crate) fn begin(&mut self, adapter: Option<&str>) -> Cursor {
        let seed = adapter.map_or(self.model, |adapter| self.seed(adapter));
        Cursor {
            chain: Chain::default(),
            seed,
            part: Part::Begin,
            has_text: false,
            begun: Some(0),
        }
    }

    fn seed(&mut self, adapter: &str) -> u64 {
        if let Some(seed) = self.adapters.get(adapter) {
            return *seed;
        }
        let seed = seed_of_model(adapter.as_bytes(), self.block_bytes);
        if self.adapters.len() < MAX_ADAPTERS && adapter.len() <= MAX_ADAPTER_BYTES {
            self.adapters.insert(adapter.to_owned(), seed);
        }
        seed
    }

    /// Goes past a token, telling the names of blocks of text that are full then. False where its text is not known,
    /// so that nothing behind it can be named.
    #[inline]
    pub(crate) fn pass(
        &self,
        cursor: &mut Cursor,
        token: u32,
        mut named: impl FnMut(KeyHash),
    ) -> bool {
        let Some(mut text) = self.vocabulary.text(token) else {
            return false;
        };
        let begun = cursor.begun.take();
        if let Some(place) = begun
            && self.vocabulary.begins(place, token)
        {
            // Requests do not have it.
            cursor.begun = place.checked_add(1);
            return true;
        }
        let (seed, salt) = (cursor.seed, self.salt.as_ref());
        let chain = &mut cursor.chain;
        let mut put = |text: &[u8]| {
            chain.extend(text, self.block_bytes, |number, block| {
                if ends_key(number) {
                    named(KeyHash::under(salt, &name(block, seed)));
                }
            });
        };
        if let Some(marks) = self.marks
            && cursor.part != Part::Prompt
        {
            match template::write(cursor.part, token, text, marks, &mut put) {
                Some(part) => {
                    cursor.part = part;
                    return true;
                }
                None if cursor.part == Part::Begin => cursor.part = Part::Prompt,
                None => return false,
            }
        }
        if !cursor.has_text && !text.is_empty() {
            cursor.has_text = true;
            if self.vocabulary.adds_space() {
                text = text.strip_prefix(b" ").unwrap_or(text);
            }
        }
        put(text);
        true
    }
}

/// A place in a text.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    chain: Chain,
    seed: u64,
    part: Part,
    has_text: bool,
    /// How many tokens have come, as long as all are those that the tokenizer itself puts there.
    begun: Option<u8>,
}
