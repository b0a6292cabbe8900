// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask image`: OCI images of the filter and of both programs, without a daemon or a registry.

use std::fs;

use anyhow::{Context, Result};
use weir_packaging::program::{self, User};
use weir_packaging::{Image, filter, layout};

use crate::build_filter;
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
    let module = build_filter::run(workspace)?;
    let bytes = fs::read(&module).with_context(|| format!("reading {}", module.display()))?;
    let mut images = vec![
        ("weir-filter", filter::container(&bytes, VERSION)?),
        ("weir-filter-oci", filter::artifact(&bytes, VERSION)),
    ];
    if !args.filter {
        let [control, governor] = workspace.build_release(["weir-control", "weir-governor"])?;
        images.push((
            "weir-control",
            program::image(&control, User::Nobody, VERSION)?,
        ));
        images.push((
            "weir-governor",
            program::image(&governor, User::Root, VERSION)?,
        ));
    }
    let written = images.iter().map(|(name, image)| {
        let digest = write(workspace, name, image)?;
        Ok(((*name).to_owned(), digest))
    });
    written.collect()
}

/// Returns its digest.
fn write(workspace: &Workspace, name: &str, image: &Image) -> Result<String> {
    let folder = workspace.target.join("image");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let tagged = format!("{name}:{VERSION}");
    let (place, archive) = (folder.join(name), folder.join(format!("{name}.tar")));
    layout::write(image, &tagged, &place)?;
    layout::archive(image, &tagged, &archive)?;
    let digest = image.manifest().digest();
    println!("image: {} and .tar: {digest}", workspace.shown(&place));
    Ok(digest)
}
