// SPDX-License-Identifier: Apache-2.0
//! The scan as tables, claims and plots.

use weir_report::{Axis, Plot, Report, Series, Style, Table};
use weir_stage::machine;

use crate::scan::{ALLOCATIONS, Allocation, SLO_US, Step};
use crate::verdict::Verdict;

/// What of a step is told: a median over the repeats.
type Figure = fn(&Step) -> f64;

/// A p95 that is none is worse than any.
const P95_MS: Figure = |step| step.p95_us.map_or(f64::INFINITY, |us| us as f64 / 1e3);
const USED: Figure = |step| step.used_cores;

impl Allocation {
    fn name(self) -> String {
        format!("T = {}, C = {}", self.threads, self.cores)
    }
}

/// Rates in their order, with the medians of a figure over the repeats.
fn medians(steps: &[Step], of: Allocation, figure: Figure) -> Vec<(f64, f64)> {
    let own = || steps.iter().filter(move |step| step.allocation == of);
    let mut rates: Vec<f64> = own().map(|step| step.percent).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let at = |rate: f64| {
        let alike = own().filter(|step| step.percent == rate);
        let mut all: Vec<f64> = alike.map(figure).collect();
        all.sort_by(f64::total_cmp);
        // The upper one of two: none is not halved.
        (
            rate,
            all.get(all.len() / 2).copied().unwrap_or(f64::INFINITY),
        )
    };
    rates.into_iter().map(at).collect()
}

/// A row for each rate, with p95 and cores used of every allocation.
#[must_use]
pub fn by_rate(steps: &[Step]) -> Table {
    let p95 = ALLOCATIONS.map(|one| medians(steps, one, P95_MS));
    let used = ALLOCATIONS.map(|one| medians(steps, one, USED));
    let mut header = vec!["load / %".to_owned()];
    header.extend(ALLOCATIONS.map(|one| format!("p95 / ms, {}", one.name())));
    header.extend(ALLOCATIONS.map(|one| format!("cores used, {}", one.name())));
    let row = |place: usize| {
        let rate = p95[0].get(place).map_or(f64::NAN, |(rate, _)| *rate);
        let told = |all: &Vec<(f64, f64)>| match all.get(place) {
            Some((_, figure)) if figure.is_finite() => format!("{figure:.2}"),
            _ => "none".to_owned(),
        };
        let mut row = vec![format!("{rate:.0}")];
        row.extend(p95.iter().map(told));
        row.extend(used.iter().map(told));
        row
    };
    Table {
        header,
        rows: (0..p95[0].len()).map(row).collect(),
    }
}

/// The greatest load, in percent, up to which the p95 of every load is within the SLO: medians over the repeats.
fn carried(steps: &[Step], of: Allocation) -> f64 {
    let p95 = medians(steps, of, P95_MS).into_iter();
    let limit = SLO_US as f64 / 1e3;
    let carried = p95.take_while(|(_, p95)| *p95 <= limit);
    carried.last().map_or(0.0, |(percent, _)| percent)
}

