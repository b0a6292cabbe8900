// SPDX-License-Identifier: Apache-2.0
//! Fields of an event, by their place or by their name.

use std::fmt;

use super::Malformed;
use super::reader::{Head, Reader};

/// A field of any kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    BlockHashes,
    ParentBlockHash,
    TokenIds,
    BlockSize,
    LoraId,
    Medium,
    LoraName,
    ExtraKeys,
    GroupIdx,
    SpecKind,
    SlidingWindow,
    CacheSalt,
    CopiesLeft,
    /// Not known here.
    Other,
}

impl Field {
    fn named(name: &[u8]) -> Self {
        match name {
            b"block_hashes" => Self::BlockHashes,
            b"parent_block_hash" => Self::ParentBlockHash,
            b"token_ids" => Self::TokenIds,
            b"block_size" => Self::BlockSize,
            b"lora_id" => Self::LoraId,
            b"medium" => Self::Medium,
            b"lora_name" => Self::LoraName,
            b"extra_keys" => Self::ExtraKeys,
            b"group_idx" => Self::GroupIdx,
            b"kv_cache_spec_kind" => Self::SpecKind,
            b"kv_cache_spec_sliding_window" => Self::SlidingWindow,
            b"cache_salt" => Self::CacheSalt,
            b"remaining_copy_counts" => Self::CopiesLeft,
            _ => Self::Other,
        }
    }
}

/// An event that is being read.
#[derive(Debug)]
pub(super) struct Fields<'r, 'a> {
    reader: &'r mut Reader<'a>,
    pub(super) kind: &'a [u8],
    /// Those that are still to be read.
    left: usize,
    /// Of an array, how many were read; none of a map.
    place: Option<usize>,
}

/// The name of a map's field that has the kind.
const TAG: &[u8] = b"type";

impl<'r, 'a> Fields<'r, 'a> {
    /// Reads the kind.
    pub(super) fn begin(reader: &'r mut Reader<'a>) -> Result<Self, Malformed> {
        match reader.head()? {
            Head::Array(values) => {
                let left = values
                    .checked_sub(1)
                    .ok_or(Malformed::Missing("an event's kind"))?;
                let Head::Text(kind) = reader.head()? else {
                    return Err(Malformed::Type("an event's kind"));
                };
                let place = Some(0);
                Ok(Self {
                    reader,
                    kind,
                    left,
                    place,
                })
            }
            Head::Map(pairs) => {
                let kind = kind(*reader, pairs)?;
                Ok(Self {
                    reader,
                    kind,
                    left: pairs,
                    place: None,
                })
            }
            _ => Err(Malformed::Type("an event")),
        }
    }

    /// The next field; `order` says which one it is in an array.
    pub(super) fn next_field(
        &mut self,
        order: &[Field],
    ) -> Result<Option<(Field, Value<'a>)>, Malformed> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let field = match &mut self.place {
            Some(place) => {
                let field = order.get(*place).copied().unwrap_or(Field::Other);
                *place += 1;
                field
            }
            None => match self.reader.head()? {
                Head::Text(name) => Field::named(name),
                _ => return Err(Malformed::Type("a field's name")),
            },
        };
        // Numbers have their own check, which passes over them as well.
        let value = self.reader.slice(|reader| match field {
            Field::BlockHashes => each(reader, "block_hashes", |head| hash(head).is_some()),
            Field::TokenIds => tokens(reader),
            _ => reader.skip(),
        })?;
        Ok(Some((field, Value(value))))
    }

    /// Leaves what is still to be read unread.
    pub(super) fn pass_over(&mut self) -> Result<(), Malformed> {
        while self.next_field(&[])?.is_some() {}
        Ok(())
    }
}

/// Msgspec writes it first. Whoever else writes a map may write it anywhere.
fn kind<'a>(mut reader: Reader<'a>, pairs: usize) -> Result<&'a [u8], Malformed> {
    for _ in 0..pairs {
        let Head::Text(name) = reader.head()? else {
            return Err(Malformed::Type("a field's name"));
        };
        if name == TAG {
            let Head::Text(kind) = reader.head()? else {
                return Err(Malformed::Type("an event's kind"));
            };
            return Ok(kind);
        }
        reader.skip()?;
    }
    Err(Malformed::Missing("an event's kind"))
}

