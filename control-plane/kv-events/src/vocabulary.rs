// SPDX-License-Identifier: Apache-2.0
//! The text of tokens, from the `tokenizer.json` of a model (Hugging Face Tokenizers) and what stands beside it.
//!
//! To turn text into tokens takes rules; to turn tokens into text takes this table.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use xxhash_rust::xxh64::xxh64;

/// Ids at most: more than any model has.
const MAX_IDS: u32 = 1 << 22;

/// Why a file is no vocabulary.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is no `tokenizer.json`.
    #[error("is no tokenizer.json: {0}")]
    Malformed(#[from] serde_json::Error),
    /// An id is beyond what a model can have.
    #[error("token {id} is beyond {MAX_IDS}, more ids than a model has")]
    TooMany {
        /// The id.
        id: u32,
    },
    /// Tokens are not bytes of the text.
    #[error(
        "has tokens of which the text is not known: byte-level BPE is read, and SentencePiece's with U+2581 for spaces"
    )]
    Unsupported,
    /// It is no `tokenizer_config.json`.
    #[error("is no tokenizer_config.json: {0}")]
    NoConfig(#[source] serde_json::Error),
    /// It says that prompts begin with a token, and not with which.
    #[error("has add_bos_token, and its bos_token is no added token of the tokenizer")]
    NoFirst,
}

/// The text of each token of a model.
#[derive(Clone, Default)]
pub struct Vocabulary {
    /// Of the files: settings are compared for each host whenever the hosts change.
    digest: u64,
    /// By id, where the text is in `text`; empty and past the end where there is no such token.
    places: Vec<Place>,
    text: Vec<u8>,
    /// Ids of added tokens by what is written for them.
    added: BTreeMap<String, u32>,
    /// What the tokenizer puts before each prompt of its own accord.
    begin: Vec<u32>,
    /// The first space of a text was put there by the tokenizer.
    adds_space: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    start: u32,
    end: u32,
}

/// Of an id that no token has.
const NONE: Place = Place { start: 1, end: 0 };

#[derive(Deserialize)]
struct Written {
    model: Model,
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(default)]
    decoder: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
}

#[derive(Deserialize)]
struct Model {
    vocab: Pieces,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Pieces {
    /// Of BPE.
    ById(HashMap<String, u32>),
    /// Of Unigram: with their scores.
    InOrder(Vec<(String, f64)>),
}

/// What the tokenizer's maker writes beside it. `false` needs nothing: then no prompt of the engine has the token.
#[derive(Deserialize)]
struct Config {
    add_bos_token: Option<bool>,
    bos_token: Option<Special>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Special {
    Text(String),
    Token { content: String },
}

#[derive(Deserialize)]
struct Added {
    id: u32,
    content: String,
}

/// How pieces stand for bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alphabet {
    /// A character a byte, as GPT-2 has it.
    Bytes,
    /// Text with U+2581 for spaces, and `<0xNN>` for a byte that no other token has.
    SentencePiece,
}

impl Vocabulary {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// It is none, or one of another kind.
    pub fn read(json: &[u8]) -> Result<Self, Error> {
        let written: Written = serde_json::from_slice(json)?;
        let alphabet = alphabet(&written)?;
        let mut vocabulary = Self {
            adds_space: alphabet == Alphabet::SentencePiece && adds_space(&written),
            begin: begin(&written.post_processor),
            digest: xxh64(json, 0),
            ..Self::default()
        };
        let letters = letters();
        let mut add = |piece: &str, id| vocabulary.add(id, &bytes(piece, alphabet, &letters));
        match written.model.vocab {
            Pieces::ById(ids) => ids.iter().try_for_each(|(piece, id)| add(piece, *id))?,
            Pieces::InOrder(pieces) => {
                let mut pieces = pieces.iter().zip(0..);
                pieces.try_for_each(|((piece, _), id)| add(piece, id))?;
            }
        }
        for added in written.added_tokens {
            vocabulary.add(added.id, added.content.as_bytes())?;
            vocabulary.added.insert(added.content, added.id);
        }
        vocabulary.text.shrink_to_fit();
        Ok(vocabulary)
    }

    /// Prompts begin as the model's `tokenizer_config.json` says, where that says something of it: it counts before the
    /// `post_processor` of the other file.
    ///
    /// # Errors
    /// It is none, or names a token that is not there.
    pub fn begin_as(&mut self, json: &[u8]) -> Result<(), Error> {
        let config: Config = serde_json::from_slice(json).map_err(Error::NoConfig)?;
        self.digest = xxh64(json, self.digest);
        if config.add_bos_token != Some(true) {
            return Ok(());
        }
        let first = config.bos_token.and_then(|token| match token {
            Special::Text(content) | Special::Token { content } => self.added(&content),
        });
        self.begin = vec![first.ok_or(Error::NoFirst)?];
        Ok(())
    }

    /// The text of a token; none where there is no such token.
    #[inline]
    pub fn text(&self, token: u32) -> Option<&[u8]> {
        let place = self.places.get(token as usize)?;
        self.text.get(place.start as usize..place.end as usize)
    }

    /// The id of an added token, such as `<|im_start|>`.
    pub fn added(&self, content: &str) -> Option<u32> {
        self.added.get(content).copied()
    }

