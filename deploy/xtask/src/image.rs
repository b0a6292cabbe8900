// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask image`: OCI images of the filter and of both programs, without a daemon or a registry.

use std::env::consts::ARCH;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use weir_packaging::program::{self, User};
use weir_packaging::{Image, Papers, filter, layout};

use crate::build_filter;
use crate::parts;
use crate::rustc;
use crate::twice::{self, Digests};
use crate::workspace::Workspace;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only the filter's images: the programs' need a release build
    #[arg(long)]
    filter: bool,
    /// Make them again from a copy elsewhere, with another Cargo home, and compare digests
    #[arg(long)]
    twice: bool,
}

/// Built together for images and releases: another choice has other features, and other bytes.
pub(crate) const BUILT: [&str; 3] = ["weir-control", "weir-governor", "weirctl"];

/// Those of them that have an image, and whom they run as there.
pub(crate) const PROGRAMS: [(&str, User); 2] = [
    ("weir-control", User::Nobody),
    ("weir-governor", User::Root),
];

/// An image and what is said of it.
pub(crate) struct Made {
    pub(crate) name: &'static str,
    pub(crate) image: Image,
    papers: Papers,
    /// The architecture of the machines that it is for, in Rust's words; none for all.
    arch: Option<&'static str>,
}

impl Made {
    /// Of a program that was built for this machine, or of a static one for an architecture.
    pub(crate) fn program(
        (name, user): (&'static str, User),
        program: &Path,
        arch: &'static str,
        papers: Papers,
    ) -> Result<Self> {
        Ok(Self {
            name,
            image: program::image(program, arch, user, &papers, VERSION)?,
            papers,
            arch: Some(arch),
        })
    }

    pub(crate) fn tagged(&self) -> String {
        format!("{}:{VERSION}", self.name)
    }

    /// After the version in a file's name.
    pub(crate) fn machine(&self) -> String {
        let arch = self.arch.map(|arch| format!("-{arch}"));
        arch.unwrap_or_default()
    }
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let made = make(workspace, args)?;
    if args.twice {
        twice::check(workspace, &made, |copy| make(copy, args))?;
    }
    Ok(())
}

fn make(workspace: &Workspace, args: &Args) -> Result<Digests> {
    let images = match args.filter {
        true => filters(workspace)?,
        false => all(workspace)?,
    };
    let digests = images.into_iter().map(|made| {
        let digest = write(workspace, &made)?;
        Ok((made.name.to_owned(), digest))
    });
    digests.collect()
}

/// Builds what is in them first.
pub(crate) fn all(workspace: &Workspace) -> Result<Vec<Made>> {
    let mut made = filters(workspace)?;
    let host = rustc::version(workspace, "host")?;
    let [control, governor, _] = workspace.build_release(BUILT)?;
    for (named, program) in PROGRAMS.into_iter().zip([control, governor]) {
        let parts = parts::of(workspace, named.0, &host)?;
        let libraries = program::libraries(&program)?;
        let papers = program::papers(&program, &libraries, &parts, VERSION)?;
        made.push(Made::program(named, &program, ARCH, papers)?);
    }
    Ok(made)
}

fn filters(workspace: &Workspace) -> Result<Vec<Made>> {
    let module = build_filter::run(workspace)?;
    let bytes = fs::read(&module).with_context(|| format!("reading {}", module.display()))?;
    let parts = parts::of(workspace, "weir-filter", build_filter::TARGET)?;
    let papers = filter::papers(&bytes, &parts, VERSION);
    let images = [
        ("weir-filter", filter::container(&bytes, &papers, VERSION)?),
        ("weir-filter-oci", filter::artifact(&bytes, VERSION)),
    ];
    let made = images.map(|(name, image)| Made {
        name,
        image,
        papers: papers.clone(),
        arch: None,
    });
    Ok(made.into())
}

/// Returns its digest. The papers are beside it too: an artifact has no place for them.
fn write(workspace: &Workspace, made: &Made) -> Result<String> {
    let folder = workspace.target.join("image");
    let beside = folder.join(format!("{}-papers", made.name));
    fs::create_dir_all(&beside).with_context(|| format!("creating {}", beside.display()))?;
    for (paper, text) in made.papers.files() {
        let file = beside.join(paper);
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    let place = folder.join(made.name);
    layout::write(&made.image, &made.tagged(), &place)?;
    let archive = folder.join(format!("{}.tar", made.name));
    layout::archive(&made.image, &made.tagged(), &archive)?;
    let digest = made.image.manifest().digest();
    println!("image: {} and .tar: {digest}", workspace.shown(&place));
    Ok(digest)
}
