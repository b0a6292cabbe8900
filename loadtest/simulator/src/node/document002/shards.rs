// SPDX-License-Identifier: Apache-2.0
//! Figure 4.1: how an index is divided. The model's work of a shard is taken in proportion to its size; its own 110 ms
//! are those of 8 GB.

use weir_report::Table;

use super::super::cell::Lab;
use super::super::{Governor, Load, Outcome, Params, Terms};
use super::facts::kernel;
use super::report::spread;

/// Gigabytes of the shards that the parameters are fitted for (section 4.1).
const FITTED_GB: f64 = 8.0;
/// Shards and gigabytes of each: those of the figure, and the same 40 GB divided otherwise.
const INDEXES: [(u32, f64); 7] = [
    (5, 8.0),
    (1, 40.0),
    (5, 15.0),
    (2, 20.0),
    (10, 4.0),
    (20, 2.0),
    (40, 1.0),
];

/// Service times under `ondemand`.
pub fn table(lab: &Lab) -> Table {
    let mut rows = Vec::new();
    for terms in [Terms::Low, Terms::Mixed, Terms::High] {
        for (shards, gigabytes) in INDEXES {
            let fitted = lab.params();
            let params = Params {
                shards: f64::from(shards),
                light_ms: fitted.light_ms * gigabytes / FITTED_GB,
                ..fitted.clone()
            };
            let mut of_index = Lab::new(params, lab.seeds());
            let cell = kernel(Governor::ondemand(), Load::base(terms, 1));
            let outcomes = of_index.outcomes(&cell);
            let each = |of: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(of).collect::<Vec<_>>();
            rows.push(vec![
                terms.name().to_owned(),
                format!("{shards} x {gigabytes} GB"),
                spread(&each(&|one| one.quantile(0.5)), 3),
                spread(&each(&Outcome::mean), 3),
                spread(&each(&|one| one.quantile(0.99)), 3),
            ]);
        }
    }
    Table::new(["load", "index", "p50 / s", "mean / s", "p99 / s"], rows)
}
