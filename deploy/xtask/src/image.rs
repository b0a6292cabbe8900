// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask image`: OCI images of the filter and of both programs, without a daemon or a registry.

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

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let made = make(workspace, args)?;
    if args.twice {
        twice::check(workspace, &made, |copy| make(copy, args))?;
    }
    Ok(())
}

fn make(workspace: &Workspace, args: &Args) -> Result<Digests> {
    let mut made = Digests::new();
    let module = build_filter::run(workspace)?;
    let bytes = fs::read(&module).with_context(|| format!("reading {}", module.display()))?;
    let parts = parts::of(workspace, "weir-filter", build_filter::TARGET)?;
    let papers = filter::papers(&bytes, &parts, VERSION);
    for (name, image) in [
        ("weir-filter", filter::container(&bytes, &papers, VERSION)?),
        ("weir-filter-oci", filter::artifact(&bytes, VERSION)),
    ] {
        made.insert(name.to_owned(), write(workspace, name, &image, &papers)?);
    }
    if args.filter {
        return Ok(made);
    }
    let host = rustc::version(workspace, "host")?;
    let programs = [
        ("weir-control", User::Nobody),
        ("weir-governor", User::Root),
    ];
    let built = workspace.build_release(programs.map(|(name, _)| name))?;
    for ((name, user), program) in programs.into_iter().zip(built) {
        let parts = parts::of(workspace, name, &host)?;
        let papers = program::papers(&program, &parts, VERSION)?;
        let image = program::image(&program, user, &papers, VERSION)?;
        made.insert(name.to_owned(), write(workspace, name, &image, &papers)?);
    }
    Ok(made)
}

/// Returns its digest. The papers are beside it too: an artifact has no place for them.
fn write(workspace: &Workspace, name: &str, image: &Image, papers: &Papers) -> Result<String> {
    let folder = workspace.target.join("image");
    let beside = folder.join(format!("{name}-papers"));
    fs::create_dir_all(&beside).with_context(|| format!("creating {}", beside.display()))?;
    for (paper, text) in papers.files() {
        let file = beside.join(paper);
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    let tagged = format!("{name}:{VERSION}");
    let (place, archive) = (folder.join(name), folder.join(format!("{name}.tar")));
    layout::write(image, &tagged, &place)?;
    layout::archive(image, &tagged, &archive)?;
    let digest = image.manifest().digest();
    println!("image: {} and .tar: {digest}", workspace.shown(&place));
    Ok(digest)
}
