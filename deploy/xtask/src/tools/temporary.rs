// SPDX-License-Identifier: Apache-2.0
//! Where a tool is put together before it is renamed into place.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A folder in the cache that goes away with the value.
pub(crate) struct Temporary(pub(crate) PathBuf);

impl Temporary {
    pub(crate) fn new(cache: &Path, name: &str) -> Result<Self> {
        let folder = cache.join(format!(".{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
