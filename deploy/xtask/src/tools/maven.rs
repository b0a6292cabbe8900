// SPDX-License-Identifier: Apache-2.0
//! Java programs of this repository, built by Maven. `deploy/tools/maven.sha256` pins every jar that Maven fetches,
//! plugins included: what was built is not used unless all of them are as listed.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::tools::checksum::Sum;
use crate::tools::pins::Maven;
use crate::workspace::Workspace;
use weir_stage::command::Run;

/// Beside the jar: sums of what it was built from.
const SOURCES: &str = "sources";
/// What the jar's manifest refers to, where it does.
const LIBRARIES: &str = "lib";

/// Where the jar is, once installed.
pub(super) fn installed_path(name: &str, maven: &Maven, cache: &Path) -> PathBuf {
    cache
        .join(format!("{name}-{}", maven.version))
        .join(format!("{name}.jar"))
}

/// Makes sure that the jar is in the cache and was built from the project as it is.
pub(super) fn install(name: &str, maven: &Maven, workspace: &Workspace) -> Result<PathBuf> {
    let project = workspace.root.join(&maven.project);
    let path = installed_path(name, maven, &workspace.tools());
    let folder = path.parent().context("the cache has no folder")?;
    let sources = sources(&project)?;
    if path.is_file()
        && fs::read_to_string(folder.join(SOURCES)).is_ok_and(|built| built == sources)
    {
        println!("tools: {name} {}: installed", maven.version);
        return Ok(path);
    }
    let started = Instant::now();
    println!("tools: {name} {}: building with mvn", maven.version);
    run(workspace, &project, &["package", "-DskipTests"])?;
    copy(&project.join("target"), name, folder)?;
    // Last: a build that was cut off is done again.
    fs::write(folder.join(SOURCES), sources)?;
    println!(
        "tools: {name} {}: built in {:.0} s",
        maven.version,
        started.elapsed().as_secs_f32()
    );
    Ok(path)
}

/// Runs the project's own tests, those on its packed jar included.
pub(super) fn test(maven: &Maven, workspace: &Workspace) -> Result<()> {
    run(workspace, &workspace.root.join(&maven.project), &["verify"])
}

fn run(workspace: &Workspace, project: &Path, goals: &[&str]) -> Result<()> {
    // A repository of its own, so that what is in it can be held against the list.
    let repository = workspace.tools().join("maven-repository");
    let mut command = Command::new("mvn");
    command
        .current_dir(project)
        .args(["-q", "-B", "-ntp", "--strict-checksums"])
        .arg(format!("-Dmaven.repo.local={}", repository.display()))
        .args(goals);
    if env::var_os("MAVEN_OPTS").is_none() {
        command.env("MAVEN_OPTS", "-Xmx256m -XX:+UseSerialGC");
    }
    command.shown().with_context(|| {
        format!(
            "`mvn {}` in {} failed. It needs Maven and a JDK of 11 or newer (Debian: `apt-get install maven \
             default-jdk-headless`), and at first a network (a mirror: settings.xml of Maven)",
            goals.join(" "),
            workspace.shown(project)
        )
    })?;
    check(
        &repository,
        &workspace.root.join("deploy/tools/maven.sha256"),
    )
}

/// Holds every jar that Maven has fetched against the list.
fn check(repository: &Path, list: &Path) -> Result<()> {
    let text = fs::read_to_string(list).with_context(|| format!("reading {}", list.display()))?;
    let mut sums = BTreeMap::new();
    for line in text.lines() {
        let (sum, name) = line
            .split_once("  ")
            .with_context(|| format!("{}: `{line}` is not SUM, 2 spaces, FILE", list.display()))?;
        sums.insert(Path::new(name), Sum::try_from(sum.to_owned())?);
    }
    let mut jars = Vec::new();
    gather(repository, "jar", &mut jars)?;
    for jar in jars {
        let name = jar.strip_prefix(repository).unwrap_or(&jar);
        match sums.get(name) {
            Some(sum) => sum.check(&jar)?,
            None => bail!(
                "{} is not in {}: Maven has fetched what nobody has pinned. If it is of an earlier list, remove it",
                jar.display(),
                list.display()
            ),
        }
    }
    Ok(())
}

fn copy(target: &Path, name: &str, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let libraries = target.join(LIBRARIES);
    if libraries.is_dir() {
        let kept = folder.join(LIBRARIES);
        fs::create_dir_all(&kept)?;
        let mut jars = Vec::new();
        gather(&libraries, "jar", &mut jars)?;
        for jar in jars {
            put(&jar, &kept.join(jar.file_name().unwrap_or_default()))?;
        }
    }
    let file = format!("{name}.jar");
    put(&target.join(&file), &folder.join(&file))
}

/// Beside its place and renamed: a program that has the old file open keeps it.
fn put(from: &Path, to: &Path) -> Result<()> {
    let unfinished = to.with_extension(format!("part-{}", std::process::id()));
    fs::copy(from, &unfinished)
        .and_then(|_| fs::rename(&unfinished, to))
        .with_context(|| format!("copying {} to {}", from.display(), to.display()))
}

/// What decides what is built, as lines for a file.
fn sources(project: &Path) -> Result<String> {
    let mut files = vec![project.join("pom.xml")];
    gather(&project.join("src/main"), "java", &mut files)?;
    files.sort();
    ensure!(files.len() > 1, "{} has no sources", project.display());
    let mut lines = String::new();
    for file in files {
        let name = file.strip_prefix(project).unwrap_or(&file).display();
        lines.push_str(&format!("{} {name}\n", Sum::of(&file)?.as_str()));
    }
    Ok(lines)
}

fn gather(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, extension, files)?;
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with one jar, whose bytes are `abc`, and a list.
    fn repository(list: &str) -> (tempfile::TempDir, Result<()>) {
        let folder = tempfile::tempdir().unwrap();
        let jars = folder.path().join("repository/a/1");
        fs::create_dir_all(&jars).unwrap();
        fs::write(jars.join("a-1.jar"), "abc").unwrap();
        fs::write(jars.join("a-1.pom"), "not held against it").unwrap();
        let file = folder.path().join("list");
        fs::write(&file, list).unwrap();
        let checked = check(&folder.path().join("repository"), &file);
        (folder, checked)
    }

    const OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn jars_as_listed_are_accepted() {
        let list = format!("{OF_ABC}  a/1/a-1.jar\n{OF_ABC}  b/not-fetched.jar\n");
        repository(&list).1.unwrap();
    }

    #[test]
    fn another_jar_and_an_unlisted_one_are_refused() {
        let other = "0".repeat(64);
        let refusal = |list: &str| repository(list).1.unwrap_err().to_string();
        let said = refusal(&format!("{other}  a/1/a-1.jar\n"));
        assert!(said.contains("checksum mismatch for a-1.jar"), "{said}");
        let said = refusal(&format!("{OF_ABC}  b/b.jar\n"));
        assert!(said.contains("nobody has pinned"), "{said}");
        let said = refusal("a/1/a-1.jar\n");
        assert!(said.contains("is not SUM, 2 spaces, FILE"), "{said}");
    }

    #[test]
    fn tests_do_not_decide_what_is_built_but_sources_do() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
            sources(folder.path()).ok()
        };
        assert_eq!(write("pom.xml", "1"), None);
        let first = write("src/main/java/A.java", "1").unwrap();
        assert_eq!(write("src/test/java/ATest.java", "1").unwrap(), first);
        assert_ne!(write("src/main/java/A.java", "2").unwrap(), first);
    }
}