    /// Whether the tokenizer itself puts the token at this place, from 0, before each prompt.
    pub fn begins(&self, place: u8, token: u32) -> bool {
        self.begin.get(usize::from(place)) == Some(&token)
    }

    /// Whether the first space of a text was put there by the tokenizer.
    pub fn adds_space(&self) -> bool {
        self.adds_space
    }

    /// Bytes of memory, about.
    pub fn bytes(&self) -> usize {
        self.text.len() + self.places.len() * size_of::<Place>()
    }

    fn add(&mut self, id: u32, text: &[u8]) -> Result<(), Error> {
        if id >= MAX_IDS {
            return Err(Error::TooMany { id });
        }
        let at = id as usize;
        if self.places.len() <= at {
            self.places.resize(at + 1, NONE);
        }
        let start = self.text.len();
        self.text.extend(text);
        // A file that is read is far smaller than what 32 bits count; one that is not names fewer tokens.
        let place = u32::try_from(start)
            .ok()
            .zip(u32::try_from(self.text.len()).ok());
        if let (Some((start, end)), Some(known)) = (place, self.places.get_mut(at)) {
            *known = Place { start, end };
        }
        Ok(())
    }
}

/// Two of the same files.
impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        (self.digest, self.text.len()) == (other.digest, other.text.len())
    }
}

impl Eq for Vocabulary {}

/// A hundred thousand tokens are no help to anybody.
impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vocabulary({} ids)", self.places.len())
    }
}

fn alphabet(written: &Written) -> Result<Alphabet, Error> {
    let of = |value| {
        let (bytes, pieces) = (has(value, "ByteLevel"), has(value, "ByteFallback"));
        (bytes, pieces || has(value, "Metaspace"))
    };
    let (decoder, before) = (of(&written.decoder), of(&written.pre_tokenizer));
    match (decoder.0 || before.0, decoder.1 || before.1) {
        (true, _) => Ok(Alphabet::Bytes),
        (false, true) => Ok(Alphabet::SentencePiece),
        (false, false) => Err(Error::Unsupported),
    }
}

/// Whether a step of this type is in a pipeline of the tokenizer.
fn has(value: &Value, step: &str) -> bool {
    steps(value).any(|value| is(value, step))
}

fn is(value: &Value, step: &str) -> bool {
    value.get("type").and_then(Value::as_str) == Some(step)
}

/// A step, or those of a sequence.
fn steps(value: &Value) -> impl Iterator<Item = &Value> {
    let inner = ["decoders", "pretokenizers", "processors"];
    let inner = inner
        .into_iter()
        .filter_map(|name| value.get(name)?.as_array());
    std::iter::once(value).chain(inner.flatten())
}

/// Decoders take a space from the beginning that was put there before.
fn adds_space(written: &Written) -> bool {
    let all = [&written.decoder, &written.pre_tokenizer];
    all.into_iter().flat_map(steps).any(|step| {
        let scheme = step.get("prepend_scheme").and_then(Value::as_str);
        let adds = step.get("add_prefix_space").and_then(Value::as_bool);
        let strips = step.get("start").and_then(Value::as_u64).unwrap_or(0) > 0;
        is(step, "Strip") && strips
            || is(step, "Metaspace")
                && scheme.map_or(adds.unwrap_or(true), |scheme| scheme != "never")
    })
}

/// The special tokens before the prompt in a template such as `<s> $A`.
fn begin(post_processor: &Value) -> Vec<u32> {
    let template = steps(post_processor).find(|step| is(step, "TemplateProcessing"));
    let Some(template) = template else {
        return Vec::new();
    };
    let single = template.get("single").and_then(Value::as_array);
    let pieces = single.into_iter().flatten();
    let special = pieces.map_while(|piece| piece.get("SpecialToken")?.get("id")?.as_str());
    let ids = special.filter_map(|name| {
        let token = template.get("special_tokens")?.get(name)?;
        token.get("ids")?.as_array()
    });
    let ids = ids.flatten().filter_map(Value::as_u64);
    ids.filter_map(|id| u32::try_from(id).ok()).collect()
}

/// GPT-2's alphabet: bytes that can be printed stand for themselves, the others for the characters from U+0100 on.
fn letters() -> HashMap<char, u8> {
    let mut others = 0x100..;
    let letter = |byte: u8| {
        let own = matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
        let letter = match own {
            true => Some(char::from(byte)),
            false => others.next().and_then(char::from_u32),
        };
        Some((letter?, byte))
    };
    (0..=u8::MAX).filter_map(letter).collect()
}

fn bytes(piece: &str, alphabet: Alphabet, letters: &HashMap<char, u8>) -> Vec<u8> {
    match alphabet {
        Alphabet::Bytes => {
            let bytes = piece.chars().map(|letter| letters.get(&letter).copied());
            // A token that is not in the alphabet stands for itself.
            let bytes: Option<Vec<u8>> = bytes.collect();
            bytes.unwrap_or_else(|| piece.as_bytes().to_vec())
        }
        Alphabet::SentencePiece => {
            let digits = piece
                .strip_prefix("<0x")
                .and_then(|rest| rest.strip_suffix('>'));
            let byte = digits.filter(|digits| digits.len() == 2);
            match byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                Some(byte) => vec![byte],
                None => piece.replace('\u{2581}', " ").into_bytes(),
            }
        }
    }
}
