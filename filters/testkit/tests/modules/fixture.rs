// SPDX-License-Identifier: Apache-2.0
//! Builds the modules of `fixtures/`.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use weir_testkit::{Host, LogLevel, Module, Vm};

pub(crate) static HTTP: LazyLock<Module> = LazyLock::new(|| module("http"));
pub(crate) static SHARED: LazyLock<Module> = LazyLock::new(|| module("shared"));
pub(crate) static CALLOUTS: LazyLock<Module> = LazyLock::new(|| module("callouts"));

/// One build for all, below the target directory of the tests.
static BUILT: LazyLock<std::path::PathBuf> = LazyLock::new(|| {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fixtures");
    let status = Command::new(env!("CARGO"))
        .args([
            "build",
            "--release",
            "--locked",
            "--examples",
            "--target",
            "wasm32-wasip1",
            "--manifest-path",
        ])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        // Flags meant for the tests, such as those of coverage, do not suit the modules.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .expect("cargo runs");
    assert!(
        status.success(),
        "the fixtures do not build; is the target wasm32-wasip1 installed?"
    );
    target.join("wasm32-wasip1/release/examples")
});

fn module(name: &str) -> Module {
    Module::from_file(BUILT.join(name).with_extension("wasm")).expect("a module")
}

/// A VM in a new host.
pub(crate) fn start(module: &Module) -> Vm {
    Host::new().vm(module).start().expect("starts")
}

/// What the module logged at level info, newest last.
pub(crate) fn said(vm: &Vm) -> Vec<String> {
    vm.logs_at(LogLevel::Info)
}
