// SPDX-License-Identifier: Apache-2.0
//! The kernel's cpufreq files: `sys/devices/system/cpu/cpufreq/policyN/`, one folder for the cores that change
//! together. Units are kHz. Documentation/admin-guide/pm/cpufreq.rst has what each file means.

use std::io;
use std::path::{Path, PathBuf};

use crate::frequency::{Khz, Range};
use crate::root::{Root, core_list, line, number};

const POLICIES: &str = "sys/devices/system/cpu/cpufreq";
/// Sets what it is told by `scaling_setspeed`.
pub(super) const USERSPACE: &str = "userspace";

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

impl Settings {
    /// Whether this is what the kernel shows. While it is hot it shows lower limits than it was given.
    fn holds(&self, driver: Driver, now: &Settings) -> bool {
        match driver {
            Driver::Userspace => now.governor == self.governor,
            Driver::Clamp => now.max <= self.max && now.min == self.min.min(now.max),
        }
    }
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
            if let Some(number) = Files::number(&name) {
                all.push((number, Files::named(root, &name)));
            }
        }
        all.sort_by_key(|(number, _)| *number);
        Ok(all.into_iter().map(|(_, files)| files).collect())
    }

    /// Of `policy3`; none where it is no policy's name.
    pub fn number(name: &str) -> Option<u32> {
        let digits = name.strip_prefix("policy")?;
        let all = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|_| all)
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

    /// Its cores that are online; none where all are off or it has gone. Any other failure to read says nothing of
    /// cores.
    pub fn online(&self) -> io::Result<Vec<u32>> {
        const FILE: &str = "affected_cpus";
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "not a list of cores");
        let read = line(&self.path(FILE)).and_then(|text| core_list(&text).ok_or_else(invalid));
        match read {
            Err(error) if is_gone(&error) => Ok(Vec::new()),
            read => read.map_err(self.named_error(FILE)),
        }
    }

    /// What the processor can do.
    pub fn highest(&self) -> io::Result<u32> {
        self.khz("cpuinfo_max_freq")
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

    fn table(&self) -> String {
        line(&self.path("scaling_available_frequencies")).unwrap_or_default()
    }

    /// Whether there is nothing between the frequencies that it names.
    pub(super) fn has_table(&self) -> bool {
        !self.table().is_empty()
    }

    /// What it can be set to, within these limits: those that an administrator has set hold.
    pub fn range(&self, limits: &Settings) -> io::Result<Range> {
        let min = self.khz("cpuinfo_min_freq")?.max(limits.min);
        let max = self.highest()?.min(limits.max);
        let table = self.table();
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
                // The upper first, for what was set lies between the two; unless another has set the lower above.
                let upper = || self.write("scaling_max_freq", found.max);
                let tried = upper();
                self.write("scaling_min_freq", found.min)?;
                tried.or_else(|_| upper())?;
            }
        }
        let now = self.settings()?;
        match found.holds(driver, &now) {
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
            .read(true)
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

/// Of a core that is off: the folder stays, and its files cannot be read.
fn is_gone(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let gone = [Errno::NOENT, Errno::NODEV, Errno::BUSY].map(Errno::raw_os_error);
    error
        .raw_os_error()
        .is_some_and(|code| gone.contains(&code))
}

/// The number that an attribute shows, if it shows one. Does not allocate.
pub(super) fn get(file: &std::fs::File) -> Option<u32> {
    first_line(file, &mut [0; 16])?.parse().ok()
}

/// Whether an attribute shows this and nothing else. Does not allocate.
pub(super) fn shows(file: &std::fs::File, text: &str) -> bool {
    first_line(file, &mut [0; 32]) == Some(text)
}

fn first_line<'a>(file: &std::fs::File, buffer: &'a mut [u8]) -> Option<&'a str> {
    use std::os::unix::fs::FileExt;
    let read = file.read_at(buffer, 0).ok()?;
    let text = std::str::from_utf8(buffer.get(..read)?).ok()?;
    Some(text.lines().next()?.trim())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_heat_has_lowered_are_put_back_and_others_are_not() {
        let limits = |min, max| Settings {
            governor: "powersave".to_owned(),
            setspeed: None,
            min,
            max,
        };
        let found = limits(10, 26);
        let holds = |min, max| found.holds(Driver::Clamp, &limits(min, max));
        assert!(holds(10, 26) && holds(10, 18) && holds(8, 8));
        assert!(!holds(18, 18) && !holds(10, 30) && !holds(8, 26));
    }

    #[test]
    fn names_of_policies_have_a_number_and_nothing_else() {
        assert_eq!(Files::number("policy12"), Some(12));
        for bad in ["policy", "policy+1", "policy1/x", "../policy1", "boost"] {
            assert_eq!(Files::number(bad), None, "{bad}");
        }
    }
}
