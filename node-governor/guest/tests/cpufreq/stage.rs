// SPDX-License-Identifier: Apache-2.0
//! The guest that the tests share, put back to how it was booted before each.

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use weir_guest::{Guest, Image, Parts};

use crate::governor;

/// A test: its name, and what it does with the guest.
pub(crate) type Scenario = (&'static str, fn(&mut Guest) -> Result<()>);

/// What is run inside, as it is placed in the folder of what Cargo builds.
const PROGRAMS: [&str; 2] = ["weir-governor", "examples/weir-events-play"];

/// What a kernel of this kind boots with, and nothing left running. Little is executed, for that takes
/// long inside.
const RESET: &str = "
    while killall -9 weir-governor weir-events-play yes 2>/dev/null; do usleep 1000; done
    rm -rf /run/weir
    mount -o remount,rw /sys
    umount /sys/devices/system/cpu/cpufreq/policy1/scaling_setspeed 2>/dev/null || true
    umount /sys/devices/system/cpu/cpufreq/policy1 2>/dev/null || true
    [ -d /sys/module/acpi_cpufreq ] || insmod /lib/drivers/acpi-cpufreq.ko
    [ -d /sys/module/cpufreq_userspace ] || insmod /lib/drivers/cpufreq_userspace.ko
    cd /sys/devices/system/cpu
    for cpu in 1 2 3; do echo 1 > cpu$cpu/online; done
    for policy in cpu[0-9]/cpufreq; do
      echo schedutil > $policy/scaling_governor
      read khz < $policy/cpuinfo_max_freq && echo $khz > $policy/scaling_max_freq
      read khz < $policy/cpuinfo_min_freq && echo $khz > $policy/scaling_min_freq
    done";

pub(crate) struct Stage {
    parts: Option<Parts>,
    guest: Mutex<Option<Guest>>,
}

impl Stage {
    pub(crate) fn new(parts: Option<Parts>) -> Self {
        let guest = Mutex::new(None);
        Self { parts, guest }
    }

    /// Runs one test. The first boots the guest.
    pub(crate) fn run(&self, scenario: fn(&mut Guest) -> Result<()>) -> Result<()> {
        // A test that panicked leaves a guest that the reset puts right.
        let mut guest = self.guest.lock().unwrap_or_else(PoisonError::into_inner);
        if guest.is_none() {
            *guest = Some(self.boot()?);
        }
        let guest = guest.as_mut().context("there is no guest")?;
        guest.sh(RESET).context("putting the guest back")?;
        let result = catch_unwind(AssertUnwindSafe(|| scenario(guest)));
        if !matches!(result, Ok(Ok(()))) {
            eprintln!("{}", governor::log(guest).unwrap_or_default());
        }
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Ends the guest.
    pub(crate) fn strike(&self) {
        *self.guest.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn boot(&self) -> Result<Guest> {
        let parts = self.parts.as_ref().context("WEIR_GUEST_DIR is not set")?;
        let mut image = Image::new(parts)?;
        for name in PROGRAMS {
            let program = built()?.join(name);
            ensure!(
                program.is_file(),
                "there is no {}: `cargo build --package weir-governor --package weir-events --bins --examples`",
                program.display()
            );
            image.add_program(&program)?;
        }
        Guest::boot(parts, image)
    }
}

/// The folder of what Cargo builds: by `WEIR_BIN_DIR`, or two above this very program.
fn built() -> Result<PathBuf> {
    match env::var_os("WEIR_BIN_DIR") {
        Some(folder) => Ok(folder.into()),
        None => {
            let this = env::current_exe()?;
            let folder = this
                .ancestors()
                .nth(2)
                .context("this program has no folder")?;
            Ok(folder.to_owned())
        }
    }
}
