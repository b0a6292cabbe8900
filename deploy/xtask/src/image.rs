// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask image`: OCI images of the filter and of both programs, without a daemon or a registry.

use std::fs;

use anyhow::{Context, Result};
use weir_packaging::program::{self, User};
use weir_packaging::{Image, filter, layout};

use crate::build_filter;
use crate::workspace::Workspace;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only the filter's images: the programs' need a release build
    #[arg(long)]
    filter: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let module = build_filter::run(workspace)?;
    let bytes = fs::read(&module).with_context(|| format!("reading {}", module.display()))?;
    write(
        workspace,
        "weir-filter",
        &filter::container(&bytes, VERSION)?,
    )?;
    write(
        workspace,
        "weir-filter-oci",
        &filter::artifact(&bytes, VERSION),
    )?;
    if args.filter {
        return Ok(());
    }
    let [control, governor] = workspace.build_release(["weir-control", "weir-governor"])?;
    let control = program::image(&control, User::Nobody, VERSION)?;
    write(workspace, "weir-control", &control)?;
    let governor = program::image(&governor, User::Root, VERSION)?;
    write(workspace, "weir-governor", &governor)
}

fn write(workspace: &Workspace, name: &str, image: &Image) -> Result<()> {
    let folder = workspace.target.join("image");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let tagged = format!("{name}:{VERSION}");
    let (place, archive) = (folder.join(name), folder.join(format!("{name}.tar")));
    layout::write(image, &tagged, &place)?;
    layout::archive(image, &tagged, &archive)?;
    println!(
        "image: {} and .tar: {}",
        workspace.shown(&place),
        image.manifest().digest()
    );
    Ok(())
}
