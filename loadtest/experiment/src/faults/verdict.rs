// SPDX-License-Identifier: Apache-2.0
//! Whether what was expected came.

use serde::Serialize;

use crate::faults::expectation::{Expectation, Gap};
use crate::faults::figures::Figures;
use crate::faults::outcome::Measured;

/// Whether what was expected came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It did.
    Held,
    /// It did not.
    FellShort {
        /// In which ways.
        ways: Vec<String>,
    },
    /// It did not, as is known.
    KnownGap {
        /// In which ways.
        ways: Vec<String>,
        /// Why.
        why: String,
    },
    /// It could not be played.
    NotPlayed {
        /// Why.
        why: String,
    },
}

impl Verdict {
    /// Of what was counted and measured.
    #[must_use]
    pub fn of(
        expectation: &Expectation,
        figures: &Figures,
        measured: &[Measured],
        known_gap: Option<Gap>,
    ) -> Self {
        let never = never(figures);
        let mut ways = shares(figures, expectation.important, expectation.low);
        let over: Vec<String> = over(measured).collect();
        let is_excused = |gap: &Gap| {
            let over = !gap.excuses_figures && !over.is_empty();
            !over && shares(figures, gap.least, gap.least).is_empty()
        };
        ways.extend(over.iter().cloned());
        match known_gap {
            _ if never.is_empty() && ways.is_empty() => Self::Held,
            Some(gap) if never.is_empty() && is_excused(&gap) => {
                let why = gap.why.to_owned();
                Self::KnownGap { ways, why }
            }
            _ => {
                ways.extend(never);
                Self::FellShort { ways }
            }
        }
    }

    /// Whether the suite may succeed with it.
    #[must_use]
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Held | Self::KnownGap { .. })
    }

    /// As it is printed.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::FellShort { .. } => "FELL SHORT",
            Self::KnownGap { .. } => "falls short as known",
            Self::NotPlayed { .. } => "NOT PLAYED",
        }
    }

    /// What there is to say beyond the word.
    #[must_use]
    pub fn details(&self) -> Option<String> {
        match self {
            Self::Held => None,
            Self::FellShort { ways } => Some(ways.join("; ")),
            Self::KnownGap { ways, why } => Some(format!("{}: {why}", ways.join("; "))),
            Self::NotPlayed { why } => Some(why.clone()),
        }
    }
}

