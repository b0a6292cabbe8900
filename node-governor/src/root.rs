// SPDX-License-Identifier: Apache-2.0
//! Kernel files, under a root: `/` in production, a folder made for it in tests.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

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
}

/// The first line: attributes have one, and are no longer than a page.
pub(crate) fn line(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(4096)
        .read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
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
    fn lists_of_cores_are_read_as_the_kernel_writes_them() {
        assert_eq!(core_list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(core_list("2 0 1\n"), Some(vec![0, 1, 2]));
        assert_eq!(core_list(""), Some(vec![]));
        for bad in ["a", "3-1", "0-99999999", "-1", "1-"] {
            assert_eq!(core_list(bad), None, "{bad}");
        }
    }
}
