// SPDX-License-Identifier: Apache-2.0
//! Values of MessagePack, one after another, from bytes that nobody has looked at.

use rmp::Marker;

use super::Malformed;

/// What is still to be read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

/// A value without what is in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Head<'a> {
    Nil,
    Unsigned(u64),
    /// Below 0.
    Signed(i64),
    Float(f64),
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    Array(usize),
    /// So many names, and as many values.
    Map(usize),
    /// A word, or of a type of its own.
    Other,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The next value; of an array or map no more than its length.
    #[inline]
    pub(super) fn head(&mut self) -> Result<Head<'a>, Malformed> {
        let marker = self.array_of::<1>()?;
        let [marker] = marker;
        Ok(match Marker::from_u8(marker) {
            Marker::FixPos(n) => Head::Unsigned(n.into()),
            Marker::FixNeg(n) => Head::Signed(n.into()),
            Marker::U8 => Head::Unsigned(u8::from_be_bytes(self.array_of()?).into()),
            Marker::U16 => Head::Unsigned(u16::from_be_bytes(self.array_of()?).into()),
            Marker::U32 => Head::Unsigned(u32::from_be_bytes(self.array_of()?).into()),
            Marker::U64 => Head::Unsigned(u64::from_be_bytes(self.array_of()?)),
            Marker::I8 => signed(i8::from_be_bytes(self.array_of()?).into()),
            Marker::I16 => signed(i16::from_be_bytes(self.array_of()?).into()),
            Marker::I32 => signed(i32::from_be_bytes(self.array_of()?).into()),
            Marker::I64 => signed(i64::from_be_bytes(self.array_of()?)),
            Marker::F32 => Head::Float(f32::from_be_bytes(self.array_of()?).into()),
            Marker::F64 => Head::Float(f64::from_be_bytes(self.array_of()?)),
            Marker::Null => Head::Nil,
            Marker::True | Marker::False | Marker::Reserved => Head::Other,
            Marker::FixStr(n) => Head::Text(self.take(n.into())?),
            Marker::Str8 => Head::Text(self.sized::<1>()?),
            Marker::Str16 => Head::Text(self.sized::<2>()?),
            Marker::Str32 => Head::Text(self.sized::<4>()?),
            Marker::Bin8 => Head::Bytes(self.sized::<1>()?),
            Marker::Bin16 => Head::Bytes(self.sized::<2>()?),
            Marker::Bin32 => Head::Bytes(self.sized::<4>()?),
            Marker::FixArray(n) => Head::Array(n.into()),
            Marker::Array16 => Head::Array(self.length::<2>()?),
            Marker::Array32 => Head::Array(self.length::<4>()?),
            Marker::FixMap(n) => Head::Map(n.into()),
            Marker::Map16 => Head::Map(self.length::<2>()?),
            Marker::Map32 => Head::Map(self.length::<4>()?),
            Marker::FixExt1 => self.extension(1)?,
            Marker::FixExt2 => self.extension(2)?,
            Marker::FixExt4 => self.extension(4)?,
            Marker::FixExt8 => self.extension(8)?,
            Marker::FixExt16 => self.extension(16)?,
            Marker::Ext8 => self.sized_extension::<1>()?,
            Marker::Ext16 => self.sized_extension::<2>()?,
            Marker::Ext32 => self.sized_extension::<4>()?,
        })
    }

    /// Passes over a value and all that is in it. The depth costs nothing: what is to come is only counted.
    pub(super) fn skip(&mut self) -> Result<(), Malformed> {
        let mut left: usize = 1;
        while left > 0 {
            left -= 1;
            let inside = match self.head()? {
                Head::Array(values) => values,
                Head::Map(pairs) => pairs.saturating_mul(2),
                _ => 0,
            };
            left = left.saturating_add(inside);
        }
        Ok(())
    }

    /// The bytes that `read` goes through.
    pub(super) fn slice(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), Malformed>,
    ) -> Result<Self, Malformed> {
        let before = self.bytes;
        read(self)?;
        let passed = before.len().saturating_sub(self.bytes.len());
        Ok(Self::new(before.get(..passed).unwrap_or_default()))
    }

    /// The length of an array that comes next.
    pub(super) fn array(&mut self) -> Option<usize> {
        match self.head() {
            Ok(Head::Array(values)) => Some(values),
            _ => None,
        }
    }

    /// A number that comes next.
    pub(super) fn number(&mut self) -> Option<f64> {
        match self.head() {
            Ok(Head::Float(number)) => Some(number),
            Ok(Head::Unsigned(number)) => Some(number as f64),
            _ => None,
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(length)
            .ok_or(Malformed::Short)?;
        self.bytes = rest;
        Ok(taken)
    }

    #[inline]
    fn array_of<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(Malformed::Short)?;
        self.bytes = rest;
        Ok(*taken)
    }

    /// A length in so many bytes.
    fn length<const N: usize>(&mut self) -> Result<usize, Malformed> {
        let bytes = self.array_of::<N>()?;
        Ok(bytes.iter().fold(0, |n, byte| n << 8 | usize::from(*byte)))
    }

    fn sized<const N: usize>(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.length::<N>()?;
        self.take(length)
    }

    /// Its type is a byte before it.
    fn extension(&mut self, length: usize) -> Result<Head<'a>, Malformed> {
        self.take(length.saturating_add(1)).map(|_| Head::Other)
    }

    fn sized_extension<const N: usize>(&mut self) -> Result<Head<'a>, Malformed> {
        let length = self.length::<N>()?;
        self.extension(length)
    }
}

/// A number of a signed type has one form, whichever type it was written in.
fn signed(number: i64) -> Head<'static> {
    u64::try_from(number).map_or(Head::Signed(number), Head::Unsigned)
}
