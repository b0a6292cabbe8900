// SPDX-License-Identifier: Apache-2.0
//! What a mesh runs.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use weir_needs::{Lacking, Need};

const PROMETHEUS: &str = "WEIR_PROMETHEUS";
/// The folder of the workspace's own programs.
const OWN: &str = "WEIR_BIN_DIR";

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
    pub fn from_environment() -> Result<Self, Lacking> {
        let prometheus = env::var_os(PROMETHEUS).map(|_| given(PROMETHEUS));
        Ok(Self {
            envoy: given("WEIR_ENVOY")?,
            consul: given("WEIR_CONSUL")?,
            prometheus: prometheus.transpose()?,
            filter: given("WEIR_FILTER_WASM")?,
            control: own("weir-control")?,
            worker: own("weir-worker")?,
        })
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
                is_file(program),
                "{} is not the absolute path of a file",
                program.display()
            );
        }
        Ok(())
    }
}

fn given(variable: &'static str) -> Result<PathBuf, Lacking> {
    file(variable, weir_needs::provided(variable)?)
}

/// One of the workspace's own.
fn own(name: &str) -> Result<PathBuf, Lacking> {
    let folder = match env::var_os(OWN) {
        Some(folder) => PathBuf::from(folder),
        None => beside_tests().map_err(|why| Lacking::new(Need::Provided(OWN), why))?,
    };
    file(OWN, folder.join(name))
}

/// Where Cargo put the running test.
fn beside_tests() -> Result<PathBuf> {
    let program = env::current_exe()?;
    let folder = program.ancestors().nth(2);
    Ok(folder.context("this program has no folder")?.to_owned())
}

fn file(variable: &'static str, path: PathBuf) -> Result<PathBuf, Lacking> {
    match is_file(&path) {
        true => Ok(path),
        false => {
            let why = format!("{} is not the absolute path of a file", path.display());
            Err(Lacking::new(Need::Provided(variable), why))
        }
    }
}

fn is_file(path: &Path) -> bool {
    path.is_absolute() && path.is_file()
}
