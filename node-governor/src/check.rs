// SPDX-License-Identifier: Apache-2.0
//! What the machine offers, what is missing, and how to get it. Changes nothing.

use std::fmt::Write;

use crate::apply::Driver;
use crate::apply::cpufreq::Files;
use crate::apply::groups::Groups;
use crate::apply::network;
use crate::apply::resctrl::Offered;
use crate::config::show_range;
use crate::root::{Root, line};
use crate::sense::energy::Zone;
use crate::sense::power::made_for;

/// What was found.
#[derive(Debug)]
pub struct Report {
    /// For people.
    pub text: String,
    /// Every core that has cpufreq can be governed, and there is one; or there is none, and cores can be divided.
    pub can_govern: bool,
}

/// Looks at everything that `run` would use.
pub fn report(root: &Root) -> Report {
    let mut report = Report {
        text: String::new(),
        can_govern: true,
    };
    let divides = report.groups(root);
    let has_cpufreq = report.cores(root, divides);
    report.energy(root);
    report.shared(root);
    report.uprobes();
    let verdict = match (report.can_govern, has_cpufreq) {
        (true, true) => "cores can be governed",
        (true, false) => "frequencies cannot be set, but cores can be divided",
        (false, _) => "cores cannot be governed; see \"missing\" above",
    };
    report.say("result", verdict);
    report
}

impl Report {
    fn say(&mut self, what: &str, text: impl std::fmt::Display) {
        // Into a string nothing fails.
        let _ = writeln!(self.text, "{what:<10} {text}");
    }

    fn missing(&mut self, text: impl std::fmt::Display) {
        self.can_govern = false;
        self.say("missing", text);
    }

    /// Whether cores can be divided.
    fn groups(&mut self, root: &Root) -> bool {
        match Groups::find(root) {
            Ok(groups) => {
                self.say("groups", groups.means());
                self.say("limits", groups.limits());
                groups.can_divide()
            }
            Err(error) => {
                self.say("groups", error);
                false
            }
        }
    }

    /// Whether there is a core with cpufreq.
    fn cores(&mut self, root: &Root, divides: bool) -> bool {
        let policies = Files::all(root).unwrap_or_default();
        if policies.is_empty() {
            self.missing("cpufreq: the kernel has no driver for this processor's frequencies");
            self.can_govern = divides;
            self.say(
                "hint",
                "modprobe acpi-cpufreq; enable P-states in the firmware; guests of most hypervisors have none",
            );
            return false;
        }
        let mut hints: Vec<String> = Vec::new();
        for files in &policies {
            match self.policy(files) {
                Ok(hint) => hints.extend(hint),
                Err(error) => self.missing(error),
            }
        }
        hints.sort();
        hints.dedup();
        for hint in hints {
            self.say("hint", hint);
        }
        true
    }

    /// One policy; what would make it better.
    fn policy(&mut self, files: &Files) -> std::io::Result<Option<String>> {
        let cores = files.online()?;
        if cores.is_empty() {
            self.say("cores", format!("{}: all offline", files.name));
            return Ok(None);
        }
        let cores: Vec<String> = cores.iter().map(|core| format!("cpu{core}")).collect();
        let kernel = files.driver()?;
        let settings = files.settings()?;
        let range = files.range(&settings)?;
        let driver = files.offers()?;
        let how = match driver {
            Driver::Userspace => "userspace",
            Driver::Clamp => "clamp",
        };
        let text = format!(
            "{}: {}, {kernel}, governor {}, driver {how}",
            cores.join(" "),
            show_range(&range),
            settings.governor
        );
        self.say("cores", text);
        let written = match driver {
            Driver::Userspace => "scaling_governor",
            Driver::Clamp => "scaling_max_freq",
        };
        let path = files.path(written);
        let opened = std::fs::OpenOptions::new().write(true).open(&path);
        if let Err(error) = opened {
            self.missing(format!("{}: {error}; run it as root", path.display()));
        }
        Ok((driver == Driver::Clamp).then(|| enable_userspace(&kernel).to_owned()))
    }

    fn energy(&mut self, root: &Root) {
        let (zones, refused) = Zone::all(root);
        for zone in &zones {
            let text = format!("{} in {}", zone.name, zone.path.display());
            self.say("energy", text);
        }
        if let Some(watts) = made_for(&zones) {
            self.say("energy", format!("packages are made for {watts} W"));
        }
        for (path, error) in &refused {
            self.say("energy", format!("not read: {}: {error}", path.display()));
        }
        if zones.is_empty() && refused.is_empty() {
            self.say(
                "energy",
                "no RAPL: joules are not counted; modprobe intel_rapl_msr, if the processor has it",
            );
        }
        if line(&root.path("proc/stat")).is_err() {
            self.missing("proc/stat: how busy cores are is not known");
        }
    }

    /// What a service and jobs share beside cores.
    fn shared(&mut self, root: &Root) {
        match network::program() {
            Ok(version) => self.say(
                "network",
                format!("{version}; whether the kernel has HTB is seen at the start of run"),
            ),
            Err(error) => self.say("network", format!("what jobs send is left alone: {error}")),
        }
        self.say("caches", Offered::read(root));
    }

    fn uprobes(&mut self) {
        match weir_uprobe::doctor() {
            Ok(()) => self.say("uprobes", "can be used"),
            Err(error) => self.say("uprobes", format!("cannot be used: {error}")),
        }
    }
}

/// How `userspace` is had with this driver of the kernel's. Documentation/admin-guide/pm/{intel_pstate,amd-pstate,
/// cpufreq}.rst.
fn enable_userspace(kernel: &str) -> &'static str {
    match kernel {
        "intel_pstate" => {
            "driver userspace wants intel_pstate=passive on the kernel's command line, or passive in /sys/devices/system/cpu/intel_pstate/status; until then both limits are set"
        }
        "amd-pstate-epp" => {
            "driver userspace wants amd_pstate=passive on the kernel's command line, or passive in /sys/devices/system/cpu/amd_pstate/status; until then both limits are set"
        }
        _ => "driver userspace wants modprobe cpufreq_userspace; until then both limits are set",
    }
}