/// What no gap excuses.
fn never(figures: &Figures) -> Vec<String> {
    let doubled = match figures.hedged {
        true => 0,
        false => figures.doubled.len() as u64,
    };
    [
        (figures.lost, "requests have no end"),
        (figures.ended_twice, "requests have two ends"),
        (doubled, "requests were executed twice"),
        (
            figures.in_flight.len() as u64,
            "counters are not back at zero",
        ),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect()
}

/// Which requests are not answered as often as they are to be.
fn shares(figures: &Figures, important: f64, low: f64) -> Vec<String> {
    let mut ways = Vec::new();
    for (name, count, least) in [
        ("important", &figures.important, important),
        ("low", &figures.low, low),
    ] {
        if count.sent == 0 {
            ways.push(format!("no {name} request was sent"));
        } else if count.ok() < least {
            ways.push(format!(
                "{:.2} % of the {name} requests were answered, not {least} %",
                count.ok()
            ));
        }
    }
    ways
}

/// Which figures are over their bound.
fn over(measured: &[Measured]) -> impl Iterator<Item = String> {
    measured.iter().filter_map(|figure| {
        let most = figure.at_most.filter(|most| figure.value > *most)?;
        let Measured {
            name, value, unit, ..
        } = figure;
        Some(format!("{name}: {value:.1} {unit}, not at most {most}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::executions::Executions;
    use crate::faults::expectation::Length;
    use crate::faults::figures::tests::all_answered;
    use crate::faults::outcome::Outcome;
    use crate::faults::record::End;

    const EXPECTED: Expectation = Expectation::capacity_remains("all are answered");

    fn good() -> Figures {
        let (sent, outcome) = (all_answered(1_000), Outcome::default());
        Figures::of(&sent, &[], &Executions::default(), &outcome, Vec::new())
    }

    fn short(figures: &Figures) -> String {
        match Verdict::of(&EXPECTED, figures, &[], None) {
            Verdict::FellShort { ways } => ways.join("; "),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_expected_holds() {
        assert_eq!(Verdict::of(&EXPECTED, &good(), &[], None), Verdict::Held);
    }

    #[test]
    fn each_check_can_fail() {
        let lost = Figures { lost: 1, ..good() };
        assert_eq!(short(&lost), "1 requests have no end");
        let twice = Figures {
            ended_twice: 2,
            ..good()
        };
        assert_eq!(short(&twice), "2 requests have two ends");
        let doubled = Figures {
            doubled: vec!["t-1".to_owned()],
            ..good()
        };
        assert_eq!(short(&doubled), "1 requests were executed twice");
        let hedged = Figures {
            hedged: true,
            ..doubled
        };
        assert_eq!(Verdict::of(&EXPECTED, &hedged, &[], None), Verdict::Held);
        let in_flight = Figures {
            in_flight: vec!["rules-1: weir_host_in_progress 1".to_owned()],
            ..good()
        };
        assert_eq!(short(&in_flight), "1 counters are not back at zero");
        let nothing = Figures::default();
        assert!(short(&nothing).contains("no important request was sent"));
    }

    #[test]
    fn one_important_request_of_200_is_too_many_and_one_low_one_of_800_is_not() {
        for (number, held) in [(5, false), (6, true)] {
            let mut sent = all_answered(1_000);
            sent.records[number].end = End::Failed("503".to_owned());
            let (none, outcome) = (Executions::default(), Outcome::default());
            let figures = Figures::of(&sent, &[], &none, &outcome, Vec::new());
            let verdict = Verdict::of(&EXPECTED, &figures, &[], None);
            assert_eq!(verdict == Verdict::Held, held, "{verdict:?}");
        }
    }

    #[test]
    fn a_figure_over_its_bound_falls_short_and_a_known_gap_is_good() {
        let share = |value| Measured {
            name: "share".to_owned(),
            value,
            unit: "%",
            at_most: Some(2.0),
        };
        let gap = Gap {
            why: "it looks idle",
            least: 99.0,
            by_time: false,
            excuses_figures: true,
        };
        let verdict = |value, gap| Verdict::of(&EXPECTED, &good(), &[share(value)], gap);
        assert_eq!(verdict(2.0, None), Verdict::Held);
        assert!(!verdict(2.1, None).is_good());
        let known = verdict(2.1, Some(gap));
        assert!(known.is_good());
        let of_shares = Gap {
            excuses_figures: false,
            ..gap
        };
        assert!(!verdict(2.1, Some(of_shares)).is_good());
        let lost = Figures { lost: 1, ..good() };
        let verdict = Verdict::of(&EXPECTED, &lost, &[], Some(gap));
        assert!(!verdict.is_good());
        assert_eq!(
            known.details().as_deref(),
            Some("share: 2.1 %, not at most 2: it looks idle")
        );
    }

    #[test]
    fn a_gap_that_depends_on_the_machine_is_held_where_times_are() {
        let gap = |by_time| Gap {
            why: "an agent starts",
            least: 90.0,
            by_time,
            excuses_figures: false,
        };
        let (full, short) = (Length::full(1, 1, 1), Length::short(1, 1, 1));
        for (by_time, length, least) in [
            (true, full, 90.0),
            (true, short, 0.0),
            (false, full, 90.0),
            (false, short, 90.0),
        ] {
            assert_eq!(gap(by_time).at(length).least, least);
        }
    }

    #[test]
    fn a_known_gap_excuses_as_much_as_it_says() {
        for (failed, good) in [(2, true), (3, false)] {
            let mut sent = all_answered(1_000);
            for record in sent.records.iter_mut().step_by(5).take(failed) {
                record.end = End::Failed("503".to_owned());
            }
            let (none, outcome) = (Executions::default(), Outcome::default());
            let figures = Figures::of(&sent, &[], &none, &outcome, Vec::new());
            let gap = Gap {
                why: "who finds out fails",
                least: 99.0,
                by_time: false,
                excuses_figures: false,
            };
            let verdict = Verdict::of(&EXPECTED, &figures, &[], Some(gap));
            assert_ne!(verdict, Verdict::Held);
            assert_eq!(verdict.is_good(), good, "{verdict:?}");
        }
    }
}
