// SPDX-License-Identifier: Apache-2.0
//! What is measured, by absolute path.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Each part needs some of them; a part whose program is not named says so and fails.
#[derive(clap::Args)]
pub(crate) struct Programs {
    /// Envoy 1.40
    #[arg(long, value_name = "FILE")]
    pub(crate) envoy: Option<PathBuf>,
    /// weir_filter.wasm
    #[arg(long, value_name = "FILE")]
    pub(crate) filter: Option<PathBuf>,
    /// weir_bench_no_op.wasm
    #[arg(long, value_name = "FILE")]
    pub(crate) no_op: Option<PathBuf>,
    /// The folder of the release build's programs: weir-control, weir-llm-host, weir-replay and
    /// those of the bench itself
    #[arg(long, value_name = "FOLDER")]
    pub(crate) release: Option<PathBuf>,
    /// The endpoint picker of the Kubernetes inference gateway, 1.3.0
    #[arg(long, value_name = "FILE")]
    pub(crate) epp: Option<PathBuf>,
    /// The linear cache of go-control-plane as a server
    #[arg(long, value_name = "FILE")]
    pub(crate) linear_cache: Option<PathBuf>,
}

impl Programs {
    /// A program that a part needs, by the flag that names it.
    pub(crate) fn named<'a>(program: &'a Option<PathBuf>, flag: &str) -> Result<&'a Path> {
        let program = program
            .as_deref()
            .with_context(|| format!("{flag} is needed, as `cargo xtask bench` gives it"))?;
        ensure!(
            program.is_file(),
            "{flag} {} is not a file",
            program.display()
        );
        Ok(program)
    }

    /// A program of the release build.
    pub(crate) fn release(&self, name: &str) -> Result<PathBuf> {
        let folder = self
            .release
            .as_deref()
            .context("--release is needed, as `cargo xtask bench` gives it")?;
        let program = folder.join(name);
        ensure!(
            program.is_file(),
            "{} is not a file: is {name} built?",
            program.display()
        );
        Ok(program)
    }
}
