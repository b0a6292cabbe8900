// SPDX-License-Identifier: Apache-2.0
//! What all packages draw and are made for, and how fast cores really are.

use std::io;

use super::energy::Zone;
use crate::cores::Cores;
use crate::node::Khz;
use crate::root::{Root, line};
use crate::sensed::Nanos;

/// Watts between two readings of what was counted.
#[derive(Debug, Default)]
pub struct Power {
    counted: Option<(Nanos, f64)>,
}

impl Power {
    /// Since the last time; none where nothing is counted, or was.
    pub fn watts(&mut self, now: Nanos, joules: Option<f64>) -> Option<f64> {
        let counted = joules.map(|joules| (now, joules));
        let (before, last) = std::mem::replace(&mut self.counted, counted)?;
        let seconds = now.since(before).as_secs_f64();
        (seconds > 0.0).then(|| joules.map(|joules| (joules - last) / seconds))?
    }
}

/// What all packages together are made for, in watts; none where there is no package, or one does not say. Its first
/// constraint is that of its long term, whose highest value is the thermal one; where that is not told, what it is
/// set to.
pub fn made_for(zones: &[Zone]) -> Option<f64> {
    let packages = zones.iter().filter(|zone| zone.name.starts_with("package"));
    let of = |zone: &Zone| {
        let files = ["constraint_0_max_power_uw", "constraint_0_power_limit_uw"];
        let mut said = files.into_iter().filter_map(|file| {
            let watts = line(&zone.path.join(file)).ok()?.parse::<f64>().ok()? / 1e6;
            (watts > 0.0).then_some(watts)
        });
        said.next()
    };
    let watts: Vec<f64> = packages.map(of).collect::<Option<_>>()?;
    (!watts.is_empty()).then(|| watts.iter().sum())
}

/// Of these cores, the frequency of the slowest, as the kernel measures it where the processor can; none where one
/// of them does not say.
pub fn slowest(root: &Root, cores: &Cores) -> Option<Khz> {
    let of = |core: &u32| -> io::Result<Option<u32>> {
        let file = format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq");
        crate::root::number(&root.path(file))
    };
    let all: Option<Vec<u32>> = cores.numbers().iter().map(|core| of(core).ok()?).collect();
    all?.into_iter().min().map(Khz)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(seconds: u64) -> Nanos {
        Nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn watts_are_what_was_counted_between_two_readings() {
        let mut power = Power::default();
        assert_eq!(power.watts(second(1), Some(100.0)), None);
        assert_eq!(power.watts(second(3), Some(150.0)), Some(25.0));
        assert_eq!(power.watts(second(4), None), None);
        assert_eq!(power.watts(second(5), Some(400.0)), None);
        assert_eq!(power.watts(second(5), Some(400.0)), None, "at once");
    }

    /// A made-up machine: what powercap and cpufreq look like in the kernel.
    fn put(folder: &tempfile::TempDir, files: &[(&str, &str)]) -> Root {
        for (file, text) in files {
            let file = folder.path().join("sys").join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, format!("{text}\n")).unwrap();
        }
        Root::new(folder.path())
    }

    fn zone(folder: &tempfile::TempDir, zone: &str, name: &str, more: &[(&str, &str)]) -> Root {
        let more = more.iter().copied();
        for (file, text) in [
            ("name", name),
            ("max_energy_range_uj", "1"),
            ("energy_uj", "0"),
        ]
        .into_iter()
        .chain(more)
        {
            put(folder, &[(&format!("class/powercap/{zone}/{file}"), text)]);
        }
        Root::new(folder.path())
    }

    #[test]
    fn packages_are_made_for_their_thermal_power_or_what_they_are_set_to() {
        let folder = tempfile::tempdir().unwrap();
        let root = zone(
            &folder,
            "intel-rapl:0",
            "package-0",
            &[
                ("constraint_0_max_power_uw", "85000000"),
                ("constraint_0_power_limit_uw", "60000000"),
            ],
        );
        zone(
            &folder,
            "intel-rapl:0:0",
            "core",
            &[("constraint_0_power_limit_uw", "5000000")],
        );
        assert_eq!(made_for(&Zone::all(&root).0), Some(85.0));
        // Firmware may leave the first at nothing.
        zone(
            &folder,
            "intel-rapl:1",
            "package-1",
            &[
                ("constraint_0_max_power_uw", "0"),
                ("constraint_0_power_limit_uw", "65000000"),
            ],
        );
        assert_eq!(made_for(&Zone::all(&root).0), Some(150.0));
        zone(&folder, "intel-rapl:2", "package-2", &[]);
        assert_eq!(made_for(&Zone::all(&root).0), None, "one does not say");
        assert_eq!(made_for(&[]), None);
    }

    #[test]
    fn of_the_cores_the_slowest_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = |core: u32| format!("devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq");
        let root = put(&folder, &[(&file(0), "2600000"), (&file(2), "1900000")]);
        assert_eq!(slowest(&root, &Cores::from([0, 2])), Some(Khz(1_900_000)));
        assert_eq!(slowest(&root, &Cores::from([0])), Some(Khz(2_600_000)));
        assert_eq!(slowest(&root, &Cores::from([0, 1])), None);
        assert_eq!(slowest(&root, &Cores::NONE), None);
    }
}
