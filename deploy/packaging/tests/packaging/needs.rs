// SPDX-License-Identifier: Apache-2.0
//! What tests need, and where it is.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    /// A program or folder that an environment variable names.
    Variable(&'static str),
    /// A program on the `PATH`.
    Program(&'static str),
    /// A root folder of one's own, for whoever runs the tests. Some systems allow it to none but root.
    UserNamespace,
}

pub(crate) const ENVOY: Need = Need::Variable("WEIR_ENVOY");
pub(crate) const FILTER: Need = Need::Variable("WEIR_FILTER_WASM");
/// Of weir-control, weir-governor, and what stands beside them in development.
pub(crate) const PROGRAMS: Need = Need::Variable("WEIR_BIN_DIR");
/// A client of language models.
pub(crate) const OPENAI: Need = Need::Variable("WEIR_OPENAI_DIR");
pub(crate) const CRANE: Need = Need::Variable("WEIR_CRANE");
pub(crate) const ENVOY_GATEWAY: Need = Need::Variable("WEIR_ENVOY_GATEWAY");
pub(crate) const KUSTOMIZE: Need = Need::Variable("WEIR_KUSTOMIZE");
pub(crate) const HELM: Need = Need::Variable("WEIR_HELM");
pub(crate) const KUBECTL_VALIDATE: Need = Need::Variable("WEIR_KUBECTL_VALIDATE");
/// A folder of custom resource definitions.
pub(crate) const CRDS: Need = Need::Variable("WEIR_CRDS");
/// The folder of a release, which `cargo xtask test --only release` makes.
pub(crate) const RELEASE: Need = Need::Variable("WEIR_RELEASE");
/// Runs programs of arm64.
pub(crate) const EMULATOR: Need = Need::Variable("WEIR_QEMU_AARCH64_STATIC");
/// Where the emulator finds arm64's C library, and looks for it by this variable.
pub(crate) const ARM64_ROOT: Need = Need::Variable("QEMU_LD_PREFIX");
pub(crate) const SYSTEMD_ANALYZE: Need = Need::Program("systemd-analyze");

impl Need {
    /// Why it cannot be had.
    pub(crate) fn missing(self) -> Option<String> {
        match self {
            Self::Variable(name) => weir_needs::provided(name).err().map(|lacking| lacking.why),
            Self::Program(name) => match Command::new(name).arg("--version").output() {
                Ok(_) => None,
                Err(error) => Some(format!("`{name}`: {error}")),
            },
            Self::UserNamespace => {
                let mut command = Command::new("unshare");
                let output = command.args(["--user", "--map-root-user", "true"]).output();
                let had = output.is_ok_and(|output| output.status.success());
                (!had).then(|| "no user namespace can be had".into())
            }
        }
    }

    /// As it is counted where its tests are skipped.
    pub(crate) fn of_machine(self) -> weir_needs::Need {
        match self {
            Self::Variable(name) => weir_needs::Need::Provided(name),
            Self::Program(name) => weir_needs::Need::Installed(name),
            Self::UserNamespace => weir_needs::Need::Namespaces,
        }
    }

    /// Where it is.
    pub(crate) fn path(self) -> PathBuf {
        match self {
            Self::Variable(name) => env::var_os(name).unwrap().into(),
            Self::Program(name) => name.into(),
            Self::UserNamespace => unreachable!("it is nowhere"),
        }
    }

    pub(crate) fn command(self) -> Command {
        Command::new(self.path())
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs it to its end; what it said, if it failed.
#[track_caller]
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?} ended with {}:\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}
