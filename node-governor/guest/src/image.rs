// SPDX-License-Identifier: Apache-2.0
//! The guest's first and only file system, in memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use weir_processes::command::Run;

use crate::archive::Archive;
use crate::parts::Parts;

const INIT: &str = include_str!("image/init");
const INITTAB: &str = include_str!("image/inittab");
const STEPS: &str = include_str!("image/steps");

/// What the guest boots into: busybox, the drivers of cpufreq, and the programs that are added.
pub struct Image {
    archive: Archive,
    libraries: Vec<PathBuf>,
}

impl Image {
    /// A guest that can run shell scripts.
    ///
    /// # Errors
    /// A part cannot be read.
    pub fn new(parts: &Parts) -> Result<Self> {
        let mut archive = Archive::default();
        archive.program("init", INIT.as_bytes());
        archive.program("bin/steps", STEPS.as_bytes());
        archive.file("etc/inittab", INITTAB.as_bytes());
        archive.program("bin/busybox", &read(&parts.busybox)?);
        for module in &parts.modules {
            let name = module.file_name().unwrap_or_default().to_string_lossy();
            archive.file(&format!("lib/drivers/{name}"), &read(module)?);
        }
        Ok(Self {
            archive,
            libraries: Vec::new(),
        })
    }

    /// Adds a program of this machine as `/bin/<its name>`, with the shared libraries that it needs:
    /// the very program that was built here runs there.
    ///
    /// # Errors
    /// It cannot be read, or a library that it needs is not on this machine.
    pub fn add_program(&mut self, path: &Path) -> Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.archive.program(&format!("bin/{name}"), &read(path)?);
        for library in libraries(path)? {
            if !self.libraries.contains(&library) {
                let place = library.to_string_lossy();
                self.archive.program(&place, &read(&library)?);
                self.libraries.push(library);
            }
        }
        Ok(())
    }

    /// Adds a file.
    pub fn add_file(&mut self, path: &str, contents: &[u8]) {
        self.archive.file(path, contents);
    }

    /// Writes the archive that the kernel unpacks.
    pub(crate) fn write(self, path: &Path) -> Result<()> {
        fs::write(path, self.archive.finish())
            .with_context(|| format!("writing {}", path.display()))
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading {}", path.display()))
}

/// The shared libraries of a program, by the dynamic linker's own account. A static one has none.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let listed = match Command::new("ldd").arg(program).captured() {
        Ok(listed) => listed,
        Err(error) if format!("{error:#}").contains("not a dynamic executable") => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    if listed.contains("not found") {
        anyhow::bail!("{} misses libraries here:\n{listed}", program.display());
    }
    Ok(parse_ldd(&listed))
}

/// Of `name => /path (address)` and `/path (address)` the paths; what the kernel provides has none.
fn parse_ldd(listed: &str) -> Vec<PathBuf> {
    listed
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(PathBuf::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_ldd_prints_the_paths_are_taken() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffe)\n\
                      \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n\
                      \tstatically linked\n";
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(parse_ldd(listed), expected.map(PathBuf::from));
    }
}
