// SPDX-License-Identifier: Apache-2.0
use std::fmt;

use siphasher::sip::SipHasher24;

use crate::KeyHash;

const BYTES: usize = 16;

/// Secret of 128 bits that a cluster's keys are hashed with: hashes are then SipHash-2-4 (Aumasson and
/// Bernstein, INDOCRYPT 2012), of which nobody without the salt can tell the key, not even by trying names.
#[derive(Clone, PartialEq, Eq)]
pub struct Salt([u8; BYTES]);

impl Salt {
    /// Reads 32 hexadecimal digits; none: it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 2 * BYTES {
            return None;
        }
        let mut salt = [0; BYTES];
        for (byte, pair) in salt.iter_mut().zip(digits.chunks_exact(2)) {
            for digit in pair {
                let value = char::from(*digit).to_digit(16)?;
                *byte = *byte << 4 | value as u8;
            }
        }
        Some(Self(salt))
    }

    /// Hash of no bytes: two sides that salt alike have the same.
    pub fn check(&self) -> KeyHash {
        self.hash(&[])
    }

    pub(crate) fn hash(&self, name: &[u8]) -> KeyHash {
        KeyHash(SipHasher24::new_with_key(&self.0).hash(name))
    }
}

impl fmt::Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of the test vectors in SipHash's reference implementation: 00 01 02 .. 0f.
    const TEXT: &str = "000102030405060708090a0b0c0d0e0f";

    #[test]
    fn hashes_are_those_of_the_reference_implementation() {
        let salt = Salt::parse(TEXT).unwrap();
        assert_eq!(salt.check(), KeyHash(0x726f_db47_dd0e_0e31));
        // Section "Test values" of the paper: the message is 00 01 02 .. 0e.
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(salt.hash(&message), KeyHash(0xa129_ca61_49be_45e5));
        assert_eq!(Salt::parse(&TEXT.to_uppercase()), Some(salt));
    }

    #[test]
    fn what_is_no_salt_is_none_and_a_salt_is_not_shown() {
        let short = &TEXT[1..];
        for text in ["", short, &format!("{short}g"), &format!("{TEXT}0"), "é"] {
            assert_eq!(Salt::parse(text), None, "{text}");
        }
        let shown = format!("{:?}", Salt::parse(TEXT));
        assert_eq!(shown, "Some(Salt(secret))");
    }
}
