// SPDX-License-Identifier: Apache-2.0
//! Which cells there are. Not every combination: policies are compared on every workload, and then
//! circumstances are varied where that says most.

use crate::experiments::cell::{Cell, Setting, Trouble};
use crate::experiments::policies::{POLICIES, Policy, Role};
use crate::experiments::workloads::{Requests, WORKLOADS, Workload};

pub(super) const CALLERS: [u32; 5] = [1, 8, 64, 256, 1000];
/// Those of which staleness is varied.
pub(super) const FEW_CALLERS: [u32; 3] = [1, 8, 64];
pub(super) const POLLS: [&str; 3] = ["200ms", "1s", "5s"];

pub(super) struct Grid {
    pub(super) workloads: Vec<&'static Workload>,
    seeds: u64,
    /// Seed by seed, so that what is there early is a whole picture.
    pub(super) cells: Vec<Cell>,
}

impl Grid {
    /// Of the workloads whose name contains one of these; of all where there are none.
    pub(super) fn new(quick: bool, seeds: u64, names: &[String]) -> Self {
        let wanted = |workload: &&Workload| {
            let named = names.iter().any(|name| workload.name.contains(&**name));
            named || (names.is_empty() && (!quick || workload.quick))
        };
        let workloads: Vec<_> = WORKLOADS.iter().filter(wanted).collect();
        let settings: Vec<Setting> = workloads
            .iter()
            .flat_map(|workload| {
                let compared = POLICIES
                    .iter()
                    .filter(|policy| workload.compares(policy))
                    .map(|policy| Setting::plain(workload, policy));
                compared
                    .chain(by_callers(workload, quick))
                    .chain(varied(workload, quick))
            })
            .collect();
        let cells = (1..=seeds).flat_map(|seed| {
            let cell = move |setting: &Setting| Cell {
                setting: *setting,
                seed,
                quick,
            };
            settings.iter().map(cell).collect::<Vec<_>>()
        });
        let mut cells: Vec<Cell> = cells.collect();
        let mut names = std::collections::BTreeSet::new();
        cells.retain(|cell| names.insert(cell.name()));
        Self {
            workloads,
            seeds,
            cells,
        }
    }
}

impl Grid {
    /// Which seeds, in words.
    pub(super) fn seeds(&self) -> String {
        match self.seeds {
            1 => "seed 1".to_owned(),
            seeds => format!("seeds 1 to {seeds}"),
        }
    }
}

/// The policies whose circumstances are varied.
pub(super) fn varied_policies() -> impl Iterator<Item = &'static Policy> {
    POLICIES.iter().filter(|policy| policy.role == Role::Varied)
}

/// With more and more callers.
fn by_callers(workload: &'static Workload, quick: bool) -> Vec<Setting> {
    let plain = varied_policies().map(|policy| Setting::plain(workload, policy));
    let settings = plain.flat_map(|plain| {
        CALLERS
            .map(|callers| Setting { callers, ..plain })
            .into_iter()
    });
    // A taste has one number of many.
    settings
        .filter(|setting| !quick || setting.callers <= 8)
        .collect()
}

fn varied(workload: &'static Workload, quick: bool) -> Vec<Setting> {
    if !workload.varied {
        return Vec::new();
    }
    let sharing = varied_policies().flat_map(|policy| sharing(workload, policy, quick));
    // The taste of what is made up ends before a host would be in trouble.
    if quick && matches!(workload.requests, Requests::Simulated(..)) {
        return sharing.collect();
    }
    let troubled = POLICIES
        .iter()
        .filter(|policy| policy.role != Role::Compared);
    sharing
        .chain(troubled.flat_map(|policy| troubles(workload, policy)))
        .collect()
}

/// Callers by staleness, with and without load on answers.
fn sharing(workload: &'static Workload, policy: &'static Policy, quick: bool) -> Vec<Setting> {
    let mut settings = Vec::new();
    for orca in [true, false] {
        for callers in FEW_CALLERS {
            for poll in POLLS {
                // A taste has the corners.
                if quick && (callers == 8 || poll == "1s" || !orca) {
                    continue;
                }
                let plain = Setting::plain(workload, policy);
                settings.push(Setting {
                    callers,
                    poll,
                    orca,
                    ..plain
                });
            }
        }
    }
    settings
}

fn troubles(workload: &'static Workload, policy: &'static Policy) -> [Setting; 2] {
    let plain = Setting::plain(workload, policy);
    [Trouble::Lost, Trouble::Slowed].map(|trouble| Setting { trouble, ..plain })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_cell_comes_twice_and_seeds_come_one_after_the_other() {
        let grid = Grid::new(false, 2, &[]);
        let names: BTreeSet<_> = grid.cells.iter().map(Cell::name).collect();
        assert_eq!(names.len(), grid.cells.len());
        let arguments: BTreeSet<_> = grid
            .cells
            .iter()
            .map(|cell| cell.arguments(Some("w".as_ref())))
            .collect();
        assert!(
            arguments.len() > grid.cells.len() / 2,
            "flags tell cells apart"
        );
        assert!(grid.cells.is_sorted_by_key(|cell| cell.seed));
    }

    #[test]
    fn a_taste_is_a_small_part_and_names_select_workloads() {
        let (all, taste) = (Grid::new(false, 5, &[]), Grid::new(true, 1, &[]));
        assert!(
            taste.cells.len() * 5 < all.cells.len(),
            "{} of {}",
            taste.cells.len(),
            all.cells.len()
        );
        let azure = Grid::new(false, 1, &["azure-f".to_owned()]);
        assert!(
            azure
                .workloads
                .iter()
                .all(|workload| workload.name == "azure-functions")
        );
        assert!(!azure.cells.is_empty());
        assert!(
            Grid::new(false, 1, &["nonsense".to_owned()])
                .cells
                .is_empty()
        );
    }
}
