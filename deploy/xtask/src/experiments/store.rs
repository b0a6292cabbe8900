// SPDX-License-Identifier: Apache-2.0
//! What has been simulated, as files: one a cell, named by what decides it. A file is whole or not
//! there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};
use weir_stage::command::describe;

use crate::experiments::cell::Cell;
use crate::experiments::workloads::{Requests, Workload};

/// Ending of files that are being written.
const PARTIAL: &str = "partial";

pub(super) struct Store {
    cells: PathBuf,
    workloads: PathBuf,
    simulator: Program,
    replay: Program,
    /// Where programs run: arguments name files below it.
    root: PathBuf,
}

struct Program {
    path: PathBuf,
    digest: String,
}

impl Program {
    fn open(path: PathBuf) -> Result<Self> {
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let digest = digest([bytes.as_slice()]);
        Ok(Self { path, digest })
    }
}

impl Store {
    /// The folder, made if there is none; what an earlier run left half-written goes.
    pub(super) fn open(
        folder: &Path,
        simulator: PathBuf,
        replay: PathBuf,
        root: PathBuf,
    ) -> Result<Self> {
        let store = Self {
            cells: folder.join("cells"),
            workloads: folder.join("workloads"),
            simulator: Program::open(simulator)?,
            replay: Program::open(replay)?,
            root,
        };
        for folder in [&store.cells, &store.workloads] {
            let named = || format!("in {}", folder.display());
            fs::create_dir_all(folder).with_context(named)?;
            for entry in fs::read_dir(folder).with_context(named)? {
                let path = entry.with_context(named)?.path();
                if path.extension().is_some_and(|ending| ending == PARTIAL) {
                    fs::remove_file(&path).with_context(|| path.display().to_string())?;
                }
            }
        }
        Ok(store)
    }

    /// The file of a cell: by its parameters, and by a digest of them, of the requests and of the
    /// program that simulates.
    pub(super) fn file(&self, cell: &Cell) -> PathBuf {
        let requests = self.requests(cell);
        let arguments = cell.arguments(requests.as_deref());
        self.named(
            &cell.name(),
            &self.simulator,
            &arguments,
            &self.cells,
            "json",
        )
    }

    pub(super) fn has(&self, cell: &Cell) -> bool {
        self.file(cell).exists()
    }

    /// Simulates a cell, unless that was done.
    pub(super) fn simulate(&self, cell: &Cell) -> Result<()> {
        let requests = self.requests(cell);
        if let (Some(file), Requests::Replayed(arguments, _)) =
            (&requests, &cell.setting.workload.requests)
        {
            self.make_requests(file, arguments, cell.seed)?;
        }
        let mut command = Command::new(&self.simulator.path);
        command.args(cell.arguments(requests.as_deref()));
        self.keep(&mut command, &self.file(cell))
    }

    /// What a command of the simulator prints, from an earlier run if there was one.
    pub(super) fn printed(&self, name: &str, arguments: &[String]) -> Result<String> {
        let file = self.named(name, &self.simulator, arguments, &self.cells, "txt");
        let mut command = Command::new(&self.simulator.path);
        self.keep(command.args(arguments), &file)?;
        fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))
    }

    fn named(
        &self,
        name: &str,
        program: &Program,
        arguments: &[String],
        folder: &Path,
        ending: &str,
    ) -> PathBuf {
        let arguments = arguments.join("\0");
        let digest = digest([program.digest.as_bytes(), arguments.as_bytes()]);
        folder.join(format!("{name}.{digest}.{ending}"))
    }

    fn requests(&self, cell: &Cell) -> Option<PathBuf> {
        let Workload { name, requests, .. } = cell.setting.workload;
        let Requests::Replayed(arguments, _) = requests else {
            return None;
        };
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        let name = format!("{name}.s{}", cell.seed);
        Some(self.named(&name, &self.replay, &arguments, &self.workloads, "ndjson"))
    }

    fn make_requests(&self, file: &Path, arguments: &str, seed: u64) -> Result<()> {
        if file.exists() {
            return Ok(());
        }
        let partial = partial(file);
        let mut command = Command::new(&self.replay.path);
        command
            .arg("workload")
            .args(arguments.split_whitespace())
            .args(["--seed", &seed.to_string()]);
        command.arg("--out").arg(&partial).current_dir(&self.root);
        ended_well(&mut command)?;
        fs::rename(&partial, file).with_context(|| format!("writing {}", file.display()))
    }

    /// Runs the command and keeps what it prints, unless the file is there.
    fn keep(&self, command: &mut Command, file: &Path) -> Result<()> {
        if file.exists() {
            return Ok(());
        }
        let partial = partial(file);
        let named = || format!("writing {}", partial.display());
        let out = File::create(&partial).with_context(named)?;
        ended_well(command.current_dir(&self.root).stdout(out))?;
        ensure!(
            fs::metadata(&partial).with_context(named)?.len() > 0,
            "{} printed nothing",
            describe(command)
        );
        fs::rename(&partial, file).with_context(named)
    }
}

/// Beside the file, and of this process and thread alone.
fn partial(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    let thread = format!("{:?}", std::thread::current().id());
    let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
    name.push(format!(".{}-{thread}.{PARTIAL}", std::process::id()));
    PathBuf::from(name)
}

fn ended_well(command: &mut Command) -> Result<()> {
    let what = describe(command);
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
    let output = child
        .and_then(|child| child.wait_with_output())
        .with_context(|| what.clone())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{what}: {}: {}", output.status, said.trim());
    }
    Ok(())
}

/// Sixteen hexadecimal digits.
fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let bytes = hash.finalize();
    bytes
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests;
