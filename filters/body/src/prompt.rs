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
//!  seed = 0; for each member that has a text, in the order below, `model` first:
//!      name(n) = XXH64(chain(n); seed), as 16 hexadecimal digits, of all members but `model`
//!      seed = XXH64(rest(member); seed)
//! ```
//! A hash that is hashed again is 8 bytes, little endian. A member that comes twice has both texts. Of one member no
//! more than 64 blocks are read, and of a prompt no more than 64 names count. For example, with blocks of 4 bytes,
//! `{"model":"m","prompt":"abcdefgh"}` has the names in the test `names_are_those_of_the_example`.
//!
//! So a name stands for the model, all members before its own, and its own up to the block's end. What a language
//! model keeps of prompts is like that (vLLM, *Automatic prefix caching*): blocks of tokens, each of use only behind
//! all before it. A block here is of bytes, as the filter has no tokenizer. An adapter is named by `model`.
//!
//! Members count in the order in which engines put them into the prompt, and this one is the order of
//! chat templates: tools, what the system says, then the conversation.

use xxhash_rust::xxh64::{Xxh64, xxh64};

use crate::MAX_NAMES;
use crate::json::{Container, Piece};

/// Members of the body that make up the prompt, in its order; before them its model.
const MEMBERS: [&[u8]; 7] = [
    b"model",
    b"tools",
    b"system",
    b"instructions",
    b"prompt",
    b"input",
    b"messages",
];
/// Behind a member's name, a string, and a number or word. No byte of UTF-8.
const NAME_END: &[u8] = &[0xfe];
const VALUE_END: &[u8] = &[0xff];

/// A prompt that is being read.
#[derive(Clone, Debug)]
pub(crate) struct Prompt {
    block_bytes: usize,
    depth: u8,
    /// Of the body's own member that is being read; more of it than any in [`MEMBERS`] has is not kept.
    name: Vec<u8>,
    /// Its place in [`MEMBERS`].
    member: Option<usize>,
    chains: [Chain; MEMBERS.len()],
}

/// What has been read of a member.
#[derive(Clone)]
struct Chain {
    hash: Xxh64,
    /// Of the block that is being read.
    bytes: usize,
    blocks: Vec<u64>,
}

impl Prompt {
    pub(crate) fn new(block_bytes: usize) -> Self {
        Self {
            block_bytes: block_bytes.max(1),
            depth: 0,
            name: Vec::new(),
            member: None,
            chains: std::array::from_fn(|_| Chain {
                hash: Xxh64::new(0),
                bytes: 0,
                blocks: Vec::new(),
            }),
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
        let chain = self.member.and_then(|member| self.chains.get_mut(member));
        if let Some(chain) = chain {
            chain.extend(part, self.block_bytes);
        }
    }

    /// The names of its full blocks.
    pub(crate) fn names(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        let mut seed = 0;
        let blocks = self
            .chains
            .iter()
            .enumerate()
            .flat_map(move |(place, chain)| {
                let of_member = seed;
                seed = chain.seed(seed);
                // The model is part of every name, and none itself.
                let blocks = chain.blocks.iter().filter(move |_| place > 0);
                blocks.map(move |block| mixed(*block, of_member))
            });
        let names = blocks.map(|name| format!("{name:016x}").into_bytes());
        names.take(MAX_NAMES)
    }
}

impl Chain {
    fn extend(&mut self, mut text: &[u8], block_bytes: usize) {
        while !text.is_empty() && self.blocks.len() < MAX_NAMES {
            let room = block_bytes.saturating_sub(self.bytes);
            let (part, rest) = text.split_at_checked(room).unwrap_or((text, &[]));
            self.hash.update(part);
            self.bytes += part.len();
            if self.bytes == block_bytes {
                let block = self.hash.digest();
                self.blocks.push(block);
                self.hash = Xxh64::new(block);
                self.bytes = 0;
            }
            text = rest;
        }
    }

    /// What seeds the members behind this one, where that is what it was seeded with.
    fn seed(&self, seed: u64) -> u64 {
        match self.bytes == 0 && self.blocks.is_empty() {
            true => seed,
            false => mixed(self.hash.digest(), seed),
        }
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { bytes, blocks, .. } = self;
        write!(f, "Chain({} blocks, {bytes} bytes)", blocks.len())
    }
}

fn mixed(hash: u64, seed: u64) -> u64 {
    xxh64(&hash.to_le_bytes(), seed)
}
