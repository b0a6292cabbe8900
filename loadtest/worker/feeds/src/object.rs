// SPDX-License-Identifier: Apache-2.0
//! One project's object in the store.

use std::sync::Arc;

use object_store::ObjectMeta;
use sha2::{Digest, Sha256};

use crate::error::StoreError;

/// Longest name of a project, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// How items are written down, told by the object's suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `.parquet`
    Parquet,
    /// `.ndjson`: one JSON object a line.
    Ndjson,
}

impl Format {
    /// In the order in which they are looked for.
    pub(crate) const ALL: [Self; 2] = [Self::Parquet, Self::Ndjson];

    /// The object's suffix, without the dot.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Ndjson => "ndjson",
        }
    }
}

/// A project's object as it was when it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The project.
    pub project: Arc<str>,
    /// Another number when the object is another: a digest of its ETag, time, size and path.
    pub version: u128,
    /// Size of the object, as stored.
    pub bytes: u64,
    /// How its items are written down.
    pub format: Format,
    pub(crate) meta: ObjectMeta,
}

impl Object {
    pub(crate) fn new(project: &str, format: Format, meta: ObjectMeta) -> Self {
        Self {
            project: project.into(),
            version: version(&meta),
            bytes: meta.size,
            format,
            meta,
        }
    }
}

/// The first 128 bits of SHA-256 over all that tells two states of an object apart. Each part is
/// preceded by its length, so that no two lists of parts read the same.
fn version(meta: &ObjectMeta) -> u128 {
    let time = meta.last_modified.timestamp_nanos_opt();
    let parts: [&[u8]; 5] = [
        meta.location.as_ref().as_bytes(),
        meta.e_tag.as_deref().unwrap_or_default().as_bytes(),
        meta.version.as_deref().unwrap_or_default().as_bytes(),
        &time.unwrap_or_default().to_le_bytes(),
        &meta.size.to_le_bytes(),
    ];
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let digest = digest.finalize();
    (digest.iter().take(16)).fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Whether `project` is 1 to 128 of `[A-Za-z0-9._-]` and starts with no dot: a name that is one
/// path segment everywhere and is written without escapes.
pub(crate) fn check_name(project: &str) -> Result<(), StoreError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let reason = if project.is_empty() {
        "a name has at least one character"
    } else if project.len() > MAX_NAME_BYTES {
        "a name has at most 128 bytes"
    } else if project.starts_with('.') {
        "a name starts with no dot"
    } else if !project.bytes().all(allowed) {
        "a name has only letters and digits of ASCII and the signs . _ -"
    } else {
        return Ok(());
    };
    let project = project.chars().take(MAX_NAME_BYTES).collect();
    Err(StoreError::BadProjectName { project, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta() -> ObjectMeta {
        ObjectMeta {
            location: "a/shop.parquet".into(),
            last_modified: Default::default(),
            size: 7,
            e_tag: Some("x".into()),
            version: None,
        }
    }

    #[test]
    fn a_version_changes_with_etag_size_path_and_time() {
        let same = version(&meta());
        assert_eq!(same, version(&meta()));
        let mut others = [meta(), meta(), meta(), meta(), meta()];
        others[0].e_tag = Some("y".into());
        others[1].size = 8;
        others[2].location = "b/shop.parquet".into();
        others[3].last_modified += std::time::Duration::from_nanos(1);
        (others[4].e_tag, others[4].version) = (None, Some("x".into()));
        for other in &others {
            assert_ne!(same, version(other), "{other:?}");
        }
    }

    #[test]
    fn names_that_are_one_plain_path_segment_pass_and_others_do_not() {
        for good in ["1", "shop-0001", "A.b_c", &"x".repeat(128)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            ".x",
            "a/b",
            "a\\b",
            "é",
            "a b",
            "a\n",
            "%2e",
            &"x".repeat(129),
        ] {
            let refused = check_name(bad);
            assert!(
                matches!(refused, Err(StoreError::BadProjectName { .. })),
                "{bad}"
            );
        }
    }
}
