// SPDX-License-Identifier: Apache-2.0
//! How much memory the system lets this process have.

use std::path::Path;

/// The least `memory.max` of a process' cgroup (version 2) and those above it; none where there is none.
/// `groups` is its `/proc/self/cgroup`, `root` where the file system is mounted.
fn memory_max(groups: &str, root: &Path) -> Option<usize> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let group = Path::new(group.trim_start_matches('/'));
    let limit = |group: &Path| {
        let text = std::fs::read_to_string(root.join(group).join("memory.max")).ok()?;
        // "max" is no number.
        text.trim().parse::<usize>().ok()
    };
    group.ancestors().filter_map(limit).min()
}

/// The same of this process.
pub(crate) fn own_memory_max() -> Option<usize> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    memory_max(&groups, Path::new("/sys/fs/cgroup"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_a_group_and_those_above_it_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        let max = |group: &str| memory_max(&format!("1:name=x:/\n0::{group}\n"), root.path());
        assert_eq!(max("/a/b"), None);
        std::fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(max("/a/b"), None);
        std::fs::write(root.path().join("a/memory.max"), "1000\n").unwrap();
        assert_eq!(max("/a/b"), Some(1000));
        std::fs::write(inner.join("memory.max"), "400\n").unwrap();
        assert_eq!(
            (max("/a/b"), max("/a"), max("/c")),
            (Some(400), Some(1000), None)
        );
        // As a container sees its own.
        std::fs::write(root.path().join("memory.max"), "300\n").unwrap();
        assert_eq!(max("/"), Some(300));
        assert_eq!(memory_max("2:memory:/a\n", root.path()), None);
    }
}
