// SPDX-License-Identifier: Apache-2.0
//! A file with a process's number, as daemons write it. It may be an unprivileged user's, and says whom root confines.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::process::getpid;
use rustix::time::{ClockId, clock_gettime};

use super::super::super::groups::{Groups, Members};
use crate::regular;
use crate::stat::{self, Stat};

/// More than any number has.
const LONGEST: u64 = 32;
/// The kernel's clocks of files and of processes are coarse, and the time of day may be slewed in between.
const SLACK: Duration = Duration::from_secs(1);

/// The process that it names.
pub(super) fn process(path: &Path, groups: &Groups) -> io::Result<Members> {
    let named = |error: String| io::Error::other(format!("{}: {error}", path.display()));
    let written = Written::read(path).map_err(|error| named(error.to_string()))?;
    let process = groups.process(written.pid)?;
    whose(written.owner, written.pid).map_err(named)?;
    if let Members::Process { pid, started } = process
        && is_later(stat::after_boot(started), written.at, booted())
    {
        // The one it names is gone, and another has its number.
        return Err(named(format!("is older than process {pid}")));
    }
    Ok(process)
}

/// When the machine started, by the clock as it is set now.
fn booted() -> SystemTime {
    let since = clock_gettime(ClockId::Boottime);
    let seconds = Duration::from_secs(since.tv_sec.unsigned_abs());
    SystemTime::now() - seconds - Duration::from_nanos(since.tv_nsec.unsigned_abs())
}

/// A process started after the file was written.
fn is_later(started: Duration, written: SystemTime, booted: SystemTime) -> bool {
    booted + started > written + SLACK
}

/// What it says, who may write it, and when that was done last.
#[derive(Debug)]
struct Written {
    pid: i32,
    owner: u32,
    at: SystemTime,
}

impl Written {
    fn read(path: &Path) -> io::Result<Self> {
        let file = regular::open(OpenOptions::new().read(true), path)?;
        let metadata = file.metadata()?;
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes)?;
        let pid = std::str::from_utf8(&bytes).ok();
        // Its content is not shown: it may be anything that its owner has no right to read.
        let pid = pid.and_then(|text| text.trim().parse().ok());
        Ok(Self {
            pid: pid.ok_or_else(|| io::Error::other("has no process id"))?,
            owner: metadata.uid(),
            at: metadata.modified()?,
        })
    }
}

/// Who may write the file says whom root confines: it is root's or the service's own user's, and names neither the
/// governor nor whom the governor comes from.
fn whose(owner: u32, pid: i32) -> Result<(), String> {
    let process = std::fs::metadata(format!("/proc/{pid}"));
    let user = process
        .map_err(|error| format!("process {pid}: {error}"))?
        .uid();
    if owner != 0 && owner != user {
        return Err(format!(
            "belongs to user {owner}, and process {pid} to user {user}"
        ));
    }
    let mut ancestor = Some(getpid());
    while let Some(one) = ancestor {
        let number = one.as_raw_nonzero().get();
        if number == pid {
            return Err(format!("process {pid} is the governor or started it"));
        }
        // None of the first process.
        ancestor = Stat::read(&number.to_string()).and_then(|stat| stat.parent);
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use std::process::{Child, Command};

    use super::*;
    use crate::root::Root;

    /// Ends with the test.
    pub(in super::super) struct Sleeping(Child);

    impl Sleeping {
        pub(in super::super) fn new() -> Self {
            Self(Command::new("sleep").arg("60").spawn().unwrap())
        }

        pub(in super::super) fn pid(&self) -> i32 {
            self.0.id() as i32
        }
    }

    impl Drop for Sleeping {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn named_by(path: &Path) -> Result<Members, String> {
        let groups = Groups::find(&Root::new("/")).unwrap();
        process(path, &groups).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_of_somebody_elses_and_the_governors_own_family_are_no_service() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        std::fs::write(&file, "").unwrap();
        let own = std::process::id() as i32;
        let user = rustix::process::geteuid().as_raw();
        let family = |pid| whose(user, pid).unwrap_err();
        assert!(family(own).contains("is the governor or started it"));
        assert!(family(1).contains("started it") || family(1).contains("belongs to"));
        let child = Sleeping::new();
        std::fs::write(&file, format!("{}\n", child.pid())).unwrap();
        named_by(&file).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(12345), None).unwrap();
            let error = named_by(&file).unwrap_err();
            let reason = format!(
                "belongs to user 12345, and process {} to user 0",
                child.pid()
            );
            assert!(error.ends_with(&reason), "{error}");
        }
    }

    #[test]
    fn a_link_a_pipe_and_a_long_file_are_refused_and_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "root:secret\n").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        let pipe = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let child = Sleeping::new();
        let long = folder.path().join("long");
        std::fs::write(&long, format!("{:>1000}", child.pid())).unwrap();
        for path in [&secret, &link, &pipe, &long] {
            let error = named_by(path).unwrap_err();
            let shown = path.display().to_string();
            let said = error.strip_prefix(&shown).expect(&error);
            assert!(!said.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_older_than_the_process_names_one_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        let child = Sleeping::new();
        std::fs::write(&path, child.pid().to_string()).unwrap();
        named_by(&path).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let earlier = SystemTime::now() - Duration::from_secs(60);
        file.set_modified(earlier).unwrap();
        let error = named_by(&path).unwrap_err();
        let reason = format!("is older than process {}", child.pid());
        assert!(error.ends_with(&reason), "{error}");
    }

    #[test]
    fn a_second_between_a_process_and_its_file_is_the_clocks() {
        let booted = SystemTime::UNIX_EPOCH;
        let later = |millis, written| {
            let written = booted + Duration::from_millis(written);
            is_later(Duration::from_millis(millis), written, booted)
        };
        assert!(!later(5_000, 9_000) && !later(5_000, 4_000));
        assert!(later(5_000, 3_999));
    }
}
