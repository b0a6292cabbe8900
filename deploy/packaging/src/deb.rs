// SPDX-License-Identifier: Apache-2.0
//! A package for Debian and what descends from it, packed by `dpkg-deb`.
//!
//! <https://www.debian.org/doc/debian-policy/ch-controlfields.html>

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::layer::Layer;

/// Files of a package and what is said of them.
#[derive(Clone, Debug)]
pub struct Package {
    /// As `apt` calls it.
    pub name: &'static str,
    /// As Cargo writes it.
    pub version: String,
    /// The architecture that its programs are for, in Rust's words.
    pub arch: &'static str,
    /// In one line.
    pub summary: &'static str,
    /// What is said below that, a line each.
    pub description: &'static [&'static str],
    /// Packages that have to be there, with their oldest versions.
    pub depends: String,
    /// By their path below `/`.
    pub files: Layer,
    /// Those that are an operator's once they are installed: an upgrade asks before it replaces one.
    pub settings: &'static [&'static str],
    /// `postinst` and the like, each with its text.
    pub scripts: Vec<(&'static str, String)>,
}

impl Package {
    /// As Debian names such files.
    ///
    /// # Errors
    /// There is no Debian for the architecture.
    pub fn file_name(&self) -> Result<String> {
        let version = version(&self.version);
        Ok(format!(
            "{}_{version}_{}.deb",
            self.name,
            architecture(self.arch)?
        ))
    }

    /// Packs it into a folder, and returns its path. No file is of later than this time, in seconds since 1970.
    ///
    /// # Errors
    /// `dpkg-deb` is missing or finds a fault, or a file cannot be written.
    pub fn write(&self, folder: &Path, time: u64) -> Result<PathBuf> {
        let file = folder.join(self.file_name()?);
        let staged = folder.join(format!(".{}", self.name));
        if staged.exists() {
            fs::remove_dir_all(&staged)
                .with_context(|| format!("removing {}", staged.display()))?;
        }
        self.staged()?.write(&staged)?;
        let output = Command::new("dpkg-deb")
            // Ubuntu's own choice is one that older Debians cannot unpack.
            .args(["--root-owner-group", "-Zxz", "--build"])
            .args([&staged, &file])
            .env("SOURCE_DATE_EPOCH", time.to_string())
            .output()
            .context("starting `dpkg-deb`, which packs for Debian")?;
        ensure!(
            output.status.success(),
            "`dpkg-deb` ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
        fs::remove_dir_all(&staged).with_context(|| format!("removing {}", staged.display()))?;
        Ok(file)
    }

    /// With what `dpkg-deb` reads.
    fn staged(&self) -> Result<Layer> {
        let mut files = self.files.clone();
        files.add("DEBIAN/control", 0o644, self.control()?.into_bytes())?;
        let settings: String = self
            .settings
            .iter()
            .map(|path| format!("/{path}\n"))
            .collect();
        files.add("DEBIAN/conffiles", 0o644, settings.into_bytes())?;
        for (name, text) in &self.scripts {
            let script = Path::new("DEBIAN").join(name);
            files.add(script, 0o755, text.clone().into_bytes())?;
        }
        Ok(files)
    }

    fn control(&self) -> Result<String> {
        let description: String = self
            .description
            .iter()
            .map(|line| format!(" {line}\n"))
            .collect();
        Ok(format!(
            "Package: {}\nVersion: {}\nArchitecture: {}\nMaintainer: Weir <weir@localhost>\n\
             Installed-Size: {}\nDepends: {}\nSection: net\nPriority: optional\nDescription: {}\n{description}",
            self.name,
            version(&self.version),
            architecture(self.arch)?,
            self.files.size().div_ceil(1024),
            self.depends,
            self.summary
        ))
    }
}

/// The libraries that a program of Rust wants of Debian: the C library that has every symbol.
///
/// # Errors
/// It names no version of the C library: it is static, or no program.
pub fn libraries(program: &[u8]) -> Result<String> {
    let (major, minor) = newest_of_c_library(program).context("no version of glibc is wanted")?;
    Ok(format!("libc6 (>= {major}.{minor}), libgcc-s1"))
}

/// Of the names of versions in a program, as `GLIBC_2.34`.
fn newest_of_c_library(program: &[u8]) -> Option<(u32, u32)> {
    const NAME: &[u8] = b"GLIBC_";
    let ends = (0..program.len()).filter(|at| program[*at..].starts_with(NAME));
    let versions = ends.filter_map(|at| {
        let rest = &program[at + NAME.len()..];
        let is_part = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
        let version: Vec<u8> = rest.iter().take_while(is_part).copied().collect();
        let version = String::from_utf8(version).ok()?;
        let mut numbers = version.split('.').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    versions.max()
}

/// 1.0.0-rc.1 is before 1.0.0, which Debian writes with a tilde.
fn version(cargo: &str) -> String {
    cargo.replacen('-', "~", 1)
}

fn architecture(arch: &str) -> Result<&'static str> {
    Ok(match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("no package is made for {other}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package() -> Package {
        let mut files = Layer::default();
        files.add("etc/x.yaml", 0o644, vec![b'x'; 1025]).unwrap();
        Package {
            name: "x",
            version: "1.0.0-rc.1".to_owned(),
            arch: "aarch64",
            summary: "An example",
            description: &["of two", "lines"],
            depends: "libc6 (>= 2.34)".to_owned(),
            files,
            settings: &["etc/x.yaml"],
            scripts: vec![("postinst", "#!/bin/sh\n".to_owned())],
        }
    }

    #[test]
    fn a_version_before_a_release_sorts_before_it() {
        assert_eq!(package().file_name().unwrap(), "x_1.0.0~rc.1_arm64.deb");
    }

    #[test]
    fn what_is_said_of_a_package_is_in_debians_form() {
        let control = package().control().unwrap();
        assert!(control.contains("\nInstalled-Size: 2\n"), "{control}");
        assert!(
            control.ends_with("\nDescription: An example\n of two\n lines\n"),
            "{control}"
        );
    }

    #[test]
    fn the_newest_version_of_the_c_library_counts_and_a_static_program_has_none() {
        let program = b"\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.2.5\0GLIBC_PRIVATE\0";
        assert_eq!(libraries(program).unwrap(), "libc6 (>= 2.34), libgcc-s1");
        assert!(libraries(b"\x7fELF").is_err());
    }
}
