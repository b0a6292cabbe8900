// SPDX-License-Identifier: Apache-2.0
//! Tables, for the Markdown and the report alike.

use weir_report::Table;

use crate::experiments::cell::{Setting, Trouble};
use crate::experiments::grid::{CALLERS, FEW_CALLERS, POLLS, varied_policies};
use crate::experiments::outcome::{Group, Outcome, Outcomes, Spread};
use crate::experiments::policies::{CLAIRVOYANT, POLICIES, Policy, REFERENCE};
use crate::experiments::workloads::Workload;

/// The meaning of the columns.
pub(super) const EXPLANATION: [&str; 7] = [
    "Duration and wait are all-in, in seconds: from the caller's first attempt to its last, back-off and \
     retries included, of all requests, those that were given up too; the wait is the duration without \
     the fetching and running of the attempt that was answered.",
    "\"At the host\" is document 001's definition (section 5.1): only what a host took, from its taking; the wait \
     is that for the first joblet. It rewards shedding, so it stands beside the all-in figures and decides \
     nothing.",
    "Means are those of the seeds; in brackets the least and the most of one seed. Percentiles are means of \
     the seeds' percentiles.",
    "The clairvoyant knows every run time and every host's present state, and sends each request where it ends \
     first; it does not know what comes later. Many waits of the bounds are half a millisecond: the network.",
    "Goodput is the time in which rules ran for answered requests, over what the cores offer until the last \
     request ended; several cores of one request count once.",
    "Some defaults of `estimate` were chosen by some of these seeds; RESULTS.md, \"What leaves a full cache\", has others.",
    "The deviation of hosts' load is that of the cores that were busy at each host in the mean, from the first \
     request that counts to the last, over the mean of them.",
];

#[derive(Clone, Copy)]
pub(super) enum Priority {
    High,
    Low,
}

impl Priority {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Low => "low",
        }
    }

    pub(super) fn of(self, outcome: &Outcome) -> &Group {
        match self {
            Self::High => &outcome.high,
            Self::Low => &outcome.low,
        }
    }
}

pub(super) fn named(name: &str) -> Option<&'static Policy> {
    POLICIES.iter().find(|policy| policy.name == name)
}

/// Every policy on a workload: the figures of one priority.
pub(super) fn compared(
    workload: &'static Workload,
    outcomes: &Outcomes,
    priority: Priority,
) -> Table {
    let header = [
        "policy",
        "duration",
        "p50",
        "p95",
        "p99",
        "wait",
        "p50",
        "p95",
        "p99",
        "wait ÷ breaker + dynamic",
        "duration ÷ clairvoyant",
        "duration at the host",
        "wait at the host",
        "p95 at the host",
        "failed",
    ];
    let row = |policy: &'static Policy| {
        let row = Row {
            setting: Setting::plain(workload, policy),
            priority,
            outcomes,
        };
        row.cells()
    };
    table(&header, played(workload).map(row))
}

/// Those that a workload compares.
pub(super) fn played(workload: &'static Workload) -> impl Iterator<Item = &'static Policy> {
    POLICIES.iter().filter(|policy| workload.compares(policy))
}

/// Policies with more and more callers.
pub(super) fn by_callers(workload: &'static Workload, outcomes: &Outcomes) -> Table {
    let header = [
        "policy",
        "callers",
        "low wait",
        "low wait ÷ 1 caller",
        "low duration ÷ clairvoyant",
        "high wait",
        "hit ratio",
        "deviation of hosts' load",
        "shed attempts a request",
        "failed",
    ];
    let settings = varied_policies().flat_map(|policy| {
        CALLERS.map(|callers| {
            let plain = Setting::plain(workload, policy);
            Setting { callers, ..plain }
        })
    });
    let rows = settings.filter_map(|setting| {
        let mean = |figure: fn(&Outcome) -> f64| outcomes.spread(&setting, figure);
        let number = |figure: fn(&Outcome) -> f64| {
            let known = mean(figure).filter(|spread| !spread.mean.is_nan());
            known.map_or_else(none, |spread| format!("{:.3}", spread.mean))
        };
        let held = |to: Setting, figure: fn(&Outcome) -> f64| {
            let ratio = outcomes.ratio(&setting, &to, figure);
            ratio.map_or_else(none, |ratio| range(ratio, times))
        };
        let alone = Setting {
            callers: 1,
            ..setting
        };
        let best = named(CLAIRVOYANT).map(|policy| Setting::plain(workload, policy));
        Some(vec![
            setting.policy.name.to_owned(),
            setting.callers.to_string(),
            range(mean(|o| o.low.wait_s.mean)?, seconds),
            held(alone, |o| o.low.wait_s.mean),
            best.map_or_else(none, |best| held(best, |o| o.low.duration_s.mean)),
            mean(|o| o.high.wait_s.mean).map_or_else(none, |spread| seconds(spread.mean)),
            number(|o| o.hit_ratio),
            number(|o| o.load_deviation.unwrap_or(f64::NAN)),
            number(Outcome::shed_a_request),
            mean(Outcome::failed).map_or_else(none, |spread| percent(spread.mean)),
        ])
    });
    table(&header, rows)
}

/// A policy's figures of one priority.
struct Row<'a> {
    setting: Setting,
    priority: Priority,
    outcomes: &'a Outcomes,
}

