// SPDX-License-Identifier: Apache-2.0
//! The six jobs: programs that can be had, in the place of document 004's.
//!
//! None of them is PARSEC's or SPLASH's. Each has some of the nature of its original, one thread, and CPU time in the
//! proportion of the original's time.

use std::path::Path;

use anyhow::{Context, Result};
use weir_sim::colocation::published::{JOBS, PART3_S};

use crate::colocation::calibration::cpu_time;
use crate::colocation::jobs::{self, Job, THREADS};
use crate::colocation::material::{text, video};
use crate::colocation::programs::Programs;

/// Behind memcached, which one of the nodes shares its core with.
const NICE: [&str; 3] = ["/usr/bin/nice", "-n", "5"];

/// What one of document 004's jobs is here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StandIn {
    /// Frames go through stages, as ferret's pictures do.
    X264,
    /// Compression, as dedup's.
    Zstd,
    /// A stressor of stress-ng: its name, and its flags, of which the last is told how many operations.
    Stress(&'static str, &'static [&'static str]),
}

/// By job, with how much of it is tried: some tenths of a second.
pub const STAND_INS: [(&str, StandIn, u64); 6] = [
    ("ferret", StandIn::X264, 12),
    ("dedup", StandIn::Zstd, 2 << 20),
    // It mines a tree.
    (
        "freqmine",
        stress(
            "tree search",
            &[
                "--tsearch",
                THREADS,
                "--tsearch-size",
                "16384",
                "--tsearch-ops",
            ],
        ),
        30,
    ),
    // Its formula is exponentials and logarithms.
    (
        "blackscholes",
        stress(
            "exp and log",
            &["--cpu", THREADS, "--cpu-method", "explog", "--cpu-ops"],
        ),
        1_000,
    ),
    (
        "fft",
        stress(
            "FFT",
            &["--cpu", THREADS, "--cpu-method", "fft", "--cpu-ops"],
        ),
        1_000,
    ),
    // It follows pointers all over its memory.
    (
        "canneal",
        stress("skip list", &["--skiplist", THREADS, "--skiplist-ops"]),
        3_000,
    ),
];

const fn stress(name: &'static str, flags: &'static [&'static str]) -> StandIn {
    StandIn::Stress(name, flags)
}

/// 115 KB each of a video, and bytes of text: a job that would need more is shorter than asked for.
const MOST_FRAMES: u64 = 1_500;
const MOST_BYTES: u64 = 200 << 20;

impl StandIn {
    /// For people.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::X264 => "x264".to_owned(),
            Self::Zstd => "zstd".to_owned(),
            Self::Stress(name, _) => format!("stress-ng, {name}"),
        }
    }

    /// What its size counts.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::X264 => "frames",
            Self::Zstd => "bytes",
            Self::Stress(..) => "operations",
        }
    }

    fn most(self) -> u64 {
        match self {
            Self::X264 => MOST_FRAMES,
            Self::Zstd => MOST_BYTES,
            Self::Stress(..) => u64::MAX,
        }
    }

    /// With what it works on in `folder`, which is there.
    fn make(self, programs: &Programs, size: u64, folder: &Path, seed: u64) -> Result<Job> {
        Ok(match self {
            Self::X264 => {
                video::write(&folder.join("video.y4m"), size.try_into()?, seed)?;
                jobs::x264(programs, folder)
            }
            Self::Zstd => {
                text::write(&folder.join("text"), size, seed)?;
                jobs::zstd(programs, folder)
            }
            Self::Stress(_, flags) => jobs::stress(programs, flags, size, folder),
        })
    }
}

/// What stands for one of document 004's jobs.
#[must_use]
pub fn stand_in(job: &str) -> Option<StandIn> {
    let mut all = STAND_INS.iter();
    all.find_map(|(name, stand_in, _)| (*name == job).then_some(*stand_in))
}

/// Seconds that document 004 measured of a job.
#[must_use]
pub fn published_s(job: &str) -> f64 {
    let index = JOBS.iter().position(|name| *name == job);
    index.map_or(f64::NAN, |index| PART3_S[index])
}

/// Sizes of [`STAND_INS`] with which each takes its part of the CPU time, by trying each small.
///
/// # Errors
/// A program fails.
pub fn sizes(programs: &Programs, scale: f64, folder: &Path, seed: u64) -> Result<[u64; 6]> {
    let mut sizes = [0; 6];
    std::fs::create_dir_all(folder)?;
    for (size, (name, stand_in, tried)) in sizes.iter_mut().zip(STAND_INS) {
        let job = stand_in.make(programs, tried, folder, seed)?;
        let took = cpu_time(&job).with_context(|| format!("trying {name}"))?;
        // No clock tells less than a millisecond of CPU time.
        let times = scale * published_s(name) / took.as_secs_f64().max(0.001);
        *size = scaled(tried, times, stand_in.most());
    }
    // It is made again with its size.
    let _ = std::fs::remove_dir_all(folder);
    Ok(sizes)
}

fn scaled(tried: u64, times: f64, most: u64) -> u64 {
    ((tried as f64 * times) as u64).clamp(1, most)
}

/// The jobs of these sizes, in the order of [`STAND_INS`], with what they work on in `folder`, which is made.
///
/// # Errors
/// The folder cannot be written.
pub fn make(programs: &Programs, sizes: &[u64; 6], folder: &Path, seed: u64) -> Result<Vec<Job>> {
    std::fs::create_dir_all(folder)?;
    let all = STAND_INS.iter().zip(sizes);
    let made = all.map(|((name, stand_in, _), size)| {
        let job = stand_in.make(programs, *size, folder, seed)?;
        let line = NICE.map(str::to_owned).into_iter().chain(job.line);
        Ok(Job {
            name,
            threads: 1,
            line: line.collect(),
            ..job
        })
    });
    made.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_of_the_document_has_a_stand_in_with_one_thread_behind_memcached() {
        let programs = Programs::all("/opt/x/usr/bin/true".into());
        let folder = tempfile::tempdir().unwrap();
        let made = make(&programs, &[1, 10, 3, 4, 5, 6], folder.path(), 1).unwrap();
        let mut names: Vec<&str> = made.iter().map(|job| job.name).collect();
        names.sort_unstable();
        let mut wanted = JOBS.to_vec();
        wanted.sort_unstable();
        assert_eq!(names, wanted);
        for job in &made {
            assert_eq!(
                (&job.line[..3], job.threads),
                (&NICE.map(str::to_owned)[..], 1)
            );
            assert!(job.line[3].ends_with("/true"), "{job:?}");
            assert!(stand_in(job.name).is_some() && published_s(job.name) > 0.0);
        }
        assert!(published_s("raytrace").is_nan());
    }

    #[test]
    fn a_job_grows_to_its_part_and_not_beyond_what_a_disk_holds() {
        assert_eq!(scaled(1_000, 2.5, u64::MAX), 2_500);
        assert_eq!(scaled(12, 1e9, MOST_FRAMES), MOST_FRAMES);
        assert_eq!(scaled(12, 0.0, MOST_FRAMES), 1);
    }
}
