// SPDX-License-Identifier: Apache-2.0
//! Document 001's own tables, beside what it published: made by the simulator, shown as they are.

use anyhow::Result;

use crate::experiments::store::Store;

/// What `weir-sim document-001` prints: Markdown.
pub(super) fn text(store: &Store, quick: bool, seeds: u64) -> Result<String> {
    let (hours, seeds) = if quick { (0.25, 1) } else { (3.0, seeds) };
    let arguments = [
        "document-001",
        "--hours",
        &hours.to_string(),
        "--seeds",
        &seeds.to_string(),
    ];
    println!("experiments: document 001's tables");
    store.printed("document-001-tables", &arguments.map(str::to_owned))
}
