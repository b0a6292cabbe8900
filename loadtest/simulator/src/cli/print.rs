// SPDX-License-Identifier: Apache-2.0
//! Figures beside published ones, as text.

use weir_sim::document001::Params;
use weir_sim::document001::fit;
use weir_sim::document001::published::{COLUMNS, Rows};
use weir_sim::tally::Tally;

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

/// What the tables do not show.
pub(super) fn others(tallies: &[Tally]) {
    let mean = |of: &dyn Fn(&Tally) -> f64| {
        tallies.iter().map(of).sum::<f64>() / tallies.len().max(1) as f64
    };
    println!(
        "requests {:.0}, failed {:.4}, shed attempts {:.4}, first server connected {:.4}, connection \
         time-outs {:.4}, queue time-outs {:.4}, hit ratio {:.3}, jobs running on a server {:.2}",
        mean(&|t| t.requests as f64),
        mean(&|t| t.share(t.failed)),
        mean(&|t| t.share(t.shed)),
        mean(&|t| t.share(t.first_connected)),
        mean(&|t| t.share(t.connect_timeouts)),
        mean(&|t| t.share(t.queue_timeouts)),
        mean(&|t| t.hits as f64 / t.answers.max(1) as f64),
        mean(&Tally::running),
    );
    let [high, low] = [0, 1].map(|class| mean(&|t| t.all_in()[class][0]));
    let all = mean(&|t| t.variances().0);
    println!("all-in mean: high {high:.2} s, low {low:.2} s");
    print!("variance of low waits (table 6): {all:.0} s2; by server");
    if let Some(first) = tallies.first() {
        for variance in first.variances().1 {
            print!(" {variance:.0}");
        }
    }
    println!(" (first seed)");
}

/// What differs from the defaults, as flags.
pub(super) fn flags(params: &Params) -> String {
    let default = Params::default();
    let changed = Params::NAMES.iter().filter_map(|name| {
        let value = params.get(name)?;
        (Some(value) != default.get(name)).then(|| format!(" --set {name}={value:.4}"))
    });
    changed.collect()
}
