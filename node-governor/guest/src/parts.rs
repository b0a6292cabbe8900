// SPDX-License-Identifier: Apache-2.0
//! Where the parts of a guest are: QEMU, its firmware, a kernel with its modules, busybox, `iasl`.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

/// Modules that the guest needs, by their path; those of other kernels may be built in and need no file.
pub(crate) const MODULES: [&str; 6] = [
    "drivers/cpufreq/acpi-cpufreq",
    "drivers/cpufreq/cpufreq_userspace",
    "drivers/cpufreq/cpufreq_powersave",
    "drivers/cpufreq/cpufreq_ondemand",
    "drivers/cpufreq/cpufreq_conservative",
    "net/sched/sch_htb",
];

/// What a guest is made of. Each is looked for in the folder of unpacked packages, then on the
/// machine itself.
#[derive(Debug)]
pub struct Parts {
    pub(crate) qemu: PathBuf,
    pub(crate) iasl: PathBuf,
    pub(crate) busybox: PathBuf,
    pub(crate) kernel: PathBuf,
    pub(crate) modules: Vec<PathBuf>,
    roots: [PathBuf; 2],
}

impl Parts {
    /// Finds them by `WEIR_GUEST_DIR`, which `cargo xtask test` sets where they can be had; none
    /// where it is not set.
    ///
    /// # Errors
    /// A part is missing: says which.
    pub fn find() -> Result<Option<Self>> {
        env::var_os("WEIR_GUEST_DIR")
            .map(|folder| Self::of([PathBuf::from(folder), PathBuf::from("/")]))
            .transpose()
    }

    fn of(roots: [PathBuf; 2]) -> Result<Self> {
        let file = |choices: &[&str]| {
            roots
                .iter()
                .flat_map(|root| choices.iter().map(move |path| root.join(path)))
                .find(|path| path.is_file())
                .ok_or_else(|| anyhow!("there is no {} in {}", choices[0], roots[0].display()))
        };
        let qemu = file(&["usr/bin/qemu-system-x86_64"])?;
        let iasl = file(&["usr/bin/iasl"])?;
        let busybox = file(&["bin/busybox", "usr/bin/busybox"])?;
        let (kernel, modules) = roots
            .iter()
            .find_map(|root| kernel(root))
            .with_context(|| format!("there is no kernel in {}", roots[0].display()))?;
        Ok(Self {
            qemu,
            iasl,
            busybox,
            kernel,
            modules,
            roots,
        })
    }

    /// Folders of shared libraries that the programs need.
    pub(crate) fn libraries(&self) -> OsString {
        let folder = &self.roots[0];
        let folders =
            ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|path| folder.join(path));
        env::join_paths(folders).unwrap_or_default()
    }

    /// Folders of QEMU's own loadable parts.
    pub(crate) fn qemu_modules(&self) -> Option<PathBuf> {
        self.folder("usr/lib/x86_64-linux-gnu/qemu")
    }

    /// Folders of QEMU's firmware.
    pub(crate) fn firmware(&self) -> impl Iterator<Item = PathBuf> {
        ["usr/share/seabios", "usr/share/qemu"]
            .into_iter()
            .filter_map(|path| self.folder(path))
    }

    fn folder(&self, path: &str) -> Option<PathBuf> {
        let mut places = self.roots.iter().map(|root| root.join(path));
        places.find(|place| place.is_dir())
    }
}

/// The newest kernel of a root that has modules too.
fn kernel(root: &Path) -> Option<(PathBuf, Vec<PathBuf>)> {
    let mut kernels: Vec<PathBuf> = fs::read_dir(root.join("boot"))
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    kernels.sort();
    kernels.into_iter().rev().find_map(|kernel| {
        let release = kernel.file_name()?.to_str()?.strip_prefix("vmlinuz-")?;
        let drivers = root.join(format!("lib/modules/{release}/kernel"));
        let modules: Vec<PathBuf> = MODULES
            .iter()
            .map(|name| drivers.join(format!("{name}.ko")))
            .filter(|path| path.is_file())
            .collect();
        (!modules.is_empty()).then_some((kernel, modules))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn put(root: &Path, path: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }

    fn find(folder: &TempDir, machine: &TempDir) -> Result<Parts> {
        Parts::of([folder.path().into(), machine.path().into()])
    }

    #[test]
    fn parts_of_the_machine_stand_in_for_those_that_were_not_unpacked() {
        let (folder, machine) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        put(machine.path(), "usr/bin/qemu-system-x86_64");
        put(machine.path(), "usr/bin/iasl");
        put(machine.path(), "usr/bin/busybox");
        put(folder.path(), "usr/bin/iasl");
        let missing = find(&folder, &machine).unwrap_err().to_string();
        assert!(missing.contains("no kernel"), "{missing}");
        put(folder.path(), "boot/vmlinuz-6.1");
        put(folder.path(), "boot/vmlinuz-6.2");
        put(
            folder.path(),
            "lib/modules/6.1/kernel/drivers/cpufreq/acpi-cpufreq.ko",
        );
        let parts = find(&folder, &machine).unwrap();
        assert!(parts.iasl.starts_with(folder.path()));
        assert!(parts.qemu.starts_with(machine.path()));
        // Of 6.2 there are no modules.
        assert!(parts.kernel.ends_with("boot/vmlinuz-6.1"));
    }

    #[test]
    fn a_missing_part_is_named() {
        let empty = TempDir::new().unwrap();
        let missing = find(&empty, &empty).unwrap_err().to_string();
        assert!(missing.contains("usr/bin/qemu-system-x86_64"), "{missing}");
    }
}
