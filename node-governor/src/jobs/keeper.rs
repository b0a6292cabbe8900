// SPDX-License-Identifier: Apache-2.0
//! Who stays with a job from its start to its end, whatever becomes of the governor: a process of its own, in the
//! job's group and in no session of anybody's.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, WaitOptions, getpid, getpriority_process, getrlimit,
    set_child_subreaper, setpriority_process, setrlimit, setsid, wait,
};
use rustix::thread::{CpuSet, sched_setaffinity, set_no_new_privs};

use super::record::{Ended, Folder, Held, Process, Started};
use super::spec::{Command, Source, THREADS};
use crate::regular;
use crate::root::core_list;
use crate::stat::Stat;

/// How long it is tried to say how a job has ended, once a second.
const PATIENCE: u32 = 600;

/// Open files of a job, which may ask for more itself: the kernel's default (`INR_OPEN_CUR`).
const FILES: u64 = 1024;

/// Runs the job that is asked for in this folder, and says there how it has ended. Does nothing where none is asked
/// for, or another keeper has taken it.
pub fn keep(folder: &Path) -> io::Result<()> {
    close_others()?;
    match setsid() {
        // It leads one already.
        Ok(_) | Err(Errno::PERM) => {}
        Err(errno) => return Err(errno.into()),
    }
    let folder = Folder::open(folder)?;
    let held = folder.wait()?;
    let Some(mut started) = folder.started()? else {
        return Ok(());
    };
    if started.keeper.is_some() || folder.ended()?.is_some() {
        return Ok(());
    }
    let own = Stat::read("self").ok_or_else(|| io::Error::other("/proc/self/stat"))?;
    started.keeper = Some(Process {
        pid: getpid().as_raw_nonzero().get(),
        started: own.started,
    });
    held.start(&started)?;
    let (code, trouble) = match run(&started) {
        Ok(code) => (Some(code), None),
        Err(trouble) => (None, Some(trouble)),
    };
    let ended = Ended {
        source: started.source,
        threads: started.threads,
        code,
        trouble,
        cpu: cpu(),
    };
    let said = say(&held, &ended);
    // The kernel gives the lock back when there is nothing left of this process to freeze or to wait for.
    std::mem::forget(held);
    std::mem::forget(folder);
    said
}

/// Whatever the governor had open, or who started it.
fn close_others() -> io::Result<()> {
    let open = std::fs::read_dir("/proc/self/fd")?;
    let number =
        |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let open: Vec<i32> = open.filter_map(number).collect();
    for number in open.into_iter().filter(|number| *number > 2) {
        // The one that they were read from is closed already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

/// The exit code of the command, once everything that came from it has ended; or why it did not run.
fn run(started: &Started) -> Result<i32, String> {
    let Source::Command(command) = &started.source else {
        return Err("it is no command".to_owned());
    };
    be_ordinary();
    enter(started)?;
    // Nor does anything that is started from here become another user by a program's mode.
    set_no_new_privs(true).map_err(|errno| format!("cannot give up privileges: {errno}"))?;
    set_child_subreaper(Some(getpid())).map_err(|errno| format!("cannot stay with it: {errno}"))?;
    let log = log(&started.log).map_err(|error| format!("{}: {error}", started.log.display()))?;
    let main = start(command, started.threads, log)?;
    let mut code = None;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == main => {
                let signal = status.terminating_signal().map(|signal| 128 + signal);
                code = status.exit_status().or(signal);
            }
            Ok(_) | Err(Errno::INTR) => {}
            // Nobody is left.
            Err(Errno::CHILD) => break,
            Err(errno) => return Err(format!("cannot wait for it: {errno}")),
        }
    }
    code.ok_or_else(|| "its end was not seen".to_owned())
}

/// What the governor has so that nothing holds it up is not for a job: a priority, that it is killed last when
/// memory runs out, and more open files than programs expect that use select(2).
fn be_ordinary() {
    // What cannot be changed is as good as it can be.
    if getpriority_process(None).is_ok_and(|nice| nice < 0) {
        let _ = setpriority_process(None, 0);
    }
    let score = "/proc/self/oom_score_adj";
    let protected = |text: String| text.trim().parse().is_ok_and(|score: i32| score < 0);
    if std::fs::read_to_string(score).is_ok_and(protected) {
        let _ = std::fs::write(score, "0");
    }
    let files = getrlimit(Resource::Nofile);
    let ordinary = files.maximum.map_or(FILES, |most| most.min(FILES));
    let current = Some(ordinary);
    let _ = setrlimit(Resource::Nofile, Rlimit { current, ..files });
}

/// Into the job's cgroup, or onto its cores: whatever is started comes from here.
fn enter(started: &Started) -> Result<(), String> {
    for door in &started.doors {
        let entered = std::fs::write(door, "0");
        entered.map_err(|error| format!("{}: {error}", door.display()))?;
    }
    if started.cgroup.is_some() {
        return Ok(());
    }
    let mut cores = CpuSet::new();
    let numbers = core_list(&started.cores).unwrap_or_default();
    for core in numbers
        .into_iter()
        .filter(|core| (*core as usize) < CpuSet::MAX_CPU)
    {
        cores.set(core as usize);
    }
    sched_setaffinity(None, &cores).map_err(|errno| format!("cores {}: {errno}", started.cores))
}

fn log(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    regular::open(options.create(true).append(true).mode(0o640), path)
}

fn start(command: &Command, threads: u32, log: File) -> Result<Pid, String> {
    let fill = |text: &str| text.replace(THREADS, &threads.to_string());
    let [program, arguments @ ..] = command.line.as_slice() else {
        return Err("it has no program".to_owned());
    };
    let directory = command.directory.as_deref().unwrap_or(Path::new("/"));
    let shown = directory.display();
    match std::fs::metadata(directory) {
        Ok(there) if there.is_dir() => {}
        Ok(_) => return Err(format!("{shown}: not a directory")),
        Err(error) => return Err(format!("{shown}: {error}")),
    }
    let environment = command
        .environment
        .iter()
        .map(|(name, value)| (name, fill(value)));
    let environment: BTreeMap<_, _> = environment.collect();
    let failed = |error: io::Error| format!("{program}: {error}");
    let mut child = std::process::Command::new(fill(program));
    child
        .args(arguments.iter().map(|argument| fill(argument)))
        .current_dir(directory)
        // This process has no other variable but PATH.
        .envs(environment)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(failed)?)
        .stderr(log);
    if let Some((user, group)) = command.user {
        child.uid(user).gid(group);
    }
    let child = child.spawn().map_err(failed)?;
    Ok(Pid::from_child(&child))
}

/// Of all that was started and has been waited for: that is everything.
fn cpu() -> Option<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    let micros = |time: nix::sys::time::TimeVal| {
        let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
        Duration::from_micros(micros.try_into().unwrap_or_default())
    };
    Some(micros(usage.user_time()) + micros(usage.system_time()))
}

/// A full disk may have room again; a folder that is gone does not come back.
fn say(held: &Held<'_>, ended: &Ended) -> io::Result<()> {
    let mut tries = 0;
    loop {
        match held.end(ended) {
            Err(error) if error.kind() != ErrorKind::NotFound && tries < PATIENCE => {
                tries += 1;
                std::thread::sleep(Duration::from_secs(1));
            }
            said => return said,
        }
    }
}
