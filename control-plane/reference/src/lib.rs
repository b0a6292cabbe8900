// SPDX-License-Identifier: Apache-2.0
//! Reference pages that are generated from code, and held to it by tests. For tests, and the command that renews what they hold.
//!
//! ```text
//!  section!, Scope ── fields ──┐
//!  a page of metrics ─ metrics ┼─ Markdown ── hold ──> the file is the same; `cargo xtask keep` writes it
//!  --help ── commands ─────────┘
//! ```

mod commands;
mod fields;
mod metrics;

use std::path::Path;
use std::{env, fs};

pub use commands::commands;
pub use fields::fields;
pub use metrics::metrics;

/// Tests that hold a file write it where they find this variable: `cargo xtask keep`.
pub const RENEW: &str = "WEIR_KEEP";

/// Says that a page is generated, below its title.
pub fn head(title: &str, from: &str) -> String {
    format!(
        "# {title}\n\nWritten by `cargo xtask keep` from {from}; a test holds it. Overview: [README.md](README.md).\n"
    )
}

/// The file has this page; or gets it, where [`RENEW`] is set.
///
/// # Panics
/// The file has another one, or cannot be written.
pub fn hold(file: &Path, page: &str) {
    if env::var_os(RENEW).is_some() {
        return fs::write(file, page).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    let written = fs::read_to_string(file).unwrap_or_default();
    let mut lines = page.lines().zip(written.lines());
    let first = lines.find(|(generated, written)| generated != written);
    assert!(
        written == page,
        "{} is not of this code: run `cargo xtask keep`. First difference: {first:?}",
        file.display()
    );
}

/// Text within a table.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

/// `` `text` ``, or nothing.
fn code(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty())
        .map_or_else(|| "–".to_owned(), |text| format!("`{}`", cell(text)))
}