/// Passes over an array all of whose values are as `is_one` says.
fn each(
    reader: &mut Reader<'_>,
    field: &'static str,
    is_one: impl Fn(Head<'_>) -> bool,
) -> Result<(), Malformed> {
    let values = reader.array().ok_or(Malformed::Type(field))?;
    for _ in 0..values {
        if !is_one(reader.head()?) {
            return Err(Malformed::Type(field));
        }
    }
    Ok(())
}

/// Passes over an array of tokens, each alone or before those that SGLang's cache is looked up by beside it.
fn tokens(reader: &mut Reader<'_>) -> Result<(), Malformed> {
    let wrong = Malformed::Type("token_ids");
    let values = reader.array().ok_or(wrong)?;
    for _ in 0..values {
        first_token(reader)?.ok_or(wrong)?;
    }
    Ok(())
}

/// The next token. With speculative decoding (EAGLE and the like) SGLang writes each with the one behind it
/// (`mem_cache/events.py`, `is_bigram`): a block's own are the first of each pair.
fn first_token(reader: &mut Reader<'_>) -> Result<Option<u32>, Malformed> {
    match reader.head()? {
        Head::Array(beside) if beside > 0 => {
            let first = token(reader.head()?);
            for _ in 1..beside {
                reader.skip()?;
            }
            Ok(first)
        }
        alone => Ok(token(alone)),
    }
}

/// The value of a field, which is whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'a>(Reader<'a>);

impl<'a> Value<'a> {
    fn head(mut self) -> Head<'a> {
        self.0.head().unwrap_or(Head::Other)
    }

    pub(super) fn is_nil(self) -> bool {
        self.head() == Head::Nil
    }

    pub(super) fn is_map(self) -> bool {
        matches!(self.head(), Head::Map(_))
    }

    pub(super) fn hashes(self) -> Result<List<'a>, Malformed> {
        self.list("block_hashes")
    }

    pub(super) fn tokens(self) -> Result<List<'a>, Malformed> {
        self.list("token_ids")
    }

    fn list(mut self, field: &'static str) -> Result<List<'a>, Malformed> {
        let values = self.0.array().ok_or(Malformed::Type(field))?;
        Ok(List {
            left: values,
            reader: self.0,
        })
    }

    pub(super) fn optional_list(self, field: &'static str) -> Result<Option<List<'a>>, Malformed> {
        match self.is_nil() {
            true => Ok(None),
            false => self.list(field).map(Some),
        }
    }

    pub(super) fn optional_hash(self) -> Result<Option<Hash<'a>>, Malformed> {
        let head = self.head();
        match hash(head) {
            None if head == Head::Nil => Ok(None),
            None => Err(Malformed::Type("parent_block_hash")),
            some => Ok(some),
        }
    }

    pub(super) fn optional_text(self, field: &'static str) -> Result<Option<&'a str>, Malformed> {
        match self.head() {
            Head::Nil => Ok(None),
            Head::Text(text) => match str::from_utf8(text) {
                Ok(text) => Ok(Some(text)),
                Err(_) => Err(Malformed::Type(field)),
            },
            _ => Err(Malformed::Type(field)),
        }
    }

    pub(super) fn optional_size(self, field: &'static str) -> Result<Option<u64>, Malformed> {
        match self.head() {
            Head::Nil => Ok(None),
            Head::Unsigned(number) => Ok(Some(number)),
            _ => Err(Malformed::Type(field)),
        }
    }

    pub(super) fn size(self) -> Result<usize, Malformed> {
        match self.head() {
            Head::Unsigned(number) => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
            _ => Err(Malformed::Type("block_size")),
        }
    }
}

/// The engine's name of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash<'a> {
    /// A number, and whether it is below 0: then its 64 bits are those of the signed one.
    Number(u64, bool),
    /// So many bytes, 32 of SHA-256.
    Bytes(&'a [u8]),
}

/// As callers write it: a number in decimal digits, bytes in hexadecimal ones.
impl fmt::Display for Hash<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(bits, true) => (*bits as i64).fmt(f),
            Self::Number(bits, false) => bits.fmt(f),
            // Eight at once: it is done for each block.
            Self::Bytes(bytes) => {
                let (eights, rest) = bytes.as_chunks::<8>();
                for eight in eights {
                    write!(f, "{:016x}", u64::from_be_bytes(*eight))?;
                }
                rest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

fn hash(head: Head<'_>) -> Option<Hash<'_>> {
    match head {
        Head::Unsigned(number) => Some(Hash::Number(number, false)),
        Head::Signed(number) => Some(Hash::Number(number as u64, true)),
        Head::Bytes(bytes) => Some(Hash::Bytes(bytes)),
        _ => None,
    }
}

fn token(head: Head<'_>) -> Option<u32> {
    match head {
        Head::Unsigned(number) => u32::try_from(number).ok(),
        _ => None,
    }
}

/// A list of values that were looked through.
#[derive(Clone, Copy, Debug, Default)]
pub struct List<'a> {
    left: usize,
    reader: Reader<'a>,
}

impl<'a> List<'a> {
    /// How many values are still to be read.
    pub fn len(&self) -> usize {
        self.left
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    #[inline]
    fn next_head(&mut self) -> Option<Head<'a>> {
        self.left = self.left.checked_sub(1)?;
        self.reader.head().ok()
    }

    /// The next one as a block's name.
    #[inline]
    pub fn next_hash(&mut self) -> Option<Hash<'a>> {
        self.next_head().and_then(hash)
    }

    /// The next one as a token.
    #[inline]
    pub fn next_token(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        first_token(&mut self.reader).ok().flatten()
    }

    /// Passes over so many tokens, or as many as there are.
    pub fn pass_over(&mut self, tokens: usize) {
        for _ in 0..tokens.min(self.left) {
            self.next_token();
        }
    }

    /// The next one as a number of copies.
    pub fn next_count(&mut self) -> Option<u64> {
        match self.next_head()? {
            Head::Unsigned(number) => Some(number),
            _ => None,
        }
    }

    /// Whether the next one, a block's list of what else it depends on, has nothing but the adapter's name in it.
    pub fn next_has_no_key_but(&mut self, adapter: Option<&str>) -> bool {
        match self.next_head() {
            Some(Head::Nil) | None => true,
            Some(Head::Array(keys)) => {
                let name = adapter.map(str::as_bytes);
                (0..keys).all(|_| match self.reader.head() {
                    Ok(Head::Text(key)) => Some(key) == name,
                    _ => false,
                })
            }
            _ => false,
        }
    }
}
