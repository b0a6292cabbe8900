// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask image`: OCI images of the filter and of both programs, without a daemon or a registry.

use std::env::consts::ARCH;
use std::fs;

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

/// An image and what is said of it.
pub(crate) struct Made {
    pub(crate) name: &'static str,
    pub(crate) image: Image,
    papers: Papers,
    /// For machines of the architecture that it was built on.
    is_of_machine: bool,
}

impl Made {
    pub(crate) fn tagged(&self) -> String {
        format!("{}:{VERSION}", self.name)
    }

    /// After the version in a file's name.
    pub(crate) fn machine(&self) -> String {
        match self.is_of_machine {
            true => format!("-{ARCH}"),
            false => String::new(),
        }
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
    for (name, program, user) in [
        ("weir-control", control, User::Nobody),
        ("weir-governor", governor, User::Root),
    ] {
        let parts = parts::of(workspace, name, &host)?;
        let libraries = program::libraries(&program)?;
        let papers = program::papers(&program, &libraries, &parts, VERSION)?;
        made.push(Made {
            name,
            image: program::image(&program, user, &papers, VERSION)?,
            papers,
            is_of_machine: true,
        });
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
        is_of_machine: false,
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