/// The greatest load within the SLO of each allocation, and what was answered when the most was asked for.
#[must_use]
pub fn most(steps: &[Step]) -> Table {
    let row = |one: &Allocation| {
        let answered = medians(steps, *one, |step| step.answered_qps);
        let answered = answered.last().map_or(0.0, |(_, answered)| *answered);
        vec![
            one.name(),
            format!("{:.0}", carried(steps, *one)),
            format!("{answered:.0}"),
        ]
    };
    Table {
        header: [
            "threads and cores",
            "within the SLO up to / %",
            "answered at 100 %, requests a second",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: ALLOCATIONS.iter().map(row).collect(),
    }
}

/// What document 004 says of its scan (part 4.1 a). Told, not asserted: its client has machines of its own.
#[must_use]
pub fn verdicts(steps: &[Step]) -> Vec<Verdict> {
    let of = |threads, cores| carried(steps, Allocation { threads, cores });
    let claim = |claim: String, holds| Verdict {
        claim,
        holds,
        asserted: false,
    };
    let others = [of(1, 1), of(2, 1), of(1, 2)];
    let best = of(2, 2);
    vec![
        claim(
            format!("two threads on two cores carry most: {best:.0} %, the others {others:.0?} %"),
            others.iter().all(|other| *other < best),
        ),
        claim(
            format!(
                "one thread on two cores carries no less than on one: {:.0} %, {:.0} %",
                of(1, 2),
                of(1, 1)
            ),
            of(1, 2) >= of(1, 1),
        ),
    ]
}

/// The run as one page: figure 4 of the document, and its figures 5 and 6.
#[must_use]
pub fn page(steps: &[Step], carried_qps: f64, command: &str) -> Report {
    let mut report = Report::new(
        "memcached by load, threads and cores",
        "how few carry how much within the SLO",
    );
    report.command(command);
    report.facts(&[
        ("machine", machine::describe()),
        (
            "100 %",
            format!("{carried_qps:.0} requests of 100 keys a second: what two threads carry on all cores, with the client on them"),
        ),
        ("SLO", format!("a p95 up to {SLO_US} us")),
        (
            "client",
            "on the cores that memcached has not; with two cores, on the same".to_owned(),
        ),
    ]);
    report.heading("p95 by load (document 004, figure 4)");
    let p95 = || Axis::log("p95 / ms");
    report.plot(&plot(steps, "p95 by load", p95(), &ALLOCATIONS, P95_MS));
    report.table(&most(steps));
    for (cores, heading) in [(1, "One core (figure 5)"), (2, "Two cores (figure 6)")] {
        let own: Vec<Allocation> = ALLOCATIONS
            .into_iter()
            .filter(|one| one.cores == cores)
            .collect();
        report.heading(heading);
        report.plot(&plot(steps, "p95", p95(), &own, P95_MS));
        let used = Axis::linear("cores used");
        report.plot(&plot(steps, "CPU use", used, &own, USED));
    }
    report.heading("All figures");
    report.table(&by_rate(steps));
    report
}

/// A line for each allocation.
fn plot(steps: &[Step], title: &str, y: Axis, of: &[Allocation], figure: Figure) -> Plot {
    let line = |one: &Allocation| Series {
        name: one.name(),
        points: medians(steps, *one, figure),
        style: Style::Line,
    };
    Plot {
        title: title.to_owned(),
        x: Axis::linear("load / %"),
        y,
        series: of.iter().map(line).collect(),
        ..Plot::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(repeat: u32, allocation: Allocation, percent: f64, p95_us: Option<u64>) -> Step {
        Step {
            repeat,
            allocation,
            percent,
            asked_qps: 10.0 * percent,
            answered_qps: 9.0 * percent,
            p95_us,
            client_late_us: None,
            used_cores: percent / 100.0,
        }
    }

    /// Two threads on two cores carry all, one on one a quarter, the others a half.
    fn scan() -> Vec<Step> {
        let limit = |one: Allocation| match (one.threads, one.cores) {
            (2, 2) => 100.0,
            (1, 1) => 25.0,
            _ => 50.0,
        };
        let mut steps = Vec::new();
        for repeat in 0..3 {
            for one in ALLOCATIONS {
                for percent in [25.0, 50.0, 75.0, 100.0] {
                    let p95 = (percent <= limit(one)).then_some(1_000);
                    // Beyond the first that is not carried none is.
                    let p95 = p95.or((percent == 100.0).then_some(900));
                    steps.push(step(repeat, one, percent, p95));
                }
            }
        }
        steps
    }

    #[test]
    fn what_is_carried_ends_with_the_first_load_that_is_not() {
        let steps = scan();
        let of = |threads, cores| carried(&steps, Allocation { threads, cores });
        assert_eq!([of(1, 1), of(2, 1), of(1, 2)], [25.0, 50.0, 50.0]);
        assert_eq!(of(2, 2), 100.0);
        assert!(verdicts(&steps).iter().all(|verdict| verdict.holds));
        assert!(
            most(&steps)
                .markdown()
                .contains("| T = 2, C = 2 | 100 | 900 |")
        );
        assert_eq!(carried(&[], ALLOCATIONS[0]), 0.0);
    }

    #[test]
    fn a_median_that_is_none_is_told_so() {
        let text = by_rate(&scan()).markdown();
        assert!(
            text.contains("| 75 | none | none | none | 1.00 | 0.75 |"),
            "{text}"
        );
    }
}
