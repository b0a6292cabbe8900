// SPDX-License-Identifier: Apache-2.0
//! What a registry keeps: bytes, found by their sum.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Bytes of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    media_type: &'static str,
    bytes: Vec<u8>,
    /// The name that tools give the file when they fetch it.
    title: Option<&'static str>,
}

impl Blob {
    pub(crate) fn new(media_type: &'static str, bytes: Vec<u8>) -> Self {
        Self {
            media_type,
            bytes,
            title: None,
        }
    }

    /// JSON objects are sorted by key, so the same value has the same digest everywhere.
    pub(crate) fn json(media_type: &'static str, value: &Value) -> Self {
        Self::new(media_type, value.to_string().into_bytes())
    }

    pub(crate) fn titled(self, title: &'static str) -> Self {
        Self {
            title: Some(title),
            ..self
        }
    }

    /// What is kept.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// `sha256:` and the sum in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> String {
        digest(&self.bytes)
    }

    /// How others refer to it.
    pub(crate) fn descriptor(&self) -> Value {
        let mut descriptor = json!({
            "mediaType": self.media_type,
            "digest": self.digest(),
            "size": self.bytes.len(),
        });
        if let Some(title) = self.title {
            descriptor["annotations"] = json!({ "org.opencontainers.image.title": title });
        }
        descriptor
    }
}

/// `sha256:` and the sum of these bytes in hexadecimal.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    let sum = Sha256::digest(bytes);
    let hex: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_has_the_sum_and_the_size() {
        let blob = Blob::new("text/plain", b"abc".to_vec()).titled("abc.txt");
        let descriptor = blob.descriptor();
        // FIPS 180-2, appendix B.1.
        assert_eq!(
            descriptor["digest"],
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(descriptor["size"], 3);
        assert_eq!(
            descriptor["annotations"]["org.opencontainers.image.title"],
            "abc.txt"
        );
    }
}
