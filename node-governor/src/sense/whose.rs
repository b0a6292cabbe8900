// SPDX-License-Identifier: Apache-2.0
//! Whose hot functions count, of those that the kernel sees: it sees every process that runs the file, also those of
//! other services and containers.
//!
//! A process is asked for by `/proc/PID/cgroup` when its thread takes a lane, and not in the kernel: eBPF knows the
//! cgroups of version 2 alone.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use crate::config::Uprobe;
use crate::root::Root;
use crate::sensed::FUNCTIONS;

/// A set of functions: bit n for function n.
pub(super) type Functions = u16;

/// Longer than the paths of all hierarchies of version 1, each of which is a page at most in practice.
const MOST: u64 = 64 << 10;

/// Which functions count in which cgroup.
#[derive(Debug)]
pub(super) struct Whose {
    proc: PathBuf,
    /// Of each probe; without a cgroup it is for every process.
    probes: Vec<(Functions, Option<String>)>,
    text: Vec<u8>,
}

impl Whose {
    /// None where everybody's count.
    pub(super) fn new(uprobes: &[Uprobe], root: &Root) -> Option<Self> {
        let probe = |uprobe: &Uprobe| {
            let function = 1 << (uprobe.probe.function.index() % FUNCTIONS);
            (function, uprobe.cgroup.clone())
        };
        let any = uprobes.iter().any(|uprobe| uprobe.cgroup.is_some());
        any.then(|| Self {
            proc: root.path("proc"),
            probes: uprobes.iter().map(probe).collect(),
            text: Vec::new(),
        })
    }

    /// Those of this process that count. Of one that cannot be asked for, only those that count of everybody.
    pub(super) fn functions(&mut self, pid: u32) -> Functions {
        self.text.clear();
        let path = self.proc.join(pid.to_string()).join("cgroup");
        let read = File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut self.text));
        if read.is_err() {
            self.text.clear();
        }
        let counts = |(_, cgroup): &&(Functions, Option<String>)| {
            cgroup
                .as_deref()
                .is_none_or(|cgroup| is_in(&self.text, cgroup))
        };
        let probes = self.probes.iter().filter(counts);
        probes.fold(0, |all, (function, _)| all | function)
    }
}

/// Whether the process is in this cgroup or in one below it, in any hierarchy. Lines are `4:freezer:/a/b`, of version
/// 2 `0::/a/b`; `man 7 cgroups`.
fn is_in(text: &[u8], cgroup: &str) -> bool {
    text.split(|byte| *byte == b'\n').any(|line| {
        let path = line.splitn(3, |byte| *byte == b':').nth(2);
        let rest = path.and_then(|path| path.strip_prefix(b"/")?.strip_prefix(cgroup.as_bytes()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_events::FunctionId;
    use weir_uprobe::Probe;

    use super::*;

    fn uprobe(function: u8, cgroup: Option<&str>) -> Uprobe {
        Uprobe {
            probe: Probe {
                function: FunctionId::new(function).unwrap(),
                binary: "/bin/true".into(),
                symbol: "main".into(),
                process: None,
                no_unwinding: false,
            },
            cgroup: cgroup.map(str::to_owned),
        }
    }

    #[test]
    fn a_function_counts_in_its_cgroup_and_below_and_of_nobody_who_cannot_be_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        for (pid, text) in [
            (1, "0::/system.slice/search.service\n"),
            (
                2,
                "12:cpuset:/\n1:name=systemd:/system.slice/search.service/worker\n0::/\n",
            ),
            (3, "0::/system.slice/search.service-2\n"),
            (4, "0::/kubepods/pod1/system.slice/search.service\n"),
        ] {
            let place = folder.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("cgroup"), text).unwrap();
        }
        let service = Some("system.slice/search.service");
        let probes = [
            uprobe(0, service),
            uprobe(3, Some("kubepods")),
            uprobe(15, None),
        ];
        let mut whose = Whose::new(&probes, &root).unwrap();
        let counts = [1, 2, 3, 4, 5].map(|pid| whose.functions(pid));
        const ALL: Functions = 1 << 15;
        assert_eq!(counts, [ALL | 1, ALL | 1, ALL, ALL | 1 << 3, ALL]);
        assert!(Whose::new(&[uprobe(0, None)], &root).is_none());
    }

    proptest! {
        #[test]
        fn whatever_stands_there_only_a_whole_path_is_a_cgroup(
            above in "[a-z/:\n]{0,12}", name in "[a-z]{1,6}", below in "[a-z/:\n]{0,12}",
        ) {
            let text = format!("0::/{above}{name}{below}\n");
            let wanted = text.lines().any(|line| {
                let path = line.splitn(3, ':').nth(2).unwrap_or_default();
                path.strip_prefix('/').is_some_and(|path| path.split('/').next() == Some(&name))
            });
            prop_assert_eq!(is_in(text.as_bytes(), &name), wanted);
        }
    }
}
