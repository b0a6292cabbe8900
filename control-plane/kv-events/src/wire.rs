// SPDX-License-Identifier: Apache-2.0
//! Batches of events as vLLM and SGLang write them: MessagePack.
//!
//! Nothing is copied and nothing is allocated: an event is a view of its bytes, so that no length in a message costs
//! memory. An event is read either way that engines have written it: as an array that begins with its kind, or as a
//! map with the kind under `type`. Fields that later versions add are passed over, and so are kinds.

mod fields;
mod reader;
#[cfg(test)]
mod tests;

use fields::{Field, Fields};
pub use fields::{Hash, List};
use reader::Reader;

/// Why bytes are no batch of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A value goes on behind the end.
    #[error("the message ends within a value")]
    Short,
    /// A value of another type than its field has.
    #[error("{0} is of another type")]
    Type(&'static str),
    /// A field that must be there.
    #[error("{0} is missing")]
    Missing(&'static str),
}

/// A batch, of which the events are still to be read.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    /// Unix time at which the engine made it, in seconds.
    pub at: f64,
    events: usize,
    reader: Reader<'a>,
}

/// What happened in the cache.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Blocks came.
    Stored(Stored<'a>),
    /// Blocks went.
    Removed(Removed<'a>),
    /// All went.
    Cleared,
    /// Of a kind that is not known here.
    Unknown,
}

/// Blocks that came, each behind the one before it.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    /// Their names.
    pub hashes: List<'a>,
    /// The block before the first of them; none where that begins a prompt.
    pub parent: Option<Hash<'a>>,
    /// The tokens of all of them.
    pub tokens: List<'a>,
    /// Tokens of each.
    pub block_tokens: usize,
    /// The adapter that they were computed with, where it has a name.
    pub adapter: Option<&'a str>,
    /// They were computed with an adapter, by its number.
    pub has_adapter_id: bool,
    /// What but tokens each depends on, where that is told.
    pub extra_keys: Option<List<'a>>,
    /// Only requests with the same salt find them.
    pub is_salted: bool,
    /// Where they are.
    pub place: Place<'a>,
    /// They are of layers that forget all but the last tokens.
    pub slides: bool,
}

/// Blocks that went.
#[derive(Clone, Copy, Debug)]
pub struct Removed<'a> {
    /// Their names.
    pub hashes: List<'a>,
    /// From where.
    pub place: Place<'a>,
    /// How many copies of each are left there, where that is told.
    pub copies_left: Option<List<'a>>,
}

/// A part of the engine's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// `GPU`, `CPU` and the like; none where there is one.
    pub medium: Option<&'a str>,
    /// Of a model whose layers keep blocks in several ways: which.
    pub group: Option<u64>,
}

impl Stored<'_> {
    /// Whether its tokens are those of all its blocks, one block after another.
    pub(crate) fn has_tokens_of_all(&self) -> bool {
        let all = self.hashes.len().checked_mul(self.block_tokens);
        self.block_tokens > 0 && all == Some(self.tokens.len())
    }
}

impl<'a> Batch<'a> {
    /// Reads what is before the events.
    ///
    /// # Errors
    /// It is no batch.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let fields = reader.array().ok_or(Malformed::Type("the batch"))?;
        if fields < 2 {
            return Err(Malformed::Missing("ts or events"));
        }
        let at = reader.number().ok_or(Malformed::Type("ts"))?;
        let events = reader.array().ok_or(Malformed::Type("events"))?;
        Ok(Self { at, events, reader })
    }

    /// The next event; none behind the last one.
    ///
    /// # Errors
    /// There is none, though there should be: what comes behind it cannot be read either.
    pub fn next_event(&mut self) -> Result<Option<Event<'a>>, Malformed> {
        if self.events == 0 {
            return Ok(None);
        }
        self.events -= 1;
        event(&mut self.reader).map(Some)
    }
}

fn event<'a>(reader: &mut Reader<'a>) -> Result<Event<'a>, Malformed> {
    let mut fields = Fields::begin(reader)?;
    match fields.kind {
        b"BlockStored" => stored(&mut fields).map(Event::Stored),
        b"BlockRemoved" => removed(&mut fields).map(Event::Removed),
        b"AllBlocksCleared" => fields.pass_over().map(|()| Event::Cleared),
        _ => fields.pass_over().map(|()| Event::Unknown),
    }
}

fn stored<'a>(fields: &mut Fields<'_, 'a>) -> Result<Stored<'a>, Malformed> {
    let (mut hashes, mut tokens, mut block_tokens) = (None, None, None);
    let mut stored = Stored {
        hashes: List::default(),
        parent: None,
        tokens: List::default(),
        block_tokens: 0,
        adapter: None,
        has_adapter_id: false,
        extra_keys: None,
        is_salted: false,
        place: Place::default(),
        slides: false,
    };
    const ORDER: [Field; 11] = [
        Field::BlockHashes,
        Field::ParentBlockHash,
        Field::TokenIds,
        Field::BlockSize,
        Field::LoraId,
        Field::Medium,
        Field::LoraName,
        Field::ExtraKeys,
        Field::GroupIdx,
        Field::SpecKind,
        Field::SlidingWindow,
    ];
    while let Some((field, value)) = fields.next_field(&ORDER)? {
        match field {
            Field::BlockHashes => hashes = Some(value.hashes()?),
            Field::ParentBlockHash => stored.parent = value.optional_hash()?,
            Field::TokenIds => tokens = Some(value.tokens()?),
            Field::BlockSize => block_tokens = Some(value.size()?),
            Field::LoraId => stored.has_adapter_id = !value.is_nil(),
            Field::Medium => stored.place.medium = value.optional_text("medium")?,
            // Of SGLang 0.5.18 to its pull request 37482, which has the salt there.
            Field::LoraName if value.is_map() => stored.is_salted = true,
            Field::LoraName => stored.adapter = value.optional_text("lora_name")?,
            Field::ExtraKeys => stored.extra_keys = value.optional_list("extra_keys")?,
            Field::GroupIdx => stored.place.group = value.optional_size("group_idx")?,
            Field::SlidingWindow => stored.slides = !value.is_nil(),
            Field::CacheSalt => stored.is_salted = !value.is_nil(),
            Field::SpecKind | Field::CopiesLeft | Field::Other => {}
        }
    }
    stored.hashes = hashes.ok_or(Malformed::Missing("block_hashes"))?;
    stored.tokens = tokens.ok_or(Malformed::Missing("token_ids"))?;
    stored.block_tokens = block_tokens.ok_or(Malformed::Missing("block_size"))?;
    Ok(stored)
}

fn removed<'a>(fields: &mut Fields<'_, 'a>) -> Result<Removed<'a>, Malformed> {
    const ORDER: [Field; 4] = [
        Field::BlockHashes,
        Field::Medium,
        Field::GroupIdx,
        Field::CopiesLeft,
    ];
    let (mut hashes, mut place, mut copies_left) = (None, Place::default(), None);
    while let Some((field, value)) = fields.next_field(&ORDER)? {
        match field {
            Field::BlockHashes => hashes = Some(value.hashes()?),
            Field::Medium => place.medium = value.optional_text("medium")?,
            Field::GroupIdx => place.group = value.optional_size("group_idx")?,
            Field::CopiesLeft => copies_left = value.optional_list("remaining_copy_counts")?,
            _ => {}
        }
    }
    Ok(Removed {
        hashes: hashes.ok_or(Malformed::Missing("block_hashes"))?,
        place,
        copies_left,
    })
}
