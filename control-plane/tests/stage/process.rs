// SPDX-License-Identifier: Apache-2.0
//! Programs of the project, killed on drop.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::waits::until_there;

pub(crate) const CONTROL: &str = env!("CARGO_BIN_EXE_weir-control");

pub(crate) struct Process(Child);

impl Process {
    /// Starts it with its output in a file.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Self {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(log)
            .unwrap();
        let both = log.try_clone().unwrap();
        command.stdin(Stdio::null()).stdout(both).stderr(log);
        Self(command.spawn().unwrap())
    }

    /// `STOP`, `CONT` or `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        kill.arg(format!("-{name}")).arg(self.0.id().to_string());
        assert!(kill.status().unwrap().success());
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// Waits until it has written the file of its ports, with its log beside it.
    pub(crate) fn until_ports(&mut self, ports: &Path, log: &Path) {
        until_there("ports", || {
            let log = || std::fs::read_to_string(log).unwrap_or_default();
            assert!(!self.has_ended(), "it has ended: {}", log());
            ports.exists().then_some(()).ok_or_else(log)
        });
    }
}

impl Drop for Process {
    /// `SIGKILL`, which a stopped process obeys too.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A free port that nobody takes while its process is dead.
pub(crate) fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], weir_needs::free_port()))
}

/// The folder of the programs that cargo builds for these tests.
pub(crate) fn target() -> &'static Path {
    Path::new(CONTROL).parent().unwrap().parent().unwrap()
}

/// The worker beside weir-control.
pub(crate) fn worker_program() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| beside("weir-worker")).clone()
}

/// The emulated hosts of a language model, beside weir-control.
pub(crate) fn llm_host_program() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| beside("weir-llm-host")).clone()
}

/// A program there when the whole workspace is tested, built here when this package is tested alone.
fn beside(name: &str) -> PathBuf {
    let folder = Path::new(CONTROL).parent().unwrap();
    let program = folder.join(name);
    if !program.exists() {
        let release = folder.ends_with("release");
        cargo(target(), if release { "release" } else { "dev" }, name, &[]);
    }
    program
}

/// The filter that panics when it is told to, for the shell that is tested. Nothing else finds it in its own folder.
pub(crate) fn crashing_filter() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    const FEATURE: [&str; 3] = ["--lib", "--features", "crash-test"];
    let folder = target().join("crash-test");
    let native = || {
        cargo(&folder, "dev", "weir-native", &FEATURE);
        folder.join("debug/libweir_native.so")
    };
    let wasm = || {
        let kind = "wasm32-wasip1";
        // Small and fast is for the module that is shipped; this one is to be there soon.
        let quick = [
            "--config",
            "profile.wasm.lto=\"off\"",
            "--config",
            "profile.wasm.opt-level=1",
            "--config",
            "profile.wasm.codegen-units=16",
            "--target",
            kind,
        ];
        let options = [&FEATURE[..], &quick].concat();
        cargo(&folder, "wasm", "weir-filter", &options);
        folder.join(kind).join("wasm/weir_filter.wasm")
    };
    let build = || crate::tools::shell::native().map_or_else(wasm, |_| native());
    BUILT.get_or_init(build).clone()
}

fn cargo(target: &Path, profile: &str, package: &str, options: &[&str]) {
    let mut command = Command::new(env!("CARGO"));
    command
        .args([
            "build",
            "--quiet",
            "--package",
            package,
            "--profile",
            profile,
        ])
        .args(options)
        .arg("--target-dir")
        .arg(target)
        .current_dir(crate::tools::root());
    assert!(command.status().unwrap().success(), "{command:?} failed");
}
