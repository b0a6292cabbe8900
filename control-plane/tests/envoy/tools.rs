// SPDX-License-Identifier: Apache-2.0
//! Where the programs are. Every test of a program that has this file needs them.

#[path = "shell.rs"]
pub(crate) mod shell;

use std::path::{Path, PathBuf};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// What `cargo xtask test` names.
pub(crate) fn envoy() -> PathBuf {
    weir_needs::provided_or_end("WEIR_ENVOY")
}

/// The same, in the shell that is tested. A filter without an Envoy is of no use: a test that has only that ends before
/// it has started a process.
pub(crate) fn filter() -> PathBuf {
    envoy();
    shell::native().unwrap_or_else(|| weir_needs::provided_or_end("WEIR_FILTER_WASM"))
}

/// A file of envoy-config/, with some of its text replaced. Text that is not there is a mistake.
pub(crate) fn envoy_config(name: &str, replace: &[(&str, &str)]) -> String {
    let path = root().join("envoy-config").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    replace.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{name} does not contain {from}");
        text.replace(from, to)
    })
}
