// SPDX-License-Identifier: Apache-2.0
//! What the processor can divide by resctrl, and how a part of it is written (Documentation/filesystems/resctrl.rst).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::cores::Bounds;
use crate::root::{Root, line, number};

/// Lines of `schemata`.
const CACHE: &str = "L3";
const BANDWIDTH: &str = "MB";

/// What a policy may need of resctrl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Ways of the L3 cache (CAT).
    Cache,
    /// Percent of the bandwidth of memory (MBA).
    Bandwidth,
    /// What is read from memory and written (MBM).
    Counters,
}

/// What there is.
#[derive(Clone, Debug)]
pub struct Offered {
    folder: PathBuf,
    /// None: resctrl is not mounted.
    schemata: Option<Schemata>,
    cache: Option<Cache>,
    bandwidth: Option<Percent>,
    counters: bool,
}

/// Each line by its name: what each domain, as a socket, has of it.
type Schemata = BTreeMap<String, Vec<(String, String)>>;

/// The L3 cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cache {
    /// A bit for each way.
    all: u64,
    /// A group has no fewer.
    least: u32,
    /// Those that devices fill, too.
    shared: u64,
}

/// The bandwidth of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Percent {
    least: u32,
    step: u32,
}

impl Offered {
    /// As it is mounted now.
    pub fn read(root: &Root) -> Offered {
        let folder = super::folder(root);
        let schemata = std::fs::read_to_string(folder.join("schemata"));
        let schemata = schemata.ok().map(|text| parse(&text));
        let has = |name: &str| Some(schemata.as_ref()?.get(name)?.as_slice());
        let features = std::fs::read_to_string(folder.join("info/L3_MON/mon_features"));
        Offered {
            cache: has(CACHE).and_then(|_| Cache::read(&folder.join("info").join(CACHE))),
            bandwidth: has(BANDWIDTH)
                .and_then(|domains| Percent::read(&folder.join("info").join(BANDWIDTH), domains)),
            counters: features.is_ok_and(|text| text.lines().any(|line| line == "mbm_total_bytes")),
            schemata,
            folder,
        }
    }

    /// # Errors
    /// It is not there: why, and what to do.
    pub fn has(&self, part: Part) -> Result<(), String> {
        let folder = self.folder.display();
        if self.schemata.is_none() {
            return Err(format!(
                "no resctrl at {folder}: mount it, where the processor and the kernel have it (mount -t resctrl resctrl /sys/fs/resctrl), or leave the field out; see weir-governor check"
            ));
        }
        let lacks = match part {
            Part::Cache if self.cache.is_none() => {
                "ways of the L3 cache (CAT), or it is mounted with cdp"
            }
            Part::Bandwidth if self.bandwidth.is_none() => {
                "the bandwidth of memory in percent (MBA of Intel's, not mounted with mba_MBps)"
            }
            Part::Counters if !self.counters => {
                "counters of the bandwidth of memory (mbm_total_bytes)"
            }
            _ => return Ok(()),
        };
        Err(format!(
            "{folder} does not offer {lacks}; leave the field out, or see weir-governor check"
        ))
    }

    /// Ways that jobs may have: what the service has alone is at least as much as a group must have.
    pub fn ways(&self) -> Option<Bounds> {
        let Cache { all, least, .. } = self.cache?;
        let most = all.count_ones().saturating_sub(least).max(least);
        Some(Bounds { least, most })
    }

    /// Percent of bandwidth that jobs may have.
    pub fn bandwidth(&self) -> Option<Bounds> {
        let least = self.bandwidth?.least;
        Some(Bounds { least, most: 100 })
    }

