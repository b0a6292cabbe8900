// SPDX-License-Identifier: Apache-2.0
//! What a run's joblets took, read back from its log.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use weir_executor::Kind;
use weir_worker::rules::joblet_log::Line;

/// The joblets of a run, in the order in which they ended.
pub(crate) fn read(path: &Path) -> Result<Vec<Line>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let line = |(at, line): (usize, &str)| {
        serde_json::from_str(line).with_context(|| format!("{}: line {}", path.display(), at + 1))
    };
    text.lines().enumerate().map(line).collect()
}

/// Core time of a joblet.
pub(crate) fn core_time(line: &Line) -> Duration {
    Duration::from_micros(line.ran_us) * u32::try_from(line.cores).unwrap_or(u32::MAX)
}

/// The joblets of one kind.
pub(crate) fn of_kind(lines: &[Line], kind: Kind) -> impl Iterator<Item = &Line> {
    lines.iter().filter(move |line| line.kind == kind.name())
}
