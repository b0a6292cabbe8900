// SPDX-License-Identifier: Apache-2.0
//! Programs that are built from Go modules of this repository: `go.sum` pins every source.

use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::tools::checksum::Sum;
use crate::tools::pins::Go;
use weir_stage::command::Run;

/// Beside the program: sums of what it was built from.
const SOURCES: &str = "sources";

/// Where the program is, once installed.
pub(super) fn installed_path(name: &str, go: &Go, cache: &Path) -> PathBuf {
    cache
        .join(format!("{name}-{}", go.version))
        .join(format!("{name}{EXE_SUFFIX}"))
}

/// Makes sure that the program is in the cache and was built from the module as it is.
pub(super) fn install(name: &str, go: &Go, root: &Path, cache: &Path) -> Result<PathBuf> {
    let module = root.join(&go.module);
    let needed = check_module(&module, go)?;
    let path = installed_path(name, go, cache);
    let folder = path.parent().context("the cache has no folder")?;
    let built_of = format!("{}, measured: {}", go.package, go.measured);
    let sources = sources(&module, &built_of)?;
    if path.is_file()
        && fs::read_to_string(folder.join(SOURCES)).is_ok_and(|built| built == sources)
    {
        println!("tools: {name} {}: installed", go.version);
        return Ok(path);
    }
    check_version(&needed)?;
    let started = Instant::now();
    println!("tools: {name} {}: building with go, in minutes", go.version);
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    // Beside its place and renamed: a reader of the cache sees the whole program or none.
    let built = folder.join(format!(".{name}-{}", std::process::id()));
    build(&module, go, &built)?;
    fs::rename(&built, &path).with_context(|| format!("installing {}", path.display()))?;
    fs::write(folder.join(SOURCES), sources)?;
    println!(
        "tools: {name} {}: built in {:.0} s",
        go.version,
        started.elapsed().as_secs_f32()
    );
    Ok(path)
}

/// Nothing is inlined: a quarter less to compile (k6 1.8.1 without any cache: 103 s of CPU, not 140). Nothing is said
/// for debuggers, which `-w` would drop at the end: a tenth less again (102 s, not 111).
const SOONER: &str = "-gcflags=all=-l -dwarf=false";

fn build(module: &Path, go: &Go, built: &Path) -> Result<()> {
    command()
        .current_dir(module)
        .env("CGO_ENABLED", "0")
        .args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false"])
        .args((!go.measured).then_some(SOONER))
        .args(["-ldflags", "-s -w", "-o"])
        .arg(built)
        .arg(&go.package)
        .shown()
        .context(
            "try: is the network reachable, through a proxy or mirror (`go env GOPROXY`)? Where there \
             is none, copy a filled cache and name it with WEIR_TOOLS_DIR",
        )
}

/// Reads which Go the module needs, and sees that it is the module that is pinned.
fn check_module(module: &Path, go: &Go) -> Result<Version> {
    let file = module.join("go.mod");
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let pinned = format!("v{}", go.version);
    ensure!(
        text.split_whitespace().any(|word| word == pinned),
        "{} requires nothing of the version {pinned} that pins.toml names",
        file.display()
    );
    let line = text.lines().find_map(|line| line.strip_prefix("go "));
    line.and_then(Version::parse)
        .with_context(|| format!("{} has no line `go VERSION`", file.display()))
}

pub(super) fn command() -> Command {
    let mut command = Command::new("go");
    // No other Go than the one that is installed, and no `go.work` from above the repository.
    command.env("GOTOOLCHAIN", "local").env("GOWORK", "off");
    command
}

fn check_version(needed: &Version) -> Result<()> {
    let Version(major, minor) = needed;
    let missing = format!(
        "Go {major}.{minor} or newer is needed, from https://go.dev/dl or your system's packages"
    );
    let found = command()
        .args(["env", "GOVERSION"])
        .captured()
        .with_context(|| missing.clone())?;
    match Version::parse(found.trim().trim_start_matches("go")) {
        Some(version) if version >= *needed => Ok(()),
        _ => bail!("{missing}; this is {}", found.trim()),
    }
}

/// What decides what is built, as lines for a file.
pub(super) fn sources(module: &Path, package: &str) -> Result<String> {
    let mut files = Vec::new();
    gather(module, &mut files)?;
    files.sort();
    let mut lines = format!("package {package}\n");
    for file in files {
        let name = file.strip_prefix(module).unwrap_or(&file).display();
        lines.push_str(&format!("{} {name}\n", Sum::of(&file)?.as_str()));
    }
    Ok(lines)
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            gather(&path, files)?;
        } else if matches!(extension, Some("mod" | "sum" | "go")) {
            files.push(path);
        }
    }
    Ok(())
}

/// Major and minor of a Go release.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32);

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim().split('.');
        let major = numbers.next()?.parse().ok()?;
        let minor: String = numbers
            .next()?
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        Some(Self(major, minor.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn go(version: &str) -> Go {
        Go {
            version: version.into(),
            module: "m".into(),
            package: ".".into(),
            measured: false,
        }
    }

    /// A repository with a module that needs no network and whose program says `said`.
    fn repository(said: &str, needs: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let module = root.path().join("m");
        fs::create_dir(&module).unwrap();
        let text = format!("module weir/m\n\ngo {needs}\n\n// of v1.0.0 \n");
        fs::write(module.join("go.mod"), text).unwrap();
        let main = format!("package main\nfunc main() {{ println(\"{said}\") }}\n");
        fs::write(module.join("main.go"), main).unwrap();
        root
    }

    #[test]
    fn the_version_that_is_pinned_must_be_that_of_the_module() {
        let root = repository("x", "1.20");
        let module = root.path().join("m");
        assert_eq!(check_module(&module, &go("1.0.0")).unwrap(), Version(1, 20));
        let error = check_module(&module, &go("1.0.1")).unwrap_err().to_string();
        assert!(error.contains("nothing of the version v1.0.1"), "{error}");
    }

    #[test]
    fn releases_are_compared_as_numbers() {
        let parse = |text| Version::parse(text).unwrap();
        assert!(parse("1.9") < parse("1.25.3"));
        assert_eq!(parse("1.26rc1"), Version(1, 26));
        assert_eq!(Version::parse("devel"), None);
    }

    #[test]
    fn other_sources_are_noticed() {
        let (one, two) = (repository("one", "1.20"), repository("two", "1.20"));
        let of = |root: &tempfile::TempDir| sources(&root.path().join("m"), ".").unwrap();
        assert_eq!(of(&one), of(&one));
        assert_ne!(of(&one), of(&two));
    }

    /// Whether Go is there or not, a module that needs one of the future is refused in words.
    #[test]
    fn too_old_a_go_is_told_what_is_needed() {
        let root = repository("x", "9.99");
        let cache = root.path().join("cache");
        let error = install("m", &go("1.0.0"), root.path(), &cache).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("Go 9.99 or newer is needed"), "{error}");
    }
}
