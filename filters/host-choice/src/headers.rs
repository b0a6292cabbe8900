// SPDX-License-Identifier: Apache-2.0
//! A header map as the host hands it over. All of it costs the host little more than one value does: what is
//! dear is that it asks the module for memory, once a call.

/// The ABI's form: how many headers, the sizes of each name and value, then names and values with a NUL
/// behind each.
#[derive(Debug, Default)]
pub struct Headers(Vec<u8>);

impl Headers {
    /// Reads this form; where it is malformed, what comes after the fault is absent.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Takes the bytes out; there are no headers left.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    /// Names and values in order; names are in lower case.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let parts = self.0.split_first_chunk().and_then(|(count, rest)| {
            let count = u32::from_le_bytes(*count) as usize;
            rest.split_at_checked(count.checked_mul(8)?)
        });
        let (sizes, mut texts) = parts.unwrap_or_default();
        sizes.chunks_exact(8).map_while(move |sizes| {
            let (name_size, value_size) = sizes.split_first_chunk()?;
            let (name, rest) = text(texts, *name_size)?;
            let (value, rest) = text(rest, *value_size.first_chunk()?)?;
            texts = rest;
            Some((name, value))
        })
    }

    /// The first value of this name, in lower case; none where it is absent or empty.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let (_, value) = self.iter().find(|(known, _)| *known == name.as_bytes())?;
        Some(value).filter(|value| !value.is_empty())
    }

    /// What [`Headers::get`] finds of each of these names, in one pass. Inlined, so that names that are written in the
    /// code are compared by words: WebAssembly has no instruction for it, and what compares any two goes by bytes.
    #[inline(always)]
    pub fn get_each<const N: usize>(&self, names: [&str; N]) -> [Option<&[u8]>; N] {
        let mut values = [None; N];
        for (known, value) in self.iter() {
            for (name, place) in names.iter().zip(&mut values) {
                if known == name.as_bytes() {
                    place.get_or_insert(value);
                }
            }
        }
        values.map(|value| value.filter(|value| !value.is_empty()))
    }
}

/// This form, of names and values.
pub fn serialize<N: AsRef<[u8]>, V: AsRef<[u8]>>(headers: &[(N, V)]) -> Vec<u8> {
    let texts = headers.iter();
    let texts = texts.map(|(name, value)| name.as_ref().len() + value.as_ref().len());
    let mut bytes = Vec::with_capacity(4 + 10 * headers.len() + texts.sum::<usize>());
    bytes.extend((headers.len() as u32).to_le_bytes());
    for (name, value) in headers {
        bytes.extend((name.as_ref().len() as u32).to_le_bytes());
        bytes.extend((value.as_ref().len() as u32).to_le_bytes());
    }
    for (name, value) in headers {
        for text in [name.as_ref(), value.as_ref()] {
            bytes.extend(text);
            bytes.push(0);
        }
    }
    bytes
}

/// The first text of this size, and what follows its NUL.
fn text(texts: &[u8], size: [u8; 4]) -> Option<(&[u8], &[u8])> {
    let (text, rest) = texts.split_at_checked(u32::from_le_bytes(size) as usize)?;
    Some((text, rest.get(1..)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_header_of_a_name_is_found(
            headers in prop::collection::vec(("[a-d]{0,2}", prop::collection::vec(any::<u8>(), 0..4)), 0..8),
            name in "[a-d]{0,2}",
        ) {
            let map = Headers::new(serialize(&headers));
            let first = headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_slice());
            prop_assert_eq!(map.iter().count(), headers.len());
            prop_assert_eq!(map.get(&name), first.filter(|value| !value.is_empty()));
            let names = [&name, "a", ""];
            prop_assert_eq!(map.get_each(names), names.map(|name| map.get(name)));
        }

        #[test]
        fn what_is_cut_short_is_read_up_to_the_cut(
            headers in prop::collection::vec(("[a-d]{1,2}", prop::collection::vec(any::<u8>(), 1..4)), 1..8),
            cut in any::<prop::sample::Index>(),
        ) {
            let bytes = serialize(&headers);
            let map = Headers::new(bytes[..cut.index(bytes.len())].to_vec());
            for (name, value) in &headers {
                let known = headers.iter().find(|(known, _)| known == name).map(|(_, value)| value);
                prop_assert!(map.get(name).is_none_or(|found| Some(found) == known.map(Vec::as_slice)), "{value:?}");
            }
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), name in "[a-d]{0,2}") {
            Headers::new(bytes).get(&name);
        }
    }

    #[test]
    fn sizes_beyond_memory_are_no_headers() {
        let huge = [[1, 0, 0, 0], [0xff; 4], [0xff; 4], [b'a', 0, b'b', 0]].concat();
        for bytes in [huge, vec![0xff; 4], vec![]] {
            assert_eq!(Headers::new(bytes).iter().next(), None);
        }
    }
}
