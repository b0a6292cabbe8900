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
    /// The folder of the release build's programs: weir-control, weir-llm-host, weir-replay
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
    /// The program that this option names.
    pub(crate) fn needed<'a>(path: &'a Option<PathBuf>, option: &str) -> Result<&'a Path> {
        let path = path
            .as_deref()
            .with_context(|| format!("this part needs --{option}"))?;
        ensure!(
            path.is_file(),
            "--{option}: {} is not a file",
            path.display()
        );
        Ok(path)
    }

    /// A program of the release build.
    pub(crate) fn release(&self, name: &str) -> Result<PathBuf> {
        let folder = self.release.as_deref();
        let program = folder.context("this part needs --release")?.join(name);
        ensure!(
            program.is_file(),
            "--release: {} is not a file: is {name} built?",
            program.display()
        );
        Ok(program)
    }
}