impl Row<'_> {
    fn cells(&self) -> Vec<String> {
        vec![
            self.setting.policy.name.to_owned(),
            self.ranged(|group| group.duration_s.mean),
            self.plain(|group| group.duration_s.p50),
            self.plain(|group| group.duration_s.p95),
            self.plain(|group| group.duration_s.p99),
            self.ranged(|group| group.wait_s.mean),
            self.plain(|group| group.wait_s.p50),
            self.plain(|group| group.wait_s.p95),
            self.plain(|group| group.wait_s.p99),
            self.held(REFERENCE, |group| group.wait_s.mean),
            self.held(CLAIRVOYANT, |group| group.duration_s.mean),
            self.plain(|group| group.host_duration_s.mean),
            self.plain(|group| group.host_wait_s.mean),
            self.plain(|group| group.host_wait_s.p95),
            self.spread(|group| group.failed as f64 / group.requests.max(1) as f64)
                .map_or_else(none, |spread| percent(spread.mean)),
        ]
    }

    fn spread(&self, figure: fn(&Group) -> f64) -> Option<Spread> {
        let figure = |outcome: &Outcome| figure(self.priority.of(outcome));
        self.outcomes.spread(&self.setting, figure)
    }

    /// The mean of the seeds.
    fn plain(&self, figure: fn(&Group) -> f64) -> String {
        self.spread(figure)
            .map_or_else(none, |spread| seconds(spread.mean))
    }

    /// The same with the least and the most.
    fn ranged(&self, figure: fn(&Group) -> f64) -> String {
        self.spread(figure)
            .map_or_else(none, |spread| range(spread, seconds))
    }

    /// The ratio to another policy's.
    fn held(&self, to: &str, figure: fn(&Group) -> f64) -> String {
        let to = named(to).map(|policy| Setting {
            policy,
            ..self.setting
        });
        let figure = |outcome: &Outcome| figure(self.priority.of(outcome));
        let ratio = to.and_then(|to| self.outcomes.ratio(&self.setting, &to, figure));
        ratio.map_or_else(none, |ratio| range(ratio, times))
    }
}

/// Every policy on a workload: the figures of both priorities together.
pub(super) fn fleet(workload: &'static Workload, outcomes: &Outcomes) -> Table {
    let header = ["policy", "hit ratio", "shed attempts a request", "goodput"];
    let row = |policy: &'static Policy| {
        let setting = Setting::plain(workload, policy);
        let spread = |figure: &dyn Fn(&Outcome) -> f64| {
            let spread = outcomes
                .spread(&setting, figure)
                .filter(|s| !s.mean.is_nan());
            spread.map_or_else(none, |spread| range(spread, |value| format!("{value:.3}")))
        };
        vec![
            policy.name.to_owned(),
            spread(&|o| o.hit_ratio),
            spread(&Outcome::shed_a_request),
            spread(&|o| o.goodput.unwrap_or(f64::NAN)),
        ]
    };
    table(&header, played(workload).map(row))
}

