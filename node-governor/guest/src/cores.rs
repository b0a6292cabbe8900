// SPDX-License-Identifier: Apache-2.0
//! What the kernel's files say of a core.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

/// How many cores the guest has.
pub const CORES: usize = 4;

/// The script that prints what [`parse`] reads: `<path>:<contents>`, for the cores that are online.
pub(crate) const SCRIPT: &str = "cd /sys/devices/system/cpu\n\
    grep -s '' cpu[0-9]/cpufreq/scaling_* || true\n";

/// One core's settings, as its `cpufreq` folder shows them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Core {
    /// `scaling_governor`
    pub governor: String,
    /// `scaling_setspeed`; none where the kernel's governor takes no speed.
    pub set_khz: Option<u32>,
    /// `scaling_min_freq`
    pub min_khz: u32,
    /// `scaling_max_freq`
    pub max_khz: u32,
    /// `scaling_cur_freq`
    pub now_khz: u32,
}

/// The cores that have a `cpufreq` folder, by number.
pub(crate) fn parse(said: &str) -> Result<BTreeMap<usize, Core>> {
    let mut files: BTreeMap<usize, BTreeMap<&str, &str>> = BTreeMap::new();
    for line in said.lines() {
        let (path, contents) = line
            .split_once(':')
            .with_context(|| format!("`{line}` is no file"))?;
        let core = path
            .strip_prefix("cpu")
            .and_then(|path| path.split_once('/')?.0.parse().ok())
            .with_context(|| format!("`{path}` is of no core"))?;
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        files.entry(core).or_default().insert(name, contents.trim());
    }
    files
        .into_iter()
        .map(|(number, files)| {
            let core = core(&files).with_context(|| format!("core {number} shows {files:?}"))?;
            Ok((number, core))
        })
        .collect()
}

fn core(files: &BTreeMap<&str, &str>) -> Option<Core> {
    let khz = |name| files.get(name)?.parse().ok();
    Some(Core {
        governor: (*files.get("scaling_governor")?).to_owned(),
        set_khz: khz("scaling_setspeed"),
        min_khz: khz("scaling_min_freq")?,
        max_khz: khz("scaling_max_freq")?,
        now_khz: khz("scaling_cur_freq")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "cpu2/cpufreq/scaling_cur_freq:1000000\n\
                        cpu2/cpufreq/scaling_governor:userspace\n\
                        cpu2/cpufreq/scaling_max_freq:2600000\n\
                        cpu2/cpufreq/scaling_min_freq:1000000\n\
                        cpu2/cpufreq/scaling_setspeed:SPEED\n";

    #[test]
    fn a_speed_that_cannot_be_set_is_none() {
        let cores = parse(&SAID.replace("SPEED", "<unsupported>")).unwrap();
        assert_eq!(cores[&2].set_khz, None);
        let cores = parse(&SAID.replace("SPEED", "1400000")).unwrap();
        assert_eq!(cores[&2].set_khz, Some(1_400_000));
        assert_eq!(cores.len(), 1);
    }

    #[test]
    fn a_missing_file_is_refused_with_those_that_are_there() {
        let said = SAID.replace("scaling_max_freq", "scaling_driver");
        let error = parse(&said).unwrap_err().to_string();
        assert!(
            error.contains("core 2 shows") && error.contains("scaling_driver"),
            "{error}"
        );
    }
}
