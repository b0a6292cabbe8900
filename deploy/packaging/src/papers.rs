// SPDX-License-Identifier: Apache-2.0
//! What accompanies a program or module: notices of what is linked into it, and its bill of materials.

use std::path::Path;

use anyhow::Result;

use crate::layer::Layer;
use crate::notices;
use crate::parts::Parts;
use crate::sbom::{self, Library};

const SBOM: &str = "sbom.cdx.json";

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
            (SBOM, sbom.to_string()),
            ("rust-standard-library.html", parts.standard_library.clone()),
        ])
    }

    /// The bill of materials alone.
    #[must_use]
    pub fn sbom(&self) -> &str {
        let found = self.files().find(|(name, _)| *name == SBOM);
        found.map_or("", |(_, text)| text)
    }

    /// Each with its name.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, text)| (*name, &**text))
    }

    /// Into a folder of a layer.
    ///
    /// # Errors
    /// It has such files already.
    pub fn add(&self, folder: impl AsRef<Path>, layer: &mut Layer) -> Result<()> {
        for (name, text) in self.files() {
            layer.add(folder.as_ref().join(name), 0o644, text.as_bytes().to_vec())?;
        }
        Ok(())
    }
}
