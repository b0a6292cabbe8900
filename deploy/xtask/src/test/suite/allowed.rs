// SPDX-License-Identifier: Apache-2.0
//! How many tests may be skipped, by what they need: `deploy/xtask/skipped.toml`.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};

use crate::workspace::Workspace;

/// Fails where more were skipped than the list says.
pub(super) fn check(workspace: &Workspace, skipped: &BTreeMap<&str, usize>) -> Result<()> {
    let file = workspace.root.join("deploy/xtask/skipped.toml");
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let most: BTreeMap<String, usize> =
        toml::from_str(&text).with_context(|| file.display().to_string())?;
    let over = over(&most, skipped);
    ensure!(
        over.is_empty(),
        "more tests were skipped than {} allows: {}",
        workspace.shown(&file),
        over.join(", ")
    );
    Ok(())
}

fn over(most: &BTreeMap<String, usize>, skipped: &BTreeMap<&str, usize>) -> Vec<String> {
    let over = skipped.iter().filter_map(|(need, number)| {
        let most = most.get(*need).copied().unwrap_or(0);
        (*number > most).then(|| format!("{number} that need {need} (at most {most})"))
    });
    over.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_need_that_is_not_on_the_list_may_skip_nothing() {
        let most = BTreeMap::from([("cgroups".to_owned(), 2)]);
        let skipped = BTreeMap::from([("cgroups", 2), ("root", 1)]);
        assert_eq!(over(&most, &skipped), ["1 that need root (at most 0)"]);
        assert_eq!(over(&most, &BTreeMap::from([("cgroups", 3)])).len(), 1);
        assert!(over(&most, &BTreeMap::new()).is_empty());
    }
}
