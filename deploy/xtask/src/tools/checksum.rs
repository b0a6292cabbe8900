// SPDX-License-Identifier: Apache-2.0
//! SHA-256 sums of files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// A SHA-256 sum in lower-case hexadecimal.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "String")]
pub(super) struct Sum(String);

impl TryFrom<String> for Sum {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        ensure!(
            text.len() == 64 && text.bytes().all(hex),
            "`{text}` is not a SHA-256 sum (64 lower-case hexadecimal digits)"
        );
        Ok(Self(text))
    }
}

impl Sum {
    /// The sum of a file's bytes.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let context = || format!("reading {}", path.display());
        let mut file = File::open(path).with_context(context)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 1 << 20];
        loop {
            let count = file.read(&mut buffer).with_context(context)?;
            if count == 0 {
                break;
            }
            hasher.update(&buffer[..count]);
        }
        let hex = hasher
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Ok(Self(hex))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Fails, naming both sums, unless the file has this one.
    pub(super) fn check(&self, path: &Path) -> Result<()> {
        let found = Self::of(path)?;
        if found == *self {
            return Ok(());
        }
        bail!(
            "checksum mismatch for {}\n  expected sha256 {}\n  found    sha256 {}",
            path.file_name().unwrap_or_default().to_string_lossy(),
            self.0,
            found.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn the_sum_of_a_known_text_is_the_published_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "abc").unwrap();
        assert_eq!(Sum::of(file.path()).unwrap().0, OF_ABC);
    }

    #[test]
    fn a_mismatch_names_both_sums() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "abc").unwrap();
        let expected = Sum::try_from("0".repeat(64)).unwrap();
        let error = expected.check(file.path()).unwrap_err().to_string();
        assert!(
            error.contains(&"0".repeat(64)) && error.contains(OF_ABC),
            "{error}"
        );
    }
}
