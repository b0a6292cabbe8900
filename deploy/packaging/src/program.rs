// SPDX-License-Identifier: Apache-2.0
//! A program as an image: the file, the libraries that the machine's loader gives it, certificate authorities, and
//! papers. Nothing else: no shell, no package manager.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::authorities;
use crate::image::{Image, Platform};
use crate::layer::Layer;
use crate::papers::Papers;
use crate::parts::Parts;
use crate::sbom::Library;

/// The licences of the C library that static programs are linked with, as Debian's package of it states them.
pub const MUSL: &str = include_str!("musl-copyright.txt");

/// Nobody's number, as in other images without a base.
const NOBODY: &str = "65532:65532";

/// Whom the program runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// A number that owns nothing.
    Nobody,
    /// The governor: cpufreq's files are root's.
    Root,
}

/// What accompanies a program, with these libraries packed beside it or linked into it.
///
/// # Errors
/// A file cannot be read.
pub fn papers(
    program: &Path,
    libraries: &[PathBuf],
    parts: &Parts,
    version: &str,
) -> Result<Papers> {
    let libraries = libraries.iter().map(|path| {
        Ok(Library {
            name: name(path)?.to_owned(),
            bytes: read(path)?,
        })
    });
    let libraries = libraries.collect::<Result<Vec<_>>>()?;
    let (name, bytes) = (name(program)?, read(program)?);
    Ok(Papers::of(name, version, &bytes, parts, &libraries))
}

/// Packs a program that was built for this machine, or a static one that was built for the architecture `arch`, in
/// Rust's words.
///
/// # Errors
/// A file cannot be read, or the loader does not find a library.
pub fn image(
    program: &Path,
    arch: &str,
    user: User,
    papers: &Papers,
    version: &str,
) -> Result<Image> {
    let name = name(program)?;
    let place = format!("usr/bin/{name}");
    let mut layer = Layer::default();
    layer.add(&place, 0o755, read(program)?)?;
    let doc = Path::new("usr/share/doc").join(name);
    let libraries = libraries(program)?;
    if libraries.is_empty() {
        layer.add(doc.join("musl.txt"), 0o644, MUSL.into())?;
    }
    for library in libraries {
        // Where the loader looks for it, whatever links lead there.
        layer.add(library.strip_prefix("/")?, 0o755, read(&library)?)?;
    }
    let authorities = authorities::pem().into_bytes();
    layer.add(authorities::FILE, 0o644, authorities)?;
    papers.add(doc, &mut layer)?;
    let user = match user {
        User::Nobody => NOBODY,
        User::Root => "0:0",
    };
    let run = json!({ "Entrypoint": [format!("/{place}")], "User": user });
    Image::container(platform(arch)?, &run, &layer, annotations(name, version))
}

fn name(path: &Path) -> Result<&str> {
    path.file_name()
        .and_then(|name| name.to_str())
        .with_context(|| format!("{} has no name", path.display()))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading {}", path.display()))
}

/// What the loader maps into a program that was built for this machine, itself included; nothing of a static program.
///
/// # Errors
/// The loader cannot be asked, or does not find a library.
pub fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd")
        .arg(program)
        .output()
        .context("starting `ldd`, which tells a program's libraries")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    if said.contains("statically linked") || complaint.contains("not a dynamic executable") {
        return Ok(Vec::new());
    }
    ensure!(
        output.status.success(),
        "`ldd {}` ended with {}: {}",
        program.display(),
        output.status,
        complaint.trim()
    );
    let lines = said.lines().map(parse).collect::<Result<Vec<_>>>()?;
    Ok(lines.into_iter().flatten().collect())
}

/// Reads `libc.so.6 => /lib/libc.so.6 (0x7f)`, `/lib64/ld.so (0x7f)`, and what the kernel gives: `linux-vdso.so.1
/// (0x7f)`.
fn parse(line: &str) -> Result<Option<PathBuf>> {
    let line = line.trim();
    let found = line.split_once(" => ").map_or(line, |(_, found)| found);
    if found == "not found" {
        bail!("the loader does not find a library: {line}");
    }
    let path = found.split(" (").next().unwrap_or(found);
    Ok(path.starts_with('/').then(|| path.into()))
}

fn platform(arch: &str) -> Result<Platform> {
    let architecture = match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("no image is made for {other}"),
    };
    Ok(Platform {
        os: "linux",
        architecture,
    })
}

fn annotations(name: &str, version: &str) -> Value {
    json!({
        "org.opencontainers.image.title": name,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_loader_is_a_path_or_nothing() {
        let path = |line| parse(line).unwrap().map(|path| path.display().to_string());
        assert_eq!(
            path("\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)").as_deref(),
            Some("/lib/x86_64-linux-gnu/libc.so.6")
        );
        assert_eq!(
            path("\t/lib64/ld-linux-x86-64.so.2 (0x00007f)").as_deref(),
            Some("/lib64/ld-linux-x86-64.so.2")
        );
        assert_eq!(path("\tlinux-vdso.so.1 (0x00007f)"), None);
        let error = parse("\tlibx.so => not found").unwrap_err().to_string();
        assert!(error.contains("libx.so"), "{error}");
    }
}