/// A policy with many callers and other staleness: mean low wait and hit ratio.
pub(super) fn sharing(
    workload: &'static Workload,
    policy: &'static Policy,
    outcomes: &Outcomes,
) -> Table {
    let header = ["polls every", "load on answers"]
        .map(str::to_owned)
        .into_iter();
    let callers = FEW_CALLERS.iter().map(|callers| match callers {
        1 => "1 caller".to_owned(),
        callers => format!("{callers} callers"),
    });
    let hits = FEW_CALLERS.iter().map(|callers| format!("hits, {callers}"));
    let header: Vec<String> = header.chain(callers).chain(hits).collect();
    let mut rows = Vec::new();
    for orca in [true, false] {
        for poll in POLLS {
            let plain = Setting::plain(workload, policy);
            let settings = FEW_CALLERS.map(|callers| Setting {
                callers,
                poll,
                orca,
                ..plain
            });
            let spread =
                |setting: &Setting, figure: fn(&Outcome) -> f64| outcomes.spread(setting, figure);
            let waits = settings.iter().map(|setting| {
                let wait = spread(setting, |o| o.low.wait_s.mean);
                wait.map_or_else(none, |wait| range(wait, seconds))
            });
            let hits = settings.iter().map(|setting| {
                let hits = spread(setting, |o| o.hit_ratio);
                hits.map_or_else(none, |hits| format!("{:.3}", hits.mean))
            });
            let orca = if orca { "yes" } else { "no" };
            let cells: Vec<String> = [poll.to_owned(), orca.to_owned()]
                .into_iter()
                .chain(waits)
                .chain(hits)
                .collect();
            if cells.iter().skip(2).any(|cell| *cell != none()) {
                rows.push(cells);
            }
        }
    }
    Table { header, rows }
}

/// Policies while hosts are in trouble.
pub(super) fn troubles(workload: &'static Workload, outcomes: &Outcomes) -> Table {
    let header = [
        "policy",
        "low duration, no trouble",
        "a host lost",
        "a host slowed to a third",
        "low wait, no trouble",
        "a host lost",
        "a host slowed to a third",
        "failed with a host lost",
    ];
    let rows = POLICIES.iter().filter_map(|policy| {
        let plain = Setting::plain(workload, policy);
        let settings = [Trouble::None, Trouble::Lost, Trouble::Slowed]
            .map(|trouble| Setting { trouble, ..plain });
        outcomes.spread(&settings[1], |o| o.hit_ratio)?;
        let cell = |setting: &Setting, figure: fn(&Outcome) -> f64| {
            let spread = outcomes.spread(setting, figure);
            spread.map_or_else(none, |spread| range(spread, seconds))
        };
        let failed = outcomes.spread(&settings[1], Outcome::failed);
        let durations = settings
            .iter()
            .map(|setting| cell(setting, |o| o.low.duration_s.mean));
        let waits = settings
            .iter()
            .map(|setting| cell(setting, |o| o.low.wait_s.mean));
        let failed = failed.map_or_else(none, |failed| percent(failed.mean));
        Some(
            [policy.name.to_owned()]
                .into_iter()
                .chain(durations)
                .chain(waits)
                .chain([failed])
                .collect(),
        )
    });
    table(&header, rows)
}

fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Table {
    Table {
        header: header.iter().map(|name| (*name).to_owned()).collect(),
        rows: rows.collect(),
    }
}

/// The cell of a simulation that was not made.
fn none() -> String {
    "–".to_owned()
}

/// Three digits that count.
fn seconds(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value if value >= 0.01 => format!("{value:.3}"),
        value => format!("{value:.5}"),
    }
}

fn times(value: f64) -> String {
    match value {
        // Of nothing, where a workload has no request of the priority.
        value if !value.is_finite() => String::new(),
        value if value >= 100.0 => format!("{value:.0}×"),
        value if value >= 10.0 => format!("{value:.1}×"),
        value => format!("{value:.2}×"),
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn range(spread: Spread, shown: impl Fn(f64) -> String) -> String {
    let (mean, least, most) = (shown(spread.mean), shown(spread.least), shown(spread.most));
    match least == most || mean.is_empty() {
        true => mean,
        false => format!("{mean} ({least}–{most})"),
    }
}

#[cfg(test)]
mod tests;
