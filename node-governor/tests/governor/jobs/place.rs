// SPDX-License-Identifier: Apache-2.0
//! A state directory, logs and cgroups of a test's own, with the jobs that run there.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use weir_governor::apply::groups::{Groups, Members};
use weir_governor::cores::{Act, Cores, JobPlan};
use weir_governor::jobs::runner::{Error, Runner};
use weir_governor::jobs::spec::{Batch, Command, OnStop, Source, Spec};
use weir_governor::jobs::{Job, Queue, State};
use weir_governor::root::Root;
use weir_governor::sense::now;
use weir_needs::{Need, skip};

use crate::kernel::wait_or_tell;

/// How processes are gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Those of this machine.
    Cgroups,
    /// Affinity and signals, as on a machine without.
    Nothing,
}

/// Removed, with all processes in it, when it goes out of scope.
#[derive(Debug)]
pub(super) struct Place {
    folder: PathBuf,
    pub(super) groups: Groups,
    pub(super) batch: Batch,
    by: By,
}

/// Of this process.
static PLACES: AtomicU32 = AtomicU32::new(0);

impl Place {
    /// None, and said so, where the machine has no cgroups that this process may write.
    pub(super) fn new(by: By) -> Option<Place> {
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        let name = format!("weir-jobs-{}-{number}-{by:?}", std::process::id());
        // In memory, where it is quick to be sure that a file is on disk.
        let folder = Path::new("/dev/shm").join(name);
        std::fs::create_dir_all(folder.join("root")).unwrap();
        std::os::unix::fs::symlink("/proc", folder.join("root/proc")).unwrap();
        let place = Place::of_another(&folder);
        if place.has_cgroups() {
            let made = place.groups.make(&place.batch.cgroup);
            if !matches!(made, Ok(Some(_))) {
                skip(Need::Cgroups, format!("{made:?}"));
                return None;
            }
        }
        Some(place)
    }

    /// Both, as far as the machine has them.
    pub(super) fn both() -> Vec<Place> {
        let both = [By::Nothing, By::Cgroups];
        both.into_iter().filter_map(Place::new).collect()
    }

    /// One that another process has made.
    pub(super) fn of_another(folder: &Path) -> Place {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let by = match name.ends_with("Cgroups") {
            true => By::Cgroups,
            false => By::Nothing,
        };
        Place {
            groups: groups(by, folder),
            batch: Batch {
                cgroup: name.to_owned(),
                logs: folder.join("logs"),
                on_stop: OnStop::Keep,
                grace: Duration::from_secs(20),
            },
            folder: folder.to_owned(),
            by,
        }
    }

    /// Whose it is removes it.
    pub(super) fn forget(self) {
        std::mem::forget(self);
    }

