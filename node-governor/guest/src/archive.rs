// SPDX-License-Identifier: Apache-2.0
//! The archive that the kernel unpacks as its first file system: cpio, format `newc`, as
//! `Documentation/driver-api/early-userspace/buffer-format.rst` of Linux lays it out.

use std::collections::BTreeSet;
use std::path::{Component, Path};

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;

/// The bytes of an archive, file by file.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    folders: BTreeSet<String>,
    entries: u32,
}

impl Archive {
    pub(crate) fn file(&mut self, path: &str, contents: &[u8]) {
        self.put(path, FILE, contents);
    }

    pub(crate) fn program(&mut self, path: &str, contents: &[u8]) {
        self.put(path, PROGRAM, contents);
    }

    pub(crate) fn folder(&mut self, path: &str) {
        let mut whole = String::new();
        for part in Path::new(path).components() {
            let Component::Normal(part) = part else {
                continue;
            };
            if !whole.is_empty() {
                whole.push('/');
            }
            whole.push_str(&part.to_string_lossy());
            if self.folders.insert(whole.clone()) {
                self.entry(&whole, FOLDER, &[]);
            }
        }
    }

    /// The whole archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn put(&mut self, path: &str, mode: u32, contents: &[u8]) {
        let path = path.trim_start_matches('/');
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder);
        }
        self.entry(path, mode, contents);
    }

    fn entry(&mut self, name: &str, mode: u32, contents: &[u8]) {
        self.entries += 1;
        let links = 1;
        let size = u32::try_from(contents.len()).expect("cpio's files are smaller than 4 GiB");
        let name_size = u32::try_from(name.len() + 1).expect("a path is short");
        // inode, mode, owner, group, links, time, size, four of devices, size of the name, checksum
        let fields = [
            self.entries,
            mode,
            0,
            0,
            links,
            0,
            size,
            0,
            0,
            0,
            0,
            name_size,
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        let whole = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(whole, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_once_and_before_what_is_in_them() {
        let mut archive = Archive::default();
        archive.file("/a/b/one", b"1");
        archive.file("a/b/two", b"2");
        let text = String::from_utf8(archive.finish()).unwrap();
        let places = ["a\0", "a/b\0", "a/b/one\0", "a/b/two\0", "TRAILER!!!\0"].map(|name| {
            let found: Vec<usize> = text.match_indices(name).map(|(at, _)| at).collect();
            found[0]
        });
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(text.matches("070701").count(), 5);
    }

    #[test]
    fn headers_and_contents_begin_at_multiples_of_four() {
        let mut archive = Archive::default();
        archive.program("odd", b"12345");
        let bytes = archive.finish();
        let at = |what: &[u8]| bytes.windows(what.len()).position(|window| window == what);
        assert_eq!(at(b"12345").unwrap() % 4, 0);
        assert_eq!(
            bytes[1..]
                .windows(6)
                .position(|window| window == b"070701")
                .unwrap()
                % 4,
            3
        );
        assert_eq!(bytes.len() % 4, 0);
    }
}
