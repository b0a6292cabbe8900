// SPDX-License-Identifier: Apache-2.0
//! A kernel's files, as far as plain files can be like them. Cores have 1.0, 1.6, 2.0 and 2.6 GHz.

use std::path::PathBuf;

use weir_governor::config::{self, Config};
use weir_governor::root::Root;

#[path = "../cpufreq/mod.rs"]
pub(crate) mod cpufreq;

pub(crate) struct Kernel {
    folder: tempfile::TempDir,
    policies: usize,
}

impl Kernel {
    /// So many cores, each with a policy of its own, and this machine's processes.
    pub(crate) fn new(cores: usize) -> Self {
        let kernel = Self::without_proc(cores);
        std::os::unix::fs::symlink("/proc", kernel.path("proc")).unwrap();
        kernel
    }

    /// The same with no process but those that are made up.
    pub(crate) fn without_processes(cores: usize) -> Self {
        let kernel = Self::without_proc(cores);
        std::fs::create_dir_all(kernel.path("proc/sys/kernel/random")).unwrap();
        std::fs::write(kernel.path("proc/sys/kernel/random/boot_id"), "made up\n").unwrap();
        kernel
    }

    fn without_proc(cores: usize) -> Self {
        let kernel = Self {
            // In memory, where it is quick to be sure that a file is on disk.
            folder: tempfile::tempdir_in("/dev/shm").unwrap(),
            policies: cores,
        };
        for core in 0..cores {
            kernel.add(core, &[core]);
        }
        kernel
    }

    pub(crate) fn add(&self, policy: usize, cores: &[usize]) {
        cpufreq::make(self.folder.path(), policy, cores).unwrap();
    }

    pub(crate) fn root(&self) -> Root {
        Root::new(self.folder.path())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn policy(&self, policy: usize) -> PathBuf {
        cpufreq::folder(self.folder.path(), policy)
    }

    pub(crate) fn write(&self, policy: usize, file: &str, text: &str) {
        let path = self.policy(policy).join(file);
        std::fs::write(path, format!("{text}\n")).unwrap();
    }

    /// The first line: a plain file keeps the end of a longer one.
    pub(crate) fn read(&self, policy: usize, file: &str) -> String {
        let text = std::fs::read_to_string(self.policy(policy).join(file)).unwrap();
        text.lines().next().unwrap_or_default().to_owned()
    }

    /// As intel_pstate and amd-pstate are: no governor that does what it is told, and no table.
    pub(crate) fn clamp_only(&self) {
        for policy in 0..self.policies {
            self.write(
                policy,
                "scaling_available_governors",
                "performance powersave",
            );
            self.write(policy, "scaling_governor", "powersave");
            std::fs::remove_file(self.policy(policy).join("scaling_available_frequencies"))
                .unwrap();
        }
    }

    /// A device that cools, of this type and in this state.
    pub(crate) fn cooling(&self, number: usize, kind: &str, state: u32) {
        let device = self.path(&format!("sys/class/thermal/cooling_device{number}"));
        std::fs::create_dir_all(&device).unwrap();
        std::fs::write(device.join("type"), format!("{kind}\n")).unwrap();
        std::fs::write(device.join("cur_state"), format!("{state}\n")).unwrap();
    }

    /// Takes a policy away, with its files.
    pub(crate) fn vanish(&self, policy: usize) {
        std::fs::rename(self.policy(policy), self.path("gone")).unwrap();
    }

    /// Brings it back as the kernel does: with the governor that it had.
    pub(crate) fn return_of(&self, policy: usize) {
        std::fs::rename(self.path("gone"), self.policy(policy)).unwrap();
    }

    /// A program that is no attribute any more: opening for writing fails, whoever asks.
    pub(crate) fn read_only(&self, policy: usize, file: &str) {
        let path = self.policy(policy).join(file);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(path).unwrap();
    }

    /// An attribute becomes one of this machine's own, or any other file.
    pub(crate) fn link(&self, policy: usize, file: &str, to: &str) {
        let path = self.policy(policy).join(file);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(to, path).unwrap();
    }

    pub(crate) fn is_as_found(&self, policy: usize) -> bool {
        let governor = self.read(policy, "scaling_governor");
        let limits = ["scaling_min_freq", "scaling_max_freq"].map(|file| self.read(policy, file));
        ["schedutil", "powersave"].contains(&governor.as_str()) && limits == ["1000000", "2600000"]
    }

    /// `setspeed` of every policy, where `userspace` governs.
    pub(crate) fn speeds(&self) -> Vec<String> {
        let speed = |policy| match self.read(policy, "scaling_governor").as_str() {
            "userspace" => self.read(policy, "scaling_setspeed"),
            other => other.to_owned(),
        };
        (0..self.policies).map(speed).collect()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("run")
    }

    pub(crate) fn ring(&self) -> PathBuf {
        self.path("events/weir.events")
    }

    /// A configuration with a tick of 10 ms and this policy.
    pub(crate) fn config_file(&self, policy: &str) -> PathBuf {
        let text = format!(
            "policy: {policy}\ntick: 10ms\nstate_directory: {}\nevents: {{ path: {}, lanes: 64, events_per_lane: 16 }}\nadmin: {{ listen: '127.0.0.1:0' }}\n",
            self.state().display(),
            self.ring().display()
        );
        let path = self.path("g.yaml");
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn config(&self, policy: &str) -> Config {
        config::load(&self.config_file(policy)).unwrap()
    }
}

/// Waits for what another process does.
pub(crate) fn wait_for(what: &str, is: impl FnMut() -> bool) {
    wait_or_tell(what, is, String::new);
}

/// The same; what `tell` says is in the panic.
pub(crate) fn wait_or_tell(what: &str, mut is: impl FnMut() -> bool, tell: impl Fn() -> String) {
    for _ in 0..3000 {
        if is() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("waited for {what}\n{}", tell());
}
