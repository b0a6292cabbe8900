// SPDX-License-Identifier: Apache-2.0
//! What each command makes of weir-control's pages: a value that is shown as a table or as JSON.

pub mod diff;
pub mod explain;
pub mod hosts;
pub mod levels;
pub mod shadow;
pub mod sidecars;
pub mod status;
pub mod tail;

pub use diff::Diff;
pub use explain::Explanation;
pub use hosts::Hosts;
pub use levels::Levels;
pub use shadow::Shadow;
pub use sidecars::Sidecars;
pub use status::Status;
pub use tail::{Filter, Receipt};

use anyhow::{Result, ensure};

use crate::answers::{Cluster, Tables};

/// The clusters that are asked for: one, or all.
fn chosen<'a>(
    tables: &'a Tables,
    name: Option<&str>,
) -> Result<impl Iterator<Item = (&'a String, &'a Cluster)>> {
    let known = name.is_none_or(|name| tables.clusters.contains_key(name));
    ensure!(
        known,
        "no such cluster: {}; there are: {}",
        name.unwrap_or_default(),
        names(tables)
    );
    let name = name.map(str::to_owned);
    let clusters = tables.clusters.iter();
    Ok(clusters.filter(move |(one, _)| name.as_ref().is_none_or(|name| name == *one)))
}

fn names(tables: &Tables) -> String {
    let names: Vec<_> = tables.clusters.keys().map(String::as_str).collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}
