// SPDX-License-Identifier: Apache-2.0
//! Made-up requests as a workload file.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use weir_sim::workload::{HIGH, Job};
use weir_whole_file::WholeFile;

/// Writes them as CSV that `weir-sim run` and `weir-replay run` read: whole, or not at all. `see` is shown each.
pub(super) fn save(
    path: &Path,
    jobs: impl Iterator<Item = Job>,
    mut see: impl FnMut(&Job),
) -> Result<()> {
    let named = || path.display().to_string();
    let mut out = WholeFile::create(path).with_context(named)?;
    writeln!(out, "t_us,key,priority,user,run_us,bytes,sender").with_context(named)?;
    for job in jobs {
        see(&job);
        let priority = if job.class == HIGH { "high" } else { "low" };
        let (at, run) = (job.at.as_micros(), job.work.core_time().as_micros());
        let (project, bytes) = (job.key.unwrap_or(0), job.bytes);
        let sender = job.sender.map(|sender| sender.to_string());
        let sender = sender.unwrap_or_default();
        writeln!(
            out,
            "{at},project-{project},{priority},,{run},{bytes},{sender}"
        )
        .with_context(named)?;
    }
    out.finish().with_context(named)
}
