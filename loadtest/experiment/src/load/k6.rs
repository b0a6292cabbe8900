// SPDX-License-Identifier: Apache-2.0
//! k6: sends what weir-replay made.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use weir_stage::open_files;
use weir_stage::processes::Processes;

use crate::load::figures::Figures;
use crate::load::{Made, Programs};

/// Every threshold was met; at least one was not (k6's `ThresholdsHaveFailed`).
const MET: i32 = 0;
const CROSSED: i32 = 99;

/// Beside a connection of each virtual user to each caller.
const SPARE_FILES: u64 = 1_000;

/// k6, and what it sends.
pub(super) struct K6<'a> {
    pub(super) programs: &'a Programs,
    pub(super) made: &'a Made,
}

impl K6<'_> {
    /// Sends everything. The summaries are `k6.json` and `k6.txt` in the folder.
    ///
    /// # Errors
    /// k6 failed in another way than that a threshold was not met.
    pub(super) fn send(
        &self,
        processes: &mut Processes,
        callers: &[SocketAddr],
        folder: &Path,
        tick: impl FnMut(Duration),
    ) -> Result<Figures> {
        let Self { programs, made } = self;
        let plan = &made.plan;
        let most = 2 * (plan.requests as u64).min(50_000) + SPARE_FILES;
        open_files::allow(most.min(20_000))?;
        let summary = folder.join("k6.json");
        let mut command = Command::new(&programs.k6);
        let targets: Vec<String> = callers.iter().map(|at| format!("http://{at}")).collect();
        command
            // No server for its own API, no colours in a file, nobody is told of it.
            .args(["run", "--address", "", "--no-color", "--no-usage-report"])
            .args(["--quiet", "--summary-mode", "full"])
            .arg("--summary-export")
            .arg(&summary);
        let settings = [
            ("PLAN", made.plan_file.display().to_string()),
            ("WORKLOAD", made.workload.display().to_string()),
            ("TARGETS", targets.join(",")),
        ];
        for (name, value) in settings {
            command.arg("-e").arg(format!("{name}={value}"));
        }
        command.arg(&programs.script);
        processes.run_to("k6", command, &[MET, CROSSED], tick)?;
        let log = folder.join("k6.log");
        let text = folder.join("k6.txt");
        fs::copy(&log, &text).with_context(|| format!("copying {}", log.display()))?;
        Figures::read(&summary, plan)
    }
}
