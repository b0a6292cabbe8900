// SPDX-License-Identifier: Apache-2.0
//! A layer: files by path, as a tar that is the same on every machine and day.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// Files of a layer, by their path in the image.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    files: BTreeMap<PathBuf, File>,
}

#[derive(Clone, Debug)]
struct File {
    mode: u32,
    bytes: Vec<u8>,
}

impl Layer {
    /// Adds a file of root's, with its permissions.
    ///
    /// # Errors
    /// The path is not a plain relative one, or there is such a file already.
    pub fn add(&mut self, path: impl AsRef<Path>, mode: u32, bytes: Vec<u8>) -> Result<()> {
        let path = path.as_ref();
        let plain = path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        ensure!(
            plain && path.file_name().is_some(),
            "{} is not a path inside an image",
            path.display()
        );
        let before = self.files.insert(path.into(), File { mode, bytes });
        ensure!(before.is_none(), "{} is there twice", path.display());
        Ok(())
    }

    /// Writes the files below a folder, with their permissions.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        for (path, file) in &self.files {
            let path = folder.join(path);
            let context = || format!("writing {}", path.display());
            for above in path
                .ancestors()
                .skip(1)
                .take_while(|above| above.starts_with(folder))
            {
                fs::create_dir_all(above).with_context(context)?;
                fs::set_permissions(above, Permissions::from_mode(0o755)).with_context(context)?;
            }
            fs::write(&path, &file.bytes).with_context(context)?;
            fs::set_permissions(&path, Permissions::from_mode(file.mode)).with_context(context)?;
        }
        Ok(())
    }

    /// Bytes of all files together.
    #[must_use]
    pub fn size(&self) -> usize {
        self.files.values().map(|file| file.bytes.len()).sum()
    }

    /// The tar: folders before what is in them, all in one order, of root's and of one time, in seconds since 1970.
    ///
    /// # Errors
    /// A path is too long for a tar.
    pub fn tar(&self, time: u64) -> Result<Vec<u8>> {
        let mut builder = Builder::new(Vec::new());
        let mut folders = BTreeSet::new();
        for (path, file) in &self.files {
            let mut above: Vec<_> = path.ancestors().skip(1).collect();
            above.pop();
            for folder in above.into_iter().rev() {
                if folders.insert(folder) {
                    let mut header = header(EntryType::Directory, 0o755, 0, time);
                    append(&mut builder, &mut header, folder, &[])?;
                }
            }
            let mut header = header(EntryType::Regular, file.mode, file.bytes.len(), time);
            append(&mut builder, &mut header, path, &file.bytes)?;
        }
        builder.into_inner().context("ending a tar")
    }
}

fn header(kind: EntryType, mode: u32, size: usize, time: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size as u64);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(time);
    header
}

fn append(
    builder: &mut Builder<Vec<u8>>,
    header: &mut Header,
    path: &Path,
    bytes: &[u8],
) -> Result<()> {
    builder
        .append_data(header, path, bytes)
        .with_context(|| format!("packing {}", path.display()))
}

/// With neither a name nor a time in the header.
///
/// # Errors
/// None that a buffer in memory can have.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut writer = GzBuilder::new().write(Vec::new(), Compression::default());
    writer.write_all(bytes).context("compressing a layer")?;
    writer.finish().context("compressing a layer")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use proptest::prelude::*;
    use tar::Archive;

    use super::*;

    /// Paths and contents of the files in a tar, in its order.
    fn unpacked(tar: &[u8]) -> Vec<(PathBuf, Vec<u8>)> {
        let mut archive = Archive::new(tar);
        let entries = archive.entries().unwrap().map(Result::unwrap);
        entries
            .filter(|entry| entry.header().entry_type().is_file())
            .map(|mut entry| {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).unwrap();
                (entry.path().unwrap().into_owned(), bytes)
            })
            .collect()
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_out_whatever_the_order(
            files in prop::collection::btree_map("[a-z]{1,8}/[a-z]{1,8}", any::<Vec<u8>>(), 0..6),
        ) {
            let (mut one, mut other) = (Layer::default(), Layer::default());
            for (path, bytes) in &files {
                one.add(path, 0o644, bytes.clone()).unwrap();
            }
            for (path, bytes) in files.iter().rev() {
                other.add(path, 0o644, bytes.clone()).unwrap();
            }
            let tar = one.tar(0).unwrap();
            prop_assert_eq!(&tar, &other.tar(0).unwrap());
            let expected: Vec<_> = files.into_iter().map(|(path, bytes)| (path.into(), bytes)).collect();
            prop_assert_eq!(unpacked(&tar), expected);
        }

        #[test]
        fn what_is_compressed_comes_out(bytes: Vec<u8>) {
            let mut out = Vec::new();
            GzDecoder::new(&*gzip(&bytes).unwrap()).read_to_end(&mut out).unwrap();
            prop_assert_eq!(out, bytes);
        }
    }

    #[test]
    fn nothing_tells_by_whom_or_when_but_the_time_that_is_given() {
        let mut layer = Layer::default();
        layer.add("usr/bin/x", 0o755, b"x".to_vec()).unwrap();
        let tar = layer.tar(7).unwrap();
        let mut archive = Archive::new(&*tar);
        let mut paths = Vec::new();
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!(header.mtime().unwrap(), 7);
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            paths.push(entry.path().unwrap().display().to_string());
        }
        assert_eq!(paths, ["usr", "usr/bin", "usr/bin/x"]);
        // RFC 1952, 2.3.1: bytes 4 to 8 are the time.
        assert_eq!(&gzip(&tar).unwrap()[4..8], [0; 4]);
    }

    #[test]
    fn a_path_out_of_the_image_is_refused() {
        let mut layer = Layer::default();
        for path in ["/etc/passwd", "../x", "", "a/../../b"] {
            let error = layer.add(path, 0o644, Vec::new()).unwrap_err();
            assert!(error.to_string().contains("not a path inside"), "{error}");
        }
        layer.add("a", 0o644, Vec::new()).unwrap();
        let error = layer.add("a", 0o644, Vec::new()).unwrap_err();
        assert!(error.to_string().contains("there twice"), "{error}");
    }
}
