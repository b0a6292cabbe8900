// SPDX-License-Identifier: Apache-2.0
//! Figures beside published ones, as text.

use weir_sim::document001::Params;
use weir_sim::document001::fit;
use weir_sim::document001::published::{COLUMNS, Rows};

/// Seconds, short.
fn seconds(value: f64) -> String {
    match value {
        value if value < 0.001 => "<1ms".to_owned(),
        value if value < 0.1 => format!("{value:.3}"),
        value => format!("{value:.2}"),
    }
}

/// The mean of the seeds, the published figure, their ratio, and the least and the most ratio of a
/// seed; nothing where both are below a millisecond.
pub(super) fn beside(seeds: &[Rows], published: &Rows) {
    println!(
        "{:14} {:7} {:>9} {:>9} {:>6}  {:>11}",
        "", "", "SIMULATED", "published", "ratio", "of seeds"
    );
    let named: Vec<_> = seeds.iter().map(Rows::named).collect();
    let mean = fit::mean(seeds).named();
    for (which, (name, published)) in published.named().into_iter().enumerate() {
        for (column, published) in published.into_iter().enumerate() {
            let value = mean[which].1[column];
            let (got, expected) = (seconds(value), seconds(published));
            print!("{name:14} {:7} {got:>9} {expected:>9}", COLUMNS[column]);
            if published >= 0.001 {
                let ratios = named.iter().map(|rows| rows[which].1[column] / published);
                let least = ratios.clone().fold(f64::INFINITY, f64::min);
                let most = ratios.fold(0.0, f64::max);
                print!(" {:6.2}  {least:5.2}-{most:.2}", value / published);
            }
            println!();
        }
    }
}

/// What differs from the defaults, as flags.
pub(super) fn flags(params: &Params) -> String {
    let default = Params::default();
    let changed = Params::NAMES.iter().filter_map(|name| {
        let value = params.get(name)?;
        (Some(value) != default.get(name)).then(|| format!(" --set {name}={value}"))
    });
    changed.collect()
}
