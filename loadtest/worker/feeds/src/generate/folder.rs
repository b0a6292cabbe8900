// SPDX-License-Identifier: Apache-2.0
//! The folder that projects are written to.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_whole_file::WholeFile;

use super::{GenerateError, Index};

/// Tells a folder of ours, even one whose making was cut short.
const MARK: &str = ".weir-feeds";
const INDEX: &str = "feeds.json";
const RULES: &str = "rules";

/// A folder for projects.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes the folder, or takes an empty one or one that was made here before. With `replace`, any.
    ///
    /// # Errors
    /// [`GenerateError::Foreign`] without `replace`; [`GenerateError::Io`].
    pub fn open(path: &Path, replace: bool) -> Result<Self, GenerateError> {
        let folder = Self(path.to_owned());
        fs::create_dir_all(path).map_err(at(path))?;
        let mut entries = fs::read_dir(path).map_err(at(path))?;
        let mark = path.join(MARK);
        if !replace && !mark.exists() && entries.next().is_some() {
            return Err(GenerateError::Foreign(folder.0));
        }
        fs::write(&mark, "").map_err(at(&mark))?;
        let rules = path.join(RULES);
        fs::create_dir_all(&rules).map_err(at(&rules))?;
        Ok(folder)
    }

    /// Removes the index, then the feeds and rules that are there, and nothing else.
    pub(super) fn clear(&self) -> Result<(), GenerateError> {
        let index = self.0.join(INDEX);
        match fs::remove_file(&index) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&index)(error)),
            _ => {}
        }
        remove(&self.0, &["parquet", "ndjson", "part"])?;
        remove(&self.0.join(RULES), &["json", "part"])
    }

    /// Writes a file so that it is there whole or not at all, and gives its size.
    pub(super) fn write(
        &self,
        name: &str,
        content: impl FnOnce(&mut WholeFile) -> io::Result<()>,
    ) -> Result<u64, GenerateError> {
        let path = self.0.join(name);
        let written = || {
            let mut out = WholeFile::create(&path)?;
            content(&mut out)?;
            out.finish()?;
            Ok(fs::metadata(&path)?.len())
        };
        written().map_err(at(&path))
    }

    /// One file for each of `bodies`; their names.
    pub(super) fn write_rules(
        &self,
        project: &str,
        bodies: &[Value],
    ) -> Result<Vec<String>, GenerateError> {
        let write = |(number, body): (usize, &Value)| {
            let name = format!("{project}-{}.json", number + 1);
            self.write_json(&format!("{RULES}/{name}"), body)?;
            Ok(name)
        };
        bodies.iter().enumerate().map(write).collect()
    }

    pub(super) fn write_index(&self, index: &Index) -> Result<(), GenerateError> {
        self.write_json(INDEX, index)
    }

    fn write_json(&self, name: &str, json: &impl serde::Serialize) -> Result<(), GenerateError> {
        self.write(name, |out| {
            serde_json::to_writer_pretty(&mut *out, json)?;
            out.write_all(b"\n")
        })?;
        Ok(())
    }
}

fn remove(folder: &Path, suffixes: &[&str]) -> Result<(), GenerateError> {
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        let suffix = path.extension().and_then(|suffix| suffix.to_str());
        if path.is_file() && suffix.is_some_and(|suffix| suffixes.contains(&suffix)) {
            fs::remove_file(&path).map_err(at(&path))?;
        }
    }
    Ok(())
}

fn at(file: &Path) -> impl Fn(io::Error) -> GenerateError {
    let file = file.to_owned();
    move |source| GenerateError::Io {
        file: file.clone(),
        source,
    }
}
