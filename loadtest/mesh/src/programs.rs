// SPDX-License-Identifier: Apache-2.0
//! What a mesh runs.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// By absolute path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// Envoy with the V8 runtime.
    pub envoy: PathBuf,
    /// Consul.
    pub consul: PathBuf,
    /// Prometheus, where a plan has it.
    pub prometheus: Option<PathBuf>,
    /// The module, as Envoy loads it.
    pub filter: PathBuf,
    /// weir-control.
    pub control: PathBuf,
    /// weir-worker.
    pub worker: PathBuf,
}

impl Programs {
    /// Those that tests are given: by `WEIR_ENVOY`, `WEIR_CONSUL`, `WEIR_FILTER_WASM` and, if it is set,
    /// `WEIR_PROMETHEUS`; weir-control and weir-worker in `WEIR_BIN_DIR`, or where Cargo put the running test.
    ///
    /// # Errors
    /// A variable that is needed is not set, or names no file: tests are skipped then, and say why.
    pub fn from_environment() -> Result<Self> {
        let bin = match env::var_os("WEIR_BIN_DIR") {
            Some(folder) => PathBuf::from(folder),
            None => env::current_exe()?
                .ancestors()
                .nth(2)
                .context("this program has no folder")?
                .to_owned(),
        };
        let programs = Self {
            envoy: named("WEIR_ENVOY")?,
            consul: named("WEIR_CONSUL")?,
            prometheus: env::var_os("WEIR_PROMETHEUS").map(PathBuf::from),
            filter: named("WEIR_FILTER_WASM")?,
            control: bin.join("weir-control"),
            worker: bin.join("weir-worker"),
        };
        programs.check()?;
        Ok(programs)
    }

    /// Whether all are there.
    ///
    /// # Errors
    /// One is not, with its path.
    pub fn check(&self) -> Result<()> {
        let needed = [
            &self.envoy,
            &self.consul,
            &self.filter,
            &self.control,
            &self.worker,
        ];
        for program in needed.into_iter().chain(&self.prometheus) {
            ensure!(
                program.is_absolute() && program.is_file(),
                "{} is not the absolute path of a file",
                program.display()
            );
        }
        Ok(())
    }
}

fn named(variable: &str) -> Result<PathBuf> {
    let path = env::var_os(variable).with_context(|| format!("{variable} is not set"))?;
    Ok(path.into())
}