    /// Lines of `schemata` with which a group has so much, in every domain.
    pub(super) fn lines(&self, ways: Option<u32>, percent: Option<u32>) -> String {
        let mask = ways
            .zip(self.cache)
            .map(|(ways, cache)| format!("{:x}", cache.mask(ways)));
        let percent = percent
            .zip(self.bandwidth)
            .map(|(wanted, offered)| offered.above(wanted).to_string());
        let mut lines = String::new();
        for (name, value) in [(CACHE, mask), (BANDWIDTH, percent)] {
            let domains = self.schemata.as_ref().and_then(|all| all.get(name));
            if let (Some(value), Some(domains)) = (value, domains) {
                let domains: Vec<String> = domains
                    .iter()
                    .map(|(domain, _)| format!("{domain}={value}"))
                    .collect();
                lines += &format!("{name}:{}\n", domains.join(";"));
            }
        }
        lines
    }
}

/// For people.
impl std::fmt::Display for Offered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.schemata.is_none() {
            return f.write_str("no resctrl is mounted");
        }
        let cache = self
            .cache
            .map(|cache| format!("{} ways of the L3 cache", cache.all.count_ones()));
        let bandwidth = self
            .bandwidth
            .map(|percent| format!("bandwidth of memory by {} %", percent.step));
        let counters = self.counters.then(|| "its counters".to_owned());
        let parts: Vec<String> = [cache, bandwidth, counters].into_iter().flatten().collect();
        match parts.is_empty() {
            true => f.write_str("resctrl is mounted, with nothing of what policies go by"),
            false => write!(f, "resctrl is mounted: {}", parts.join(", ")),
        }
    }
}

impl Cache {
    fn read(info: &Path) -> Option<Cache> {
        let mask = |file: &str| u64::from_str_radix(&line(&info.join(file)).ok()?, 16).ok();
        let all = mask("cbm_mask").filter(|all| *all > 0)?;
        let least = number(&info.join("min_cbm_bits")).ok().flatten()?;
        Some(Cache {
            all,
            least: least.clamp(1, all.count_ones()),
            shared: mask("shareable_bits").unwrap_or_default(),
        })
    }

    /// So many ways side by side, of which as few as can be are also filled by devices; of those the lowest.
    fn mask(&self, ways: u32) -> u64 {
        let ways = ways.clamp(self.least, self.all.count_ones());
        let block = u64::MAX >> (u64::BITS - ways);
        let first = self.all.trailing_zeros();
        let last = u64::BITS - self.all.leading_zeros() - ways;
        let blocks = (first..=last).map(|shift| block << shift);
        let best = blocks.min_by_key(|block| (block & self.shared).count_ones());
        best.unwrap_or(self.all)
    }
}

impl Percent {
    /// None where it is not in percent: as MB/s (`mba_MBps`), or as AMD's eighths of a GB/s.
    fn read(info: &Path, domains: &[(String, String)]) -> Option<Percent> {
        let is_percent = |value: &String| value.parse().is_ok_and(|value: u32| value <= 100);
        if !domains.iter().all(|(_, value)| is_percent(value)) {
            return None;
        }
        let read = |file: &str| number(&info.join(file)).ok().flatten();
        Some(Percent {
            least: read("min_bandwidth")?.clamp(1, 100),
            step: read("bandwidth_gran")?.clamp(1, 100),
        })
    }

    /// The next that the processor has.
    fn above(&self, wanted: u32) -> u32 {
        wanted.max(self.least).next_multiple_of(self.step).min(100)
    }
}

/// `L3:0=fffff;1=fffff`, and so on; the kernel aligns them.
fn parse(text: &str) -> Schemata {
    let part = |part: &str| {
        let (domain, value) = part.split_once('=')?;
        Some((domain.trim().to_owned(), value.trim().to_owned()))
    };
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(name, parts)| {
            (
                name.trim().to_owned(),
                parts.split(';').filter_map(part).collect(),
            )
        })
        .collect()
}