    pub(super) fn has_cgroups(&self) -> bool {
        self.by == By::Cgroups
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn state(&self) -> PathBuf {
        let state = self.path("state");
        std::fs::create_dir_all(&state).unwrap();
        state
    }

    /// A file in a job's folder.
    pub(super) fn record(&self, job: &str, file: &str) -> PathBuf {
        self.state().join("jobs").join(job).join(file)
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(super) fn log(&self, job: &str) -> String {
        self.read(&format!("logs/{job}.log"))
    }

    pub(super) fn lines(&self, name: &str) -> usize {
        self.read(name).lines().count()
    }

    /// A command of the shell, in the place's folder.
    pub(super) fn shell(&self, name: &str, text: &str) -> Spec {
        let mut spec = spec(name, &["/bin/sh", "-c", text]);
        if let Source::Command(command) = &mut spec.source {
            command.directory = Some(self.folder.clone());
        }
        spec
    }

    pub(super) fn open(&self, specs: &[Spec]) -> Result<Runner, Error> {
        let runner = Runner::open(
            specs.to_vec(),
            self.batch.clone(),
            &self.state(),
            &self.groups,
            alone(),
            Vec::new(),
        )?;
        Ok(runner.with_keeper(env!("CARGO_BIN_EXE_weir-governor")))
    }

    /// With a program of the shell that keeps jobs; `"$@"` is what it is told.
    pub(super) fn open_kept_by(&self, specs: &[Spec], script: &str) -> Runner {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path("keeper");
        let keeper = env!("CARGO_BIN_EXE_weir-governor");
        std::fs::write(&path, format!("#!/bin/sh\nKEEPER={keeper}\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        self.open(specs).unwrap().with_keeper(path)
    }

    pub(super) fn keeper(&self, job: &str) -> Option<Pid> {
        let started = std::fs::read_to_string(self.record(job, "started")).ok()?;
        let started: serde_json::Value = serde_json::from_str(&started).unwrap();
        Pid::from_raw(started["keeper"]["pid"].as_i64()? as i32)
    }

    /// Kills a job's keeper by the signal that cannot be caught, once it has one.
    pub(super) fn kill_keeper(&self, job: &str) {
        wait_or_tell(
            "a keeper",
            || self.keeper(job).is_some(),
            || format!("{self:?}"),
        );
        kill_process(self.keeper(job).unwrap(), Signal::KILL).unwrap();
    }

    /// A cgroup's processes; none where it is not there.
    pub(super) fn processes(&self, path: &str) -> Vec<Pid> {
        let group = self.groups.existing(&Members::Cgroup(path.to_owned()));
        group.map_or(Vec::new(), |group| group.processes().unwrap_or_default())
    }

    /// Every process that was started in the place's folder, or keeps a job of it.
    fn all(&self) -> Vec<Pid> {
        let folder = self.folder.to_str().unwrap();
        let numbers = std::fs::read_dir("/proc").unwrap();
        let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let ours = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let at = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(folder) || at.starts_with(folder)
        };
        let own = std::process::id() as i32;
        numbers
            .filter(|pid| *pid != own)
            .filter(ours)
            .filter_map(Pid::from_raw)
            .collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let thaw = |path: &str| {
            if let Ok(mut group) = self.groups.existing(&Members::Cgroup(path.to_owned())) {
                // There may be nothing to thaw.
                let _ = group.thaw();
            }
        };
        let jobs = std::fs::read_dir(self.state().join("jobs"));
        let names = jobs.into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let names: Vec<String> = names.collect();
        for _ in 0..1000 {
            names
                .iter()
                .for_each(|name| thaw(&format!("{}/{name}", self.batch.cgroup)));
            let all = self.all();
            for process in &all {
                let _ = kill_process(*process, Signal::KILL);
            }
            let group = self
                .groups
                .existing(&Members::Cgroup(self.batch.cgroup.clone()));
            let removed = group.map_or(true, |group| group.remove().is_ok());
            if all.is_empty() && removed {
                return std::fs::remove_dir_all(&self.folder).unwrap();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        eprintln!("{self:?}: not removed");
    }
}

fn groups(by: By, folder: &Path) -> Groups {
    // Under a folder with nothing but processes no cgroups are mounted.
    let root = match by {
        By::Cgroups => PathBuf::from("/"),
        By::Nothing => folder.join("root"),
    };
    Groups::find(&Root::new(root)).unwrap()
}

/// Cores that no service has.
pub(super) fn alone() -> Cores {
    Cores::from([0])
}

pub(super) fn spec(name: &str, line: &[&str]) -> Spec {
    Spec {
        job: Job {
            name: name.to_owned(),
            queue: Queue::Medium,
            threads: 2,
        },
        source: Source::Command(Command {
            line: line.iter().map(ToString::to_string).collect(),
            ..Command::default()
        }),
        takes: None,
    }
}

pub(super) fn run(cores: impl Into<Cores>) -> JobPlan {
    JobPlan {
        act: Act::Run,
        cores: cores.into(),
        threads: 3,
        ..JobPlan::default()
    }
}

pub(super) fn pause() -> JobPlan {
    JobPlan {
        act: Act::Pause,
        ..JobPlan::default()
    }
}

/// One round of a governor.
pub(super) fn round(runner: &mut Runner, plans: &[JobPlan]) {
    runner.tick(now());
    runner.look(now());
    runner.give(plans, |_| true);
    runner.take(plans, now());
}

/// Rounds until it is so.
#[track_caller]
pub(super) fn until(runner: &mut Runner, plans: &[JobPlan], mut is: impl FnMut(&Runner) -> bool) {
    for _ in 0..6000 {
        round(runner, plans);
        if is(runner) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let facts = (0..runner.states().len()).map(|job| runner.facts(job).clone());
    panic!(
        "waited in vain, with {plans:?}: {:?} {:?}",
        runner.states(),
        facts.collect::<Vec<_>>()
    );
}

/// All run on core 0 until they have ended.
#[track_caller]
pub(super) fn until_ended(runner: &mut Runner) {
    let plans = vec![run([0]); runner.states().len()];
    until(runner, &plans, |runner| {
        runner.states().iter().all(|state| state.has_ended())
    });
}

/// Its state is that.
pub(super) fn is(job: usize, state: State) -> impl Fn(&Runner) -> bool {
    move |runner| runner.states()[job] == state
}
