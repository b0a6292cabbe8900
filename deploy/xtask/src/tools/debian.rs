// SPDX-License-Identifier: Apache-2.0
//! Debian packages, fetched with apt and unpacked without being installed.
//!
//! ```text
//! apt-get update ─> apt-cache show ─> apt-get download, install -d ─> dpkg-deb -x ─> rename
//!                   (is it the pinned version?)
//! ```
//! apt keeps its lists and archives in the cache, so it needs no root and changes nothing of the
//! machine's. It checks every archive by the signatures of the sources that the machine trusts.

use std::env::consts::{ARCH, OS};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::tools::checksum::Sum;
use crate::tools::pins::{Debian, Package, is_package_name};
use crate::tools::temporary::Temporary;
use weir_stage::command::Run;

/// What was unpacked, a line for each package: name, version, SHA-256 of the archive.
const RECORD: &str = "packages";

/// In place of the version of a package that the machine itself has.
const INSTALLED: &str = "installed";

const HINT: &str = "fetching Debian's packages\n\
                    try: is this Debian 12, is its mirror reachable? Elsewhere install what \
                    deploy/tools/DESIGN.md lists, or copy a filled cache and name it with WEIR_TOOLS_DIR";

/// A folder with `apt-get`, `apt-cache`, `dpkg-query` and `dpkg-deb`; none for those on the `PATH`.
pub(super) struct Client(Option<PathBuf>);

impl Client {
    pub(super) fn system() -> Self {
        Self(None)
    }

    fn command(&self, program: &str) -> Command {
        Command::new(match &self.0 {
            Some(folder) => folder.join(program),
            None => program.into(),
        })
    }

    /// Whether the machine has the package.
    fn installed(&self, package: &str) -> bool {
        self.command("dpkg-query")
            .args(["-W", "-f", "${db:Status-Status}", package])
            .captured()
            .is_ok_and(|status| status == INSTALLED)
    }
}

/// Where the packages are, once unpacked.
pub(super) fn installed_path(name: &str, debian: &Debian, cache: &Path) -> PathBuf {
    cache.join(format!("{name}-{}", debian.version))
}

/// Makes sure that the pinned packages are in the cache or on the machine.
pub(super) fn install(
    name: &str,
    debian: &Debian,
    client: &Client,
    cache: &Path,
) -> Result<PathBuf> {
    let platform = format!("{OS}-{ARCH}");
    ensure!(
        debian.platform == platform,
        "it is for {}, this is {platform}",
        debian.platform
    );
    let folder = installed_path(name, debian, cache);
    let record = fs::read_to_string(folder.join(RECORD)).unwrap_or_default();
    if is_whole(debian, &record, client) {
        println!("tools: {name} {}: installed", debian.version);
        return Ok(folder);
    }
    let started = Instant::now();
    println!("tools: {name} {}: fetching with apt", debian.version);
    let temporary = Temporary::new(cache, name)?;
    Apt::new(client, &temporary.0)?
        .fetch(debian)
        .context(HINT)?;
    let unpacked = temporary.0.join("unpacked");
    unpack(debian, client, &temporary.0, &unpacked)?;
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::rename(&unpacked, &folder).with_context(|| format!("installing {}", folder.display()))?;
    println!(
        "tools: {name} {}: installed in {:.1} s",
        debian.version,
        started.elapsed().as_secs_f32()
    );
    Ok(folder)
}

/// Whether each pinned package was unpacked in its pinned version, or is still on the machine.
fn is_whole(debian: &Debian, record: &str, client: &Client) -> bool {
    debian.packages.iter().all(|package| {
        record.lines().any(|line| {
            let mut words = line.split(' ');
            words.next() == Some(&package.name)
                && words.next().is_some_and(|version| {
                    version.starts_with(&package.version)
                        || version == INSTALLED && client.installed(&package.name)
                })
        })
    })
}

/// apt with lists and archives of its own.
struct Apt<'a> {
    client: &'a Client,
    options: Vec<String>,
    archives: PathBuf,
}

