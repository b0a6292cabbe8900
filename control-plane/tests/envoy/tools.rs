// SPDX-License-Identifier: Apache-2.0
//! Where the programs are. A missing one fails the test: skipped, it would prove nothing.

use std::path::{Path, PathBuf};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// `WEIR_ENVOY`, or the newest in the tools' cache.
pub(crate) fn envoy() -> PathBuf {
    if let Some(path) = std::env::var_os("WEIR_ENVOY") {
        return path.into();
    }
    let cache = std::env::var_os("WEIR_TOOLS_DIR").map_or(".weir/tools".into(), PathBuf::from);
    let folders = std::fs::read_dir(root().join(cache))
        .into_iter()
        .flatten()
        .flatten();
    let found = folders
        .filter(|folder| folder.file_name().to_string_lossy().starts_with("envoy-"))
        .map(|folder| folder.path().join("envoy/_bin/envoy"))
        .filter(|program| program.is_file());
    found
        .max()
        .expect("no Envoy: run `cargo xtask tools`, or set WEIR_ENVOY")
}

/// `WEIR_FILTER_WASM`.
pub(crate) fn filter() -> PathBuf {
    let path = std::env::var_os("WEIR_FILTER_WASM");
    path.expect("no filter: run `cargo xtask test`, or set WEIR_FILTER_WASM")
        .into()
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
