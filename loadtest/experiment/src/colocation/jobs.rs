// SPDX-License-Identifier: Apache-2.0
//! The batch jobs: three programs, a queue each.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use serde::Serialize;
use weir_memcached_load::server::libraries;

use crate::colocation::material::{text, video};
use crate::colocation::programs::Programs;

/// In an argument, stands for the number of threads: weir-governor's word for it.
pub const THREADS: &str = "{threads}";

/// How much each job has to do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sizes {
    /// stress-ng's operations.
    pub operations: u64,
    /// x264's frames.
    pub frames: u32,
    /// zstd's bytes.
    pub bytes: u64,
}

/// A job that can be started as often as one likes.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its name.
    pub name: &'static str,
    /// Its queue: by length and scaling, as document 004's part 4.2 sorts its jobs.
    pub queue: &'static str,
    /// It is started with so many.
    pub threads: u32,
    /// Program and arguments, with [`THREADS`] where the number belongs.
    pub line: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
}

/// In the order of their queues, with what they work on in `folder`, which is made.
///
/// # Errors
/// The folder cannot be written.
pub fn make(programs: &Programs, sizes: Sizes, folder: &Path, seed: u64) -> Result<Vec<Job>> {
    std::fs::create_dir_all(folder)?;
    video::write(&folder.join("video.y4m"), sizes.frames, seed)?;
    text::write(&folder.join("text"), sizes.bytes, seed)?;
    Ok(vec![
        stress_ng(programs, sizes.operations, folder),
        x264(programs, folder),
        zstd(programs, folder),
    ])
}

/// One thread, whatever there is: the short queue.
fn stress_ng(programs: &Programs, operations: u64, folder: &Path) -> Job {
    let fft = ["--cpu", THREADS, "--cpu-method", "fft", "--cpu-ops"];
    stress(programs, &fft, operations, folder)
}

/// One of stress-ng's stressors: its flags, of which the last is told how many operations.
pub(crate) fn stress(programs: &Programs, flags: &[&str], operations: u64, folder: &Path) -> Job {
    let operations = operations.to_string();
    job(
        ("stress-ng", "short", 1),
        &programs.stress_ng,
        &[flags, &[&*operations]].concat(),
        folder,
    )
}

/// Two threads gain something: frames wait for one another.
pub(crate) fn x264(programs: &Programs, folder: &Path) -> Job {
    job(
        ("x264", "medium", 2),
        &programs.x264,
        &[
            "--preset",
            "veryslow",
            "--threads",
            THREADS,
            "--no-progress",
            "-o",
            "video.264",
            "video.y4m",
        ],
        folder,
    )
}

/// Parts of 1 MiB that know nothing of one another: it scales.
pub(crate) fn zstd(programs: &Programs, folder: &Path) -> Job {
    let threads = format!("--threads={THREADS}");
    job(
        ("zstd", "long", 2),
        &programs.zstd,
        &[
            "-19", &threads, "-B1MiB", "--force", "--quiet", "text", "-o", "text.zst",
        ],
        folder,
    )
}

fn job(
    (name, queue, threads): (&'static str, &'static str, u32),
    program: &Path,
    arguments: &[&str],
    folder: &Path,
) -> Job {
    let program = program.display().to_string();
    Job {
        name,
        queue,
        threads,
        line: std::iter::once(program)
            .chain(arguments.iter().map(|argument| (*argument).to_owned()))
            .collect(),
        folder: folder.to_owned(),
    }
}

impl Job {
    /// The command, with its threads filled in.
    #[must_use]
    pub fn command(&self) -> Command {
        let threads = self.threads.to_string();
        let mut command = Command::new(&self.line[0]);
        if let Some(libraries) = self.libraries() {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        let arguments = self.line[1..].iter();
        command
            .args(arguments.map(|argument| argument.replace(THREADS, &threads)))
            .current_dir(&self.folder);
        command
    }

    /// Those that were unpacked beside its program, which another one may start.
    #[must_use]
    pub fn libraries(&self) -> Option<PathBuf> {
        let mut words = self.line.iter();
        words.find_map(|word| libraries(Path::new(word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_told_its_threads() {
        let programs = Programs::all("/usr/bin/true".into());
        let sizes = Sizes {
            operations: 5,
            frames: 1,
            bytes: 10,
        };
        let folder = tempfile::tempdir().unwrap();
        let jobs = make(&programs, sizes, folder.path(), 1).unwrap();
        let queues: Vec<&str> = jobs.iter().map(|job| job.queue).collect();
        assert_eq!(queues, ["short", "medium", "long"]);
        for job in &jobs {
            let asked = job.line.iter().filter(|word| word.contains(THREADS));
            assert_eq!(asked.count(), 1, "{job:?}");
            let command = format!("{:?}", job.command());
            assert!(!command.contains(THREADS), "{command}");
        }
    }
}
