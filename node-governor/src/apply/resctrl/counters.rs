// SPDX-License-Identifier: Apache-2.0
//! What goes between each L3 cache and memory: the counters of all groups (MBM), of which the jobs' is one.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::root::line;
use crate::sensed::{Bandwidth, Nanos};

/// In a group's `mon_data`: one folder for each L3 cache.
const DOMAIN: &str = "mon_L3_";

/// By group and domain, bytes so far; none where the processor does not say.
type Counted = BTreeMap<(PathBuf, String), Option<u64>>;

/// As they were read last.
#[derive(Debug)]
pub(super) struct Counters {
    folder: PathBuf,
    jobs: PathBuf,
    last: Option<(Nanos, Counted)>,
}

impl Counters {
    /// `jobs` is the name of their group.
    pub(super) fn new(folder: PathBuf, jobs: &str) -> Self {
        Self {
            jobs: folder.join(jobs),
            folder,
            last: None,
        }
    }

    /// What has gone there since they were read last; none while that is not known.
    pub(super) fn read(&mut self, now: Nanos) -> Option<Bandwidth> {
        let counted = self.count().ok();
        let last = std::mem::replace(&mut self.last, counted.map(|counted| (now, counted)));
        let ((before, last), (_, counted)) = (last?, self.last.as_ref()?);
        let seconds = now.since(before).as_secs_f64();
        let domains = domains(&self.jobs, &last, counted)?;
        let busiest = domains.into_values().max_by_key(|(_, total)| *total)?;
        let rate = |bytes: u64| bytes as f64 / seconds;
        (seconds > 0.0).then(|| Bandwidth {
            at: now,
            jobs: rate(busiest.0),
            total: rate(busiest.1),
        })
    }

    /// Of the default group, which is the folder itself, and of all others. Those that only watch count in the one that
    /// they are in.
    fn count(&self) -> io::Result<Counted> {
        let mut counted = Counted::new();
        count_group(&self.folder, &mut counted)?;
        for entry in std::fs::read_dir(&self.folder)? {
            let group = entry?.path();
            if group.join("mon_data").is_dir() {
                count_group(&group, &mut counted)?;
            }
        }
        Ok(counted)
    }
}

fn count_group(group: &Path, counted: &mut Counted) -> io::Result<()> {
    for entry in std::fs::read_dir(group.join("mon_data"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(DOMAIN) {
            // Or "Unavailable".
            let bytes = line(&entry.path().join("mbm_total_bytes"))?.parse().ok();
            counted.insert((group.to_owned(), name), bytes);
        }
    }
    Ok(())
}

/// Bytes of the jobs and of all in each domain, as far as groups were there before. None where one is not known, or is
/// less than it was.
fn domains(jobs: &Path, last: &Counted, now: &Counted) -> Option<BTreeMap<String, (u64, u64)>> {
    let mut domains: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (key, bytes) in now {
        let Some(before) = last.get(key) else {
            continue;
        };
        let passed = (*bytes)?.checked_sub((*before)?)?;
        let (group, domain) = key;
        let sum = domains.entry(domain.clone()).or_default();
        sum.1 += passed;
        if group == jobs {
            sum.0 += passed;
        }
    }
    Some(domains)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Files(tempfile::TempDir, Counters);

    impl Files {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let counters = Counters::new(folder.path().to_owned(), "jobs");
            Self(folder, counters)
        }

        /// Of a group, `.` for the default one, in both domains.
        fn put(&self, group: &str, bytes: [&str; 2]) {
            for (domain, bytes) in bytes.into_iter().enumerate() {
                let folder = self
                    .0
                    .path()
                    .join(format!("{group}/mon_data/mon_L3_0{domain}"));
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(folder.join("mbm_total_bytes"), format!("{bytes}\n")).unwrap();
            }
        }

        fn read(&mut self, second: u64) -> Option<(f64, f64)> {
            let bandwidth = self.1.read(Nanos(second * 1_000_000_000))?;
            Some((bandwidth.jobs, bandwidth.total))
        }
    }

    #[test]
    fn all_groups_count_and_of_the_domains_the_busiest() {
        let mut files = Files::new();
        assert_eq!(files.read(1), None, "nothing is mounted");
        files.put(".", ["1000", "1000"]);
        files.put("jobs", ["100", "0"]);
        files.put("info", ["0", "0"]);
        assert_eq!(files.read(2), None, "once is not enough");
        files.put(".", ["1200", "1000"]);
        files.put("jobs", ["500", "100"]);
        // New, so that it is not known since when it counts.
        files.put("others", ["90000", "0"]);
        assert_eq!(files.read(4), Some((200.0, 300.0)));
        files.put("others", ["90000", "1000"]);
        assert_eq!(files.read(5), Some((0.0, 1000.0)));
    }

    #[test]
    fn what_the_processor_does_not_say_or_counts_anew_is_not_known() {
        let mut files = Files::new();
        files.put(".", ["1000", "1000"]);
        files.put("jobs", ["100", "0"]);
        files.read(1);
        files.put("jobs", ["Unavailable", "0"]);
        assert_eq!(files.read(2), None);
        files.put("jobs", ["300", "0"]);
        assert_eq!(files.read(3), None);
        assert_eq!(files.read(4), Some((0.0, 0.0)));
        files.put("jobs", ["10", "0"]);
        assert_eq!(files.read(5), None);
        assert_eq!(files.read(5), None, "no time has passed");
    }
}
