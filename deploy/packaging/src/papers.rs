// SPDX-License-Identifier: Apache-2.0
//! What accompanies a program or module: notices of what is linked into it, and its bill of materials.

use std::path::Path;

use anyhow::Result;

use crate::layer::Layer;
use crate::notices;
use crate::parts::Parts;
use crate::sbom::{self, Library};

/// Files by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Papers(Vec<(&'static str, String)>);

impl Papers {
    pub(crate) fn of(
        name: &str,
        version: &str,
        bytes: &[u8],
        parts: &Parts,
        libraries: &[Library],
    ) -> Self {
        let sbom = sbom::write(name, version, bytes, parts, libraries);
        Self(vec![
            ("NOTICES.txt", notices::write(name, version, parts)),
            ("sbom.cdx.json", sbom.to_string()),
            ("rust-standard-library.html", parts.standard_library.clone()),
        ])
    }

    /// Each with its name.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, text)| (*name, &**text))
    }

    /// Into a folder of an image.
    pub(crate) fn add(&self, folder: impl AsRef<Path>, layer: &mut Layer) -> Result<()> {
        for (name, text) in self.files() {
            layer.add(folder.as_ref().join(name), 0o644, text.as_bytes().to_vec())?;
        }
        Ok(())
    }
}