/// Whether a group's `schemata` says what was written; it may say more.
pub(super) fn says(schemata: &str, written: &str) -> bool {
    // As numbers: the kernel writes them with zeros in front.
    let same = |one: &(String, String), other: &(String, String)| {
        one.0 == other.0 && one.1.trim_start_matches('0') == other.1.trim_start_matches('0')
    };
    let stands = parse(schemata);
    parse(written).iter().all(|(name, parts)| {
        let stand = stands.get(name).map(Vec::as_slice).unwrap_or_default();
        parts
            .iter()
            .all(|part| stand.iter().any(|other| same(part, other)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(all: u64, least: u32, shared: u64) -> Cache {
        Cache { all, least, shared }
    }

    #[test]
    fn ways_are_side_by_side_and_not_those_that_devices_fill_where_that_can_be() {
        let usual = cache(0xfffff, 1, 0xc0000);
        assert_eq!(usual.mask(1), 0x1);
        assert_eq!(usual.mask(18), 0x3ffff);
        assert_eq!(usual.mask(19), 0x7ffff);
        let low = cache(0x7ff, 2, 0x3);
        assert_eq!(low.mask(0), 0xc, "no fewer than two");
        assert_eq!(low.mask(9), 0x7fc);
        assert_eq!(low.mask(10), 0x3ff << 1);
        assert_eq!(low.mask(99), 0x7ff);
        assert_eq!(cache(u64::MAX, 1, 0).mask(64), u64::MAX);
    }

    #[test]
    fn percent_are_those_that_the_processor_has() {
        let usual = Percent {
            least: 10,
            step: 10,
        };
        assert_eq!(
            [0, 10, 11, 95, 100, 200].map(|percent| usual.above(percent)),
            [10, 10, 20, 100, 100, 100]
        );
    }

    #[test]
    fn a_group_has_as_much_in_every_domain_and_what_the_kernel_says_of_it_is_understood() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let mounted = super::super::folder(&root);
        let put = |file: &str, text: &str| {
            let path = mounted.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert!(
            Offered::read(&root)
                .has(Part::Cache)
                .unwrap_err()
                .contains("mount -t resctrl")
        );
        put("schemata", "    MB:0= 100;1= 100\n    L3:0=7ff;1=7ff\n");
        assert!(
            Offered::read(&root)
                .has(Part::Cache)
                .unwrap_err()
                .contains("(CAT)")
        );
        put("info/L3/cbm_mask", "7ff\n");
        put("info/L3/min_cbm_bits", "1\n");
        put("info/L3/shareable_bits", "600\n");
        put("info/MB/min_bandwidth", "10\n");
        put("info/MB/bandwidth_gran", "10\n");
        put(
            "info/L3_MON/mon_features",
            "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes\n",
        );
        let offered = Offered::read(&root);
        for part in [Part::Cache, Part::Bandwidth, Part::Counters] {
            assert_eq!(offered.has(part), Ok(()));
        }
        assert_eq!(offered.ways(), Some(Bounds { least: 1, most: 10 }));
        assert_eq!(
            offered.bandwidth(),
            Some(Bounds {
                least: 10,
                most: 100
            })
        );
        let lines = offered.lines(Some(3), Some(35));
        assert_eq!(lines, "L3:0=7;1=7\nMB:0=40;1=40\n");
        assert!(says("    MB:0=  40;1=  40\n    L3:0=007;1=007\n", &lines));
        assert!(!says("    MB:0=  40;1= 100\n    L3:0=007;1=007\n", &lines));
        assert!(!says("    MB:0=  40;1=  40\n", &lines));
        assert_eq!(offered.lines(None, None), "");
        let said = "resctrl is mounted: 11 ways of the L3 cache, bandwidth of memory by 10 %, its counters";
        assert_eq!(offered.to_string(), said);
        for other in ["2048", "4294967295"] {
            put("schemata", &format!("MB:0={other}\nL3:0=7ff\n"));
            let offered = Offered::read(&root);
            assert!(
                offered
                    .has(Part::Bandwidth)
                    .unwrap_err()
                    .contains("in percent"),
                "{other}"
            );
            assert_eq!(offered.has(Part::Cache), Ok(()));
        }
    }
}