impl<'a> Apt<'a> {
    fn new(client: &'a Client, folder: &Path) -> Result<Self> {
        let (lists, archives) = (folder.join("lists"), folder.join("archives"));
        for folder in [&lists, &archives] {
            let partial = folder.join("partial");
            fs::create_dir_all(&partial)
                .with_context(|| format!("creating {}", partial.display()))?;
        }
        let options = [
            ("Dir::State::lists", lists.display()),
            ("Dir::Cache", folder.display()),
            ("Dir::Cache::archives", archives.display()),
        ]
        .map(|(name, value)| format!("-o{name}={value}"))
        .into_iter()
        .chain([
            "-oDebug::NoLocking=1".into(),
            // Root's downloads are otherwise made by a user who cannot write here.
            "-oAPT::Sandbox::User=root".into(),
            // What a machine does after its own updates is not to be done here.
            "-oAPT::Update::Post-Invoke=".into(),
            "-qq".into(),
        ])
        .collect();
        Ok(Self {
            client,
            options,
            archives,
        })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.client.command(program);
        command
            .args(&self.options)
            .current_dir(&self.archives)
            .env("LC_ALL", "C")
            .env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    fn fetch(&self, debian: &Debian) -> Result<()> {
        self.command("apt-get").arg("update").captured()?;
        let (mut with, mut alone) = (Vec::new(), Vec::new());
        for package in &debian.packages {
            let of_its_version = self.find(package)?;
            if package.dependencies {
                with.push(package.name.clone());
            } else {
                alone.push(package.name.clone());
                alone.extend(of_its_version);
            }
        }
        if !with.is_empty() {
            self.command("apt-get")
                .args(["install", "--download-only", "--yes"])
                .arg("--no-install-recommends")
                .args(with)
                .captured()?;
        }
        if !alone.is_empty() {
            self.command("apt-get")
                .arg("download")
                .args(alone)
                .captured()?;
        }
        Ok(())
    }

    /// Sees that the version that apt would fetch is a pinned one; returns the dependencies that
    /// must have that very version.
    fn find(&self, package: &Package) -> Result<Vec<String>> {
        let Package { name, version, .. } = package;
        let shown = self
            .command("apt-cache")
            .args(["show", "--no-all-versions", name])
            .captured()?;
        let offered = field(&shown, "Version").unwrap_or_default();
        ensure!(
            offered.starts_with(version) || self.client.installed(name),
            "apt offers {name} {offered}, pins.toml asks for {version}…"
        );
        Ok(pinned_by(&shown, offered))
    }
}

/// A field of one line in what `apt-cache show` prints.
fn field<'a>(shown: &'a str, name: &str) -> Option<&'a str> {
    shown
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The dependencies that must have exactly this version.
fn pinned_by(shown: &str, version: &str) -> Vec<String> {
    let exactly = format!("(= {version})");
    field(shown, "Depends")
        .unwrap_or_default()
        .split(", ")
        .filter_map(|dependency| Some(dependency.strip_suffix(&*exactly)?.trim().to_owned()))
        .filter(|name| is_package_name(name))
        .collect()
}

fn unpack(debian: &Debian, client: &Client, folder: &Path, unpacked: &Path) -> Result<()> {
    let archives = folder.join("archives");
    let mut record = String::new();
    let entries = fs::read_dir(&archives)?.collect::<Result<Vec<_>, _>>()?;
    let mut archives: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    archives.retain(|path| path.extension() == Some(OsStr::new("deb")));
    archives.sort();
    for archive in &archives {
        client
            .command("dpkg-deb")
            .arg("-x")
            .args([archive, unpacked])
            .captured()?;
        let package = client
            .command("dpkg-deb")
            .args(["-W", "--showformat=${Package} ${Version}"])
            .arg(archive)
            .captured()?;
        record.push_str(&format!("{package} {}\n", Sum::of(archive)?.as_str()));
    }
    for Package { name, .. } in &debian.packages {
        if !record
            .lines()
            .any(|line| line.split(' ').next() == Some(name))
        {
            ensure!(client.installed(name), "apt fetched no {name}");
            record.push_str(&format!("{name} {INSTALLED}\n"));
        }
    }
    ensure!(
        is_whole(debian, &record, client),
        "apt fetched other versions than pins.toml asks for:\n{record}"
    );
    fs::create_dir_all(unpacked)?;
    Ok(fs::write(unpacked.join(RECORD), record)?)
}

#[cfg(test)]
mod tests;
