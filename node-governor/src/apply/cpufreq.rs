// SPDX-License-Identifier: Apache-2.0
//! The kernel's cpufreq files: `sys/devices/system/cpu/cpufreq/policyN/`, one folder for the cores that change
//! together. Units are kHz. Documentation/admin-guide/pm/cpufreq.rst has what each file means.

use std::io;
use std::path::{Path, PathBuf};

use crate::frequency::{Khz, Range};
use crate::root::{Root, core_list, line, number};

const POLICIES: &str = "sys/devices/system/cpu/cpufreq";
/// Sets what it is told by `scaling_setspeed`.
const USERSPACE: &str = "userspace";

/// How a frequency is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    /// The governor `userspace`, and the frequency in `scaling_setspeed`.
    Userspace,
    /// The same frequency in `scaling_min_freq` and `scaling_max_freq`, under the governor that is there.
    Clamp,
}

/// What of a policy's files the governor may change.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Settings {
    /// `scaling_governor`
    pub governor: String,
    /// `scaling_setspeed`; none under other governors than `userspace`.
    pub setspeed: Option<u32>,
    /// `scaling_min_freq`
    pub min: u32,
    /// `scaling_max_freq`
    pub max: u32,
}

/// One policy of the kernel.
#[derive(Clone, Debug)]
pub struct Files {
    /// `policy3`
    pub name: String,
    folder: PathBuf,
}

impl Files {
    /// All that are there, by number.
    pub fn all(root: &Root) -> io::Result<Vec<Files>> {
        let mut all: Vec<(u32, Files)> = Vec::new();
        for entry in std::fs::read_dir(root.path(POLICIES))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let number = name.strip_prefix("policy").and_then(|n| n.parse().ok());
            if let Some(number) = number {
                all.push((number, Files::named(root, &name)));
            }
        }
        all.sort_by_key(|(number, _)| *number);
        Ok(all.into_iter().map(|(_, files)| files).collect())
    }

    /// One by its name, there or not.
    pub fn named(root: &Root, name: &str) -> Files {
        Files {
            name: name.to_owned(),
            folder: root.path(POLICIES).join(name),
        }
    }

    /// A file of it.
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// Its cores that are online; none where all are off or it has gone.
    pub fn online(&self) -> Vec<u32> {
        let read = line(&self.path("affected_cpus")).unwrap_or_default();
        core_list(&read).unwrap_or_default()
    }

    /// `acpi-cpufreq`, `intel_pstate`, ...
    pub fn driver(&self) -> io::Result<String> {
        line(&self.path("scaling_driver"))
    }

    /// Those that can be chosen.
    pub fn governors(&self) -> io::Result<Vec<String>> {
        let text = line(&self.path("scaling_available_governors"))?;
        Ok(text.split_whitespace().map(str::to_owned).collect())
    }

    /// What is offered: `userspace` where it can be had.
    pub fn offers(&self) -> io::Result<Driver> {
        let userspace = self.governors()?.iter().any(|name| name == USERSPACE);
        Ok(match userspace {
            true => Driver::Userspace,
            false => Driver::Clamp,
        })
    }

    /// As it is set now.
    pub fn settings(&self) -> io::Result<Settings> {
        Ok(Settings {
            governor: line(&self.path("scaling_governor"))
                .map_err(self.named_error("scaling_governor"))?,
            // "<unsupported>" under another governor.
            setspeed: number(&self.path("scaling_setspeed")).ok().flatten(),
            min: self.khz("scaling_min_freq")?,
            max: self.khz("scaling_max_freq")?,
        })
    }

    /// What it can be set to, within these limits: those that an administrator has set hold.
    pub fn range(&self, limits: &Settings) -> io::Result<Range> {
        let min = self.khz("cpuinfo_min_freq")?.max(limits.min);
        let max = self.khz("cpuinfo_max_freq")?.min(limits.max);
        let table = line(&self.path("scaling_available_frequencies")).unwrap_or_default();
        let mut steps: Vec<Khz> = table
            .split_whitespace()
            .filter_map(|step| step.parse().ok().map(Khz))
            .filter(|step| (min..=max).contains(&step.0))
            .collect();
        steps.sort_unstable();
        steps.dedup();
        if min > max {
            let reason = format!("{}: nothing between {min} and {max} kHz", self.name);
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        let (min, max) = match (steps.first(), steps.last()) {
            (Some(first), Some(last)) => (*first, *last),
            _ => (Khz(min), Khz(max)),
        };
        Ok(Range { min, max, steps })
    }

    /// Puts back what was found, and looks whether it holds.
    pub fn restore(&self, driver: Driver, found: &Settings) -> io::Result<()> {
        match driver {
            Driver::Userspace => {
                self.write("scaling_governor", &found.governor)?;
                if let (USERSPACE, Some(khz)) = (found.governor.as_str(), found.setspeed) {
                    self.write("scaling_setspeed", khz)?;
                }
            }
            Driver::Clamp => {
                // What was set lies between the two, so neither passes the other on the way.
                self.write("scaling_max_freq", found.max)?;
                self.write("scaling_min_freq", found.min)?;
            }
        }
        let now = self.settings()?;
        let holds = match driver {
            Driver::Userspace => now.governor == found.governor,
            Driver::Clamp => (now.min, now.max) == (found.min, found.max),
        };
        match holds {
            true => Ok(()),
            false => Err(io::Error::other(format!("does not hold: {now:?}"))),
        }
    }

    pub(super) fn write(&self, file: &str, value: impl std::fmt::Display) -> io::Result<()> {
        let written = std::fs::OpenOptions::new()
            .write(true)
            .open(self.path(file))
            .and_then(|open| put(&open, format_args!("{value}\n")));
        written.map_err(self.named_error(file))
    }

    /// Kept open, so that a write is one call of the kernel.
    pub(super) fn open(&self, file: &str) -> io::Result<std::fs::File> {
        let opened = std::fs::OpenOptions::new()
            .write(true)
            .open(self.path(file));
        opened.map_err(self.named_error(file))
    }

    fn khz(&self, file: &str) -> io::Result<u32> {
        let read = number(&self.path(file)).and_then(|number| {
            number.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a number"))
        });
        read.map_err(self.named_error(file))
    }

    fn named_error(&self, file: &str) -> impl Fn(io::Error) -> io::Error + use<> {
        let path = self.path(file);
        move |error| io::Error::new(error.kind(), format!("{}: {error}", Path::display(&path)))
    }
}

/// One write from the file's beginning, as attributes want it. Does not allocate.
pub(super) fn put(file: &std::fs::File, text: std::fmt::Arguments<'_>) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::FileExt;
    let mut buffer = [0; 64];
    let mut rest = &mut buffer[..];
    rest.write_fmt(text)?;
    let written = 64 - rest.len();
    file.write_all_at(&buffer[..written], 0)
}
