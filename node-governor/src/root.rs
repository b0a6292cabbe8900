// SPDX-License-Identifier: Apache-2.0
//! Kernel files, under a root: `/` in production, a folder made for it in tests.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::cores::Cores;

/// Where `sys` and `proc` are.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Root {
    /// `/` for the machine's own.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// A file under it; `name` has no slash in front.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// The machine's cores that are online.
    pub fn online(&self) -> io::Result<Cores> {
        let path = self.path("sys/devices/system/cpu/online");
        let named = |error| io::Error::other(format!("{}: {error}", path.display()));
        let text = line(&path).map_err(named)?;
        let list = core_list(&text).filter(|list| !list.is_empty());
        let list =
            list.ok_or_else(|| named(io::Error::other(format!("{text:?} names no cores"))))?;
        Ok(list.into_iter().collect())
    }
}

/// The first line: attributes have one, and are no longer than a page, which one read gives.
pub(crate) fn line(path: &Path) -> io::Result<String> {
    let mut bytes = [0; 4096];
    let read = std::fs::File::open(path)?.read(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes[..read]);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// A number that is alone on its line; none where the file says something else.
pub(crate) fn number(path: &Path) -> io::Result<Option<u32>> {
    Ok(line(path)?.parse().ok())
}

/// `0-3,8` or `0 1 2`, ascending, each once; none where it is neither.
pub(crate) fn core_list(text: &str) -> Option<Vec<u32>> {
    /// More than any kernel has (`CONFIG_NR_CPUS`).
    const MOST: u32 = 8192;
    let mut cores = Vec::new();
    for part in text.split([',', ' ', '\n']).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MOST {
            return None;
        }
        cores.extend(first..=last);
    }
    cores.sort_unstable();
    cores.dedup();
    Some(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_that_are_online_are_found_and_none_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let cpu = folder.path().join("sys/devices/system/cpu");
        std::fs::create_dir_all(&cpu).unwrap();
        let root = Root::new(folder.path());
        let error = root.online().unwrap_err().to_string();
        assert!(error.contains("cpu/online: No such file"), "{error}");
        std::fs::write(cpu.join("online"), "0-1,3\n").unwrap();
        assert_eq!(root.online().unwrap(), Cores::from([0, 1, 3]));
        std::fs::write(cpu.join("online"), "\n").unwrap();
        assert!(root.online().is_err());
    }

    #[test]
    fn lists_of_cores_are_read_as_the_kernel_writes_them() {
        assert_eq!(core_list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(core_list("2 0 1\n"), Some(vec![0, 1, 2]));
        assert_eq!(core_list(""), Some(vec![]));
        for bad in ["a", "3-1", "0-99999999", "-1", "1-"] {
            assert_eq!(core_list(bad), None, "{bad}");
        }
    }
}
