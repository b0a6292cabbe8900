// SPDX-License-Identifier: Apache-2.0
//! weir-governor as a process: started with a configuration, asked, and ended.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use weir_stage::process::Started;
use weir_stage::{http, interrupt};

const READY: Duration = Duration::from_secs(30);
const END: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);

/// One that runs.
pub struct Governor {
    process: Started,
    admin: SocketAddr,
}

#[derive(Deserialize)]
struct Ports {
    admin: SocketAddr,
}

impl Governor {
    /// Starts it in `folder` and waits until it governs: this machine, or what lies below `root`.
    ///
    /// # Errors
    /// It refuses its configuration, or does not say that it is ready.
    pub fn start(
        program: &Path,
        root: Option<&Path>,
        configuration: &Value,
        folder: &Path,
    ) -> Result<Self> {
        let file = folder.join("weir-governor.yaml");
        // JSON is YAML too.
        fs::write(&file, serde_json::to_vec_pretty(configuration)?)
            .with_context(|| format!("writing {}", file.display()))?;
        let ports = folder.join("weir-governor.ports");
        let _ = fs::remove_file(&ports);
        let mut command = Command::new(program);
        if let Some(root) = root {
            command.arg("--root").arg(root);
        }
        command.arg("run").arg("--config").arg(&file);
        command.arg("--ports-file").arg(&ports);
        let mut process = Started::new("weir-governor", command, folder)?;
        let begun = Instant::now();
        loop {
            interrupt::check()?;
            process.must_live()?;
            let text = fs::read(&ports).unwrap_or_default();
            if let Ok(Ports { admin }) = serde_json::from_slice(&text) {
                return Ok(Self { process, admin });
            }
            ensure!(begun.elapsed() < READY, "weir-governor is not ready");
            sleep(POLL);
        }
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// A page of its own.
    ///
    /// # Errors
    /// It does not answer.
    pub fn page(&self, path: &str) -> Result<String> {
        let page = http::get(self.admin, path);
        Ok(page
            .with_context(|| format!("http://{}{path}", self.admin))?
            .body)
    }

    /// A counter of its metrics, over all labels; 0 where there is none of this name.
    ///
    /// # Errors
    /// It does not answer.
    pub fn counted(&self, name: &str) -> Result<u64> {
        let page = self.page("/metrics")?;
        Ok(weir_exposition::sum(&page, name, &[]).unwrap_or(0.0) as u64)
    }

    /// # Errors
    /// It has ended, with the end of its log.
    pub fn must_live(&mut self) -> Result<()> {
        self.process.must_live()
    }

    /// Ends it; it ends the jobs and puts everything back.
    ///
    /// # Errors
    /// It could not, or did not end.
    pub fn end(self) -> Result<()> {
        let status = self.process.end(END)?;
        ensure!(status.success(), "weir-governor ended with {status}");
        Ok(())
    }
}
