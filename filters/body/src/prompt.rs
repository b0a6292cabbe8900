// SPDX-License-Identifier: Apache-2.0
//! The prompt of a request to a language model, as blocks: requests that begin alike have names that begin alike.
//!
//! Read are `/v1/completions` (`prompt`), `/v1/chat/completions` (`tools`, `messages`), `/v1/responses`
//! (`tools`, `instructions`, `input`), `/v1/embeddings` (`input`) and `/v1/messages` (`tools`, `system`, `messages`):
//! members of the body's object, whatever their order in it.
//!
//! ```text
//!  text(member) = its value's strings, unescaped, each with 0xff behind it; its numbers and words as written, likewise;
//!                 its brackets; its names, unescaped, each with 0xfe behind it; no white space, colon or comma
//!  chain(0) = 0         chain(n) = XXH64(the text's n-th full block; seed chain(n - 1))
//!  rest(member) = XXH64(the text behind its last full block; seed chain(last))
//!  seed = 0; for each member that has a text, in the order below, those that keep prompts apart first:
//!      name(n) = XXH64(chain(n); seed), as 16 hexadecimal digits, of all members but those, where the block ends a key
//!      seed = XXH64(rest(member); seed)
//! ```
//! A hash that is hashed again is 8 bytes, little endian. A member that comes twice has both texts. Of the blocks of
//! all members but those, counted from 1, those have a name that end a key ([`ends_key`]): 1 to 32, 34, 36 … 48, 52 … 272, so that 64 names
//! stand for 272 blocks. Of one member no more are read. For example, with blocks of 4 bytes,
//! `{"model":"m","prompt":"abcdefgh"}` has the names in the test `names_are_those_of_the_example`.
//!
//! So a name stands for the model (`model`, `lora_path`, `cache_salt`, `extra_key`), all members before its own, and its
//! own up to the block's end. What a language model keeps of prompts is like that (vLLM, *Automatic prefix caching*):
//! blocks of tokens, each of use only behind all before it. A block here is of bytes, as the filter has no tokenizer. An
//! adapter is named by `model`, or by `lora_path`.
//!
//! Members count in the order in which engines put them into the prompt, and this one is the order of
//! chat templates: tools, what the system says, then the conversation.

use weir_policy::{MAX_KEYS, ends_key};

use crate::chain::{Chain, NAME_END, VALUE_END, name};
use crate::json::{Container, Piece};

/// The first so many of [`MEMBERS`] are no text of the prompt, but say with whom an engine shares what it keeps of it:
/// the model, and an adapter, a salt (vLLM, SGLang: `cache_salt`) and a key (SGLang: `lora_path`, `extra_key`).
const APART: usize = 4;

/// Members of the body that make up the prompt, in its order; before them what keeps prompts apart.
const MEMBERS: [&[u8]; 10] = [
    b"model",
    b"lora_path",
    b"cache_salt",
    b"extra_key",
    b"tools",
    b"system",
    b"instructions",
    b"prompt",
    b"input",
    b"messages",
];

/// A prompt that is being read.
#[derive(Clone, Debug)]
pub(crate) struct Prompt {
    block_bytes: usize,
    depth: u8,
    /// Of the body's own member that is being read; more of it than any in [`MEMBERS`] has is not kept.
    name: Vec<u8>,
    /// Its place in [`MEMBERS`].
    member: Option<usize>,
    texts: [Text; MEMBERS.len()],
}

/// What has been read of a member.
#[derive(Clone, Debug, Default)]
struct Text {
    chain: Chain,
    blocks: Vec<u64>,
}

impl Prompt {
    pub(crate) fn new(block_bytes: usize) -> Self {
        Self {
            block_bytes: block_bytes.max(1),
            depth: 0,
            name: Vec::new(),
            member: None,
            texts: Default::default(),
        }
    }

    pub(crate) fn take(&mut self, piece: Piece<'_>) {
        match piece {
            // The body's own object, whose end is no part of any member.
            Piece::Begin(Container::Object) if self.depth == 0 => self.depth = 1,
            Piece::End(_) if self.depth == 1 => self.depth = 0,
            Piece::Name(part) if self.depth == 1 => {
                let longest = MEMBERS.iter().map(|name| name.len()).max().unwrap_or(0);
                let room = (longest + 1).saturating_sub(self.name.len());
                self.name.extend(part.iter().take(room));
            }
            Piece::NameEnd if self.depth == 1 => {
                self.member = MEMBERS.iter().position(|member| *member == self.name);
                self.name.clear();
            }
            Piece::Begin(container) => {
                self.depth = self.depth.saturating_add(1);
                self.text(match container {
                    Container::Object => b"{",
                    Container::Array => b"[",
                });
            }
            Piece::End(container) => {
                self.depth = self.depth.saturating_sub(1);
                self.text(match container {
                    Container::Object => b"}",
                    Container::Array => b"]",
                });
            }
            Piece::Name(part) | Piece::Text(part) | Piece::Scalar(part) => self.text(part),
            Piece::NameEnd => self.text(NAME_END),
            Piece::TextEnd | Piece::ScalarEnd => self.text(VALUE_END),
        }
    }

    fn text(&mut self, part: &[u8]) {
        let text = self.member.and_then(|member| self.texts.get_mut(member));
        if let Some(Text { chain, blocks }) = text {
            chain.extend(part, self.block_bytes, |_, block| blocks.push(block));
        }
    }

    /// The names of its full blocks that end a key.
    pub(crate) fn names(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        let mut seed = 0;
        let texts = self.texts.iter().enumerate();
        let all = texts.flat_map(move |(place, text)| {
            let of_member = seed;
            seed = text.chain.seed(seed);
            // What keeps prompts apart is part of every name, and none itself.
            let blocks = text.blocks.iter().filter(move |_| place >= APART);
            blocks.map(move |block| (*block, of_member))
        });
        let ends = (1..).zip(all).filter(|(number, _)| ends_key(*number));
        ends.take(MAX_KEYS)
            .map(|(_, (block, seed))| name(block, seed).to_vec())
    }
}
