// SPDX-License-Identifier: Apache-2.0
//! Whether uprobes can work here.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use weir_events::{FunctionId, Geometry};

use crate::Error;
use crate::kernel::Kernel;
use crate::symbol::{self, Ends, Pace, Site};

/// For cookies of probes; everything else that is used is older.
const OLDEST: (u32, u32) = (5, 15);

/// `PROC_PID_INIT_INO` in the kernel's include/linux/proc_ns.h: the host's own namespace of process ids.
const HOST: u64 = 0xEFFF_FFFC;

const FIRST: FunctionId = FunctionId::new(0).unwrap();

/// Tries whether uprobes can work here: loads the programs and attaches them to this process's own first
/// instruction, which it has passed already. Everything is gone again when it returns.
pub fn doctor() -> Result<(), Error> {
    ready()?;
    let (mut kernel, _memory) = Kernel::load(Geometry::default())?;
    let own = Path::new("/proc/self/exe");
    let site = Site {
        name: String::new(),
        offset: symbol::first_instruction(own)?,
        pace: Pace::Slow,
        // None: a program begins with its arguments where others have their return address, and whoever starts the
        // same file meanwhile would find the kernel's own there.
        ends: Ends::Instructions(Vec::new()),
    };
    kernel.attach(own, &site, FIRST, None)?;
    Ok(())
}

/// What can be told without asking the kernel to load anything.
pub(crate) fn ready() -> Result<(), Error> {
    let found = rustix::system::uname();
    let found = found.release().to_string_lossy();
    if version(&found).is_some_and(|version| version < OLDEST) {
        let found = found.into_owned();
        return Err(Error::Kernel { found });
    }
    let needed = [
        ("/sys/kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF"),
        (
            "/sys/bus/event_source/devices/uprobe/type",
            "CONFIG_UPROBE_EVENTS",
        ),
    ];
    for (missing, option) in needed {
        if !Path::new(missing).exists() {
            return Err(Error::Missing { missing, option });
        }
    }
    host_namespace().map(drop)
}

/// The kernel side names threads as the host does.
pub(crate) fn host_namespace() -> Result<u64, Error> {
    let own = std::fs::metadata("/proc/self/ns/pid").map(|file| file.ino());
    own.ok().filter(|own| *own == HOST).ok_or(Error::Namespace)
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_version_is_read_from_names_as_distributions_write_them() {
        assert_eq!(version("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(version("5.4.0-150-generic"), Some((5, 4)));
        assert_eq!(version("4.18"), Some((4, 18)));
        assert_eq!(version("6.1-rc3"), Some((6, 1)));
        assert_eq!(version("Linux"), None);
    }
}
