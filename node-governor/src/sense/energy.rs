// SPDX-License-Identifier: Apache-2.0
//! What powercap has counted, zone by zone. Never summed: `package` contains `core` and `uncore`, and `psys` all.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::root::{Root, line};

const ZONES: &str = "sys/class/powercap";

/// A zone of RAPL.
#[derive(Debug)]
pub struct Zone {
    /// `package-0`, `core`, `dram`, ... as the kernel says.
    pub name: String,
    /// Its folder, for those that have the same name.
    pub path: PathBuf,
    /// Since the governor started.
    pub joules: f64,
    file: File,
    /// The counter begins again after this.
    range_uj: u64,
    last_uj: u64,
}

impl Zone {
    /// All that can be read, and those that cannot with the reason.
    pub fn all(root: &Root) -> (Vec<Zone>, Vec<(PathBuf, io::Error)>) {
        let (mut zones, mut refused) = (Vec::new(), Vec::new());
        let Ok(entries) = std::fs::read_dir(root.path(ZONES)) else {
            return (zones, refused);
        };
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.join("energy_uj").exists())
            .collect();
        paths.sort();
        for path in paths {
            match Zone::open(path.clone()) {
                Ok(zone) => zones.push(zone),
                Err(error) => refused.push((path, error)),
            }
        }
        // The same counters by another way: intel-rapl-mmio:0 is the package of intel-rapl:0.
        let by_msr = zones.iter().filter(|zone| !zone.is_mmio());
        let by_msr: BTreeSet<String> = by_msr.map(|zone| zone.name.clone()).collect();
        zones.retain(|zone| !(zone.is_mmio() && by_msr.contains(&zone.name)));
        (zones, refused)
    }

    fn open(path: PathBuf) -> io::Result<Zone> {
        let file = File::open(path.join("energy_uj"))?;
        let range = line(&path.join("max_energy_range_uj"))?;
        let range_uj = range
            .parse()
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "max_energy_range_uj"))?;
        let last_uj = counter(&file)?;
        Ok(Zone {
            name: line(&path.join("name"))?,
            path,
            joules: 0.0,
            file,
            range_uj,
            last_uj,
        })
    }

    fn is_mmio(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(b"intel-rapl-mmio")
    }

    /// Adds what was used since the last reading, which has to be less than a whole round of the counter ago.
    pub fn read(&mut self) {
        // It stays as it is where the counter cannot be read.
        let Ok(now_uj) = counter(&self.file) else {
            return;
        };
        let used = match now_uj.checked_sub(self.last_uj) {
            Some(used) => used,
            None => (self.range_uj.saturating_sub(self.last_uj)).saturating_add(now_uj),
        };
        self.last_uj = now_uj;
        self.joules += used as f64 / 1e6;
    }
}

/// Joules of all packages, each of which contains its cores and none of the others; none where none can be read.
pub fn packages(zones: &[Zone]) -> Option<f64> {
    let packages = || zones.iter().filter(|zone| zone.name.starts_with("package"));
    packages().next()?;
    Some(packages().map(|zone| zone.joules).sum())
}

fn counter(file: &File) -> io::Result<u64> {
    let mut buffer = [0; 32];
    let bytes = file.read_at(&mut buffer, 0)?;
    let text = std::str::from_utf8(&buffer[..bytes]).unwrap_or_default();
    let first = text.lines().next().unwrap_or_default().trim();
    first
        .parse()
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "energy_uj"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_apart_and_a_counter_may_begin_again() {
        let folder = tempfile::tempdir().unwrap();
        let zone = |name: &str, label: &str, energy: &str| {
            let zone = folder.path().join(ZONES).join(name);
            std::fs::create_dir_all(&zone).unwrap();
            std::fs::write(zone.join("name"), format!("{label}\n")).unwrap();
            std::fs::write(zone.join("max_energy_range_uj"), "10000000\n").unwrap();
            std::fs::write(zone.join("energy_uj"), format!("{energy}\n")).unwrap();
        };
        zone("intel-rapl:0", "package-0", "9000000");
        zone("intel-rapl:0:0", "core", "5");
        zone("intel-rapl:1", "broken", "?");
        zone("intel-rapl-mmio:0", "package-0", "9000000");
        let (mut zones, refused) = Zone::all(&Root::new(folder.path()));
        let names: Vec<&str> = zones.iter().map(|zone| zone.name.as_str()).collect();
        assert_eq!(names, ["package-0", "core"]);
        assert_eq!(refused.len(), 1);
        zone("intel-rapl:0", "package-0", "500000");
        zone("intel-rapl:0:0", "core", "2000005");
        zones.iter_mut().for_each(Zone::read);
        assert_eq!((zones[0].joules, zones[1].joules), (1.5, 2.0));
        assert_eq!(packages(&zones), Some(1.5), "core is in it");
        assert_eq!(packages(&zones[1..]), None);
    }
}
