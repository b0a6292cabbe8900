// SPDX-License-Identifier: Apache-2.0
//! What a process finds around it: a small disk of its own for what it says, a clock of its own.
//!
//! A small disk is a tmpfs that only the process sees (a mount namespace of its own), so it is gone with it. Others
//! reach it through `/proc/<its number>/root`. A clock is the machine's and an offset, which `clock.c` looks up
//! whenever the process asks for the time of day; monotonic clocks are not touched.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use weir_stage::bound::through;
use weir_stage::command::Run;

use crate::plan::Plan;

/// Of a small disk.
const BYTES: u64 = 1 << 20;
/// What fills it.
const FILLING: &str = "filling";
/// $0 is where it is mounted; what follows is run, and its output goes there.
const SCRIPT: &str =
    r#"mount -t tmpfs -o size="$WEIR_DISK_BYTES" weir "$0" && exec "$@" >>"$0/log" 2>&1"#;

const CLOCK: &str = include_str!("clock.c");
const LIBRARY: &str = "clock.so";

/// What processes have around them; by default what this one has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    /// Where each one's small disk is mounted.
    disk: Option<PathBuf>,
    /// The folder of [`LIBRARY`] and the clocks' files.
    clocks: Option<PathBuf>,
}

impl Surroundings {
    /// Small disks are mounted at `<folder>/disk`, and clocks' files are in `<folder>/clocks`.
    ///
    /// # Errors
    /// What a plan wants cannot be had here.
    pub(crate) fn of(plan: &Plan, folder: &Path) -> Result<Self> {
        let make = |name: &str| {
            let folder = folder.join(name);
            fs::create_dir_all(&folder)
                .with_context(|| format!("creating {}", folder.display()))?;
            Ok::<_, anyhow::Error>(folder)
        };
        let clocks = match plan.own_clocks {
            true => {
                let folder = make("clocks")?;
                compile(&folder)?;
                Some(folder)
            }
            false => None,
        };
        let disk = match plan.small_disks {
            true => {
                small_disks_possible()?;
                Some(make("disk")?)
            }
            false => None,
        };
        Ok(Self { disk, clocks })
    }

    /// The file for requests that a sidecar takes, where there are small disks.
    pub(crate) fn access_log(&self) -> Option<PathBuf> {
        Some(self.disk.as_ref()?.join("access.log"))
    }

    /// The command with a small disk.
    pub(crate) fn on_disk(&self, command: Command) -> Command {
        let Some(disk) = self.disk.as_deref().and_then(Path::to_str) else {
            return command;
        };
        let mut command = through("unshare", &["--mount", "sh", "-c", SCRIPT, disk], &command);
        command.env("WEIR_DISK_BYTES", BYTES.to_string());
        command
    }

    /// The command with a clock of this name, which is right at first.
    pub(crate) fn with_clock(&self, name: &str, command: Command) -> Result<Command> {
        let Some(folder) = &self.clocks else {
            return Ok(command);
        };
        self.step(name, 0)?;
        let settings = [
            format!("LD_PRELOAD={}", folder.join(LIBRARY).display()),
            format!("WEIR_CLOCK={}", folder.join(name).display()),
        ];
        // `env` is the last before the program: nothing else runs with the library.
        Ok(through(
            "env",
            &settings.each_ref().map(String::as_str),
            &command,
        ))
    }

    /// From now on this clock is so many seconds ahead of the machine's.
    ///
    /// # Errors
    /// There are no such clocks.
    pub(crate) fn step(&self, name: &str, seconds: i64) -> Result<()> {
        let folder = self.clocks.as_ref().context("there are no own clocks")?;
        let file = folder.join(name);
        // Those who look at it have it in their memory: it is written, and never replaced.
        OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(&file)
            .and_then(|mut open| open.write_all(&seconds.to_ne_bytes()))
            .with_context(|| format!("writing {}", file.display()))
    }

    /// Fills the small disk of a process to the last byte.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn fill(&self, process: i32) -> Result<()> {
        let file = self.disk_of(process)?.join(FILLING);
        let mut filling = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file)
            .with_context(|| format!("opening {}", file.display()))?;
        for _ in 0..=BYTES / 4096 {
            match filling.write_all(&[0; 4096]) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
                Err(error) => {
                    return Err(error).with_context(|| format!("filling {}", file.display()));
                }
            }
        }
        bail!("{} is larger than it should be", file.display())
    }

    /// The disk has room again.
    ///
    /// # Errors
    /// It was not filled.
    pub(crate) fn free(&self, process: i32) -> Result<()> {
        let file = self.disk_of(process)?.join(FILLING);
        fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))
    }

    fn disk_of(&self, process: i32) -> Result<PathBuf> {
        let disk = self.disk.as_ref().context("there are no small disks")?;
        let inside = disk.strip_prefix("/").context("an absolute path")?;
        Ok(Path::new("/proc")
            .join(process.to_string())
            .join("root")
            .join(inside))
    }
}

fn compile(folder: &Path) -> Result<()> {
    let source = folder.join("clock.c");
    fs::write(&source, CLOCK).with_context(|| format!("writing {}", source.display()))?;
    let mut command = Command::new("cc");
    command
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .arg(folder.join(LIBRARY))
        .arg(&source);
    command
        .captured()
        .map(drop)
        .context("own clocks need a C compiler")
}

/// Whether small disks can be had here.
///
/// # Errors
/// They cannot, and why.
pub fn small_disks_possible() -> Result<()> {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "mount", "-t", "tmpfs", "weir"])
        .arg(std::env::temp_dir());
    command
        .captured()
        .map(drop)
        .context("small disks need root, and `unshare` and `mount` of util-linux")
}
