// SPDX-License-Identifier: Apache-2.0
//! Ordered header maps and their serialized form.

/// Headers, trailers or gRPC metadata: ordered, names in lower case, values any bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, Vec<u8>)>);

impl Headers {
    /// No headers.
    pub fn new() -> Self {
        Self::default()
    }

    /// These headers and one more; for values that are not UTF-8.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.add(name, value.as_ref());
        self
    }

    /// The first value of a name as text (invalid UTF-8 replaced).
    pub fn get(&self, name: &str) -> Option<String> {
        self.get_bytes(name)
            .map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// The first value of a name.
    pub fn get_bytes(&self, name: &str) -> Option<&[u8]> {
        self.0
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.as_slice())
    }

    /// All values of a name as text, in order.
    pub fn all(&self, name: &str) -> Vec<String> {
        let named = self.0.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        named
            .map(|(_, v)| String::from_utf8_lossy(v).into_owned())
            .collect()
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// How many there are, repeated names counted each time.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, name: &str, value: &[u8]) {
        self.0.push((name.to_ascii_lowercase(), value.to_vec()));
    }

    /// Overwrites the first of that name and removes the others, or adds it.
    pub(crate) fn set(&mut self, name: &str, value: &[u8]) {
        let first = self
            .0
            .iter()
            .position(|(n, _)| n.eq_ignore_ascii_case(name));
        match first {
            None => self.add(name, value),
            Some(first) => {
                self.0[first].1 = value.to_vec();
                let mut at = 0;
                self.0.retain(|(n, _)| {
                    at += 1;
                    at - 1 <= first || !n.eq_ignore_ascii_case(name)
                });
            }
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
    }

    /// The count, then all sizes, then all names and values each ended by a zero (little endian).
    /// An empty map is empty.
    pub(crate) fn serialize(&self) -> Vec<u8> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let mut bytes = (self.0.len() as u32).to_le_bytes().to_vec();
        for (name, value) in &self.0 {
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend((value.len() as u32).to_le_bytes());
        }
        for (name, value) in &self.0 {
            bytes.extend(name.as_bytes());
            bytes.push(0);
            bytes.extend(value);
            bytes.push(0);
        }
        bytes
    }

    /// The inverse of [`serialize`](Self::serialize); what does not parse is empty, as in Envoy.
    pub(crate) fn deserialize(bytes: &[u8]) -> Self {
        Self::try_deserialize(bytes).unwrap_or_default()
    }

    fn try_deserialize(bytes: &[u8]) -> Option<Self> {
        let number =
            |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
        let count = number(0)?;
        let mut at = 4 + count.checked_mul(8)?;
        let mut headers = Self::new();
        for index in 0..count {
            let (name, value) = (number(4 + index * 8)?, number(8 + index * 8)?);
            let name_bytes = bytes.get(at..at + name)?;
            let value_bytes = bytes.get(at + name + 1..at + name + 1 + value)?;
            headers.add(&String::from_utf8_lossy(name_bytes), value_bytes);
            at += name + value + 2;
        }
        Some(headers)
    }
}

impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map()
            .entries(self.0.iter().map(|(n, v)| (n, String::from_utf8_lossy(v))))
            .finish()
    }
}

impl<V: AsRef<[u8]>> From<&[(&str, V)]> for Headers {
    fn from(pairs: &[(&str, V)]) -> Self {
        pairs.iter().fold(Self::new(), |headers, (name, value)| {
            headers.with(name, value)
        })
    }
}

impl<V: AsRef<[u8]>, const N: usize> From<&[(&str, V); N]> for Headers {
    fn from(pairs: &[(&str, V); N]) -> Self {
        Self::from(pairs.as_slice())
    }
}

impl<V: AsRef<[u8]>, const N: usize> From<[(&str, V); N]> for Headers {
    fn from(pairs: [(&str, V); N]) -> Self {
        Self::from(pairs.as_slice())
    }
}

impl<V: AsRef<[u8]>> From<Vec<(&str, V)>> for Headers {
    fn from(pairs: Vec<(&str, V)>) -> Self {
        Self::from(pairs.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::Headers;

    #[test]
    fn what_is_serialized_reads_back() {
        let headers =
            Headers::from(&[(":path", "/"), ("x", ""), ("x", "2")]).with("b", [0xff, 0x00]);
        assert_eq!(Headers::deserialize(&headers.serialize()), headers);
        assert_eq!(
            Headers::deserialize(&Headers::new().serialize()),
            Headers::new()
        );
    }

    #[test]
    fn a_map_that_does_not_parse_is_empty() {
        let mut bytes = Headers::from(&[("name", "value")]).serialize();
        bytes.truncate(14);
        assert!(Headers::deserialize(&bytes).is_empty());
        assert!(Headers::deserialize(&[0xff; 4]).is_empty());
    }

    #[test]
    fn setting_replaces_the_first_and_removes_the_rest() {
        let mut headers = Headers::from(&[("a", "1"), ("b", "2"), ("A", "3")]);
        headers.set("a", b"4");
        assert_eq!(headers, Headers::from(&[("a", "4"), ("b", "2")]));
    }
}
