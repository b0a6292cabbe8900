// SPDX-License-Identifier: Apache-2.0
//! The tables, and what was hoped for.

use anyhow::{Context, Result};
use weir_report::Table;

use crate::bench::load::Protocol;
use crate::bench::request::case::{Case, Group, Rate, SATURATING};
use crate::bench::request::figures::Figures;
use crate::bench::request::plan::Plan;
use crate::bench::request::rounds::Results;
use crate::bench::request::way::Way;
use crate::bench::section::{Bound, NO_SPREAD, Section, Target};
use weir_report::Spread;

/// Share of the requests sent that a way must keep up with.
const ENOUGH: f64 = 0.99;

const BY_THE_HOLDER: &str = "and, but for plain Envoy and the no-op, by the host that has the key; where Weir \
    decides by its default, `estimate`, by another as often as its own metric says so.";

pub(super) fn of(group: &Group, plan: &Plan, results: &Results) -> Result<Vec<Section>> {
    let cases = group.cases.iter().enumerate();
    cases
        .map(|(number, case)| {
            let case = Measured {
                group,
                plan,
                results,
                number,
                case,
            };
            case.section()
        })
        .collect()
}

/// One case of a group.
struct Measured<'a> {
    group: &'a Group,
    plan: &'a Plan,
    results: &'a Results,
    number: usize,
    case: &'a Case,
}

impl Measured<'_> {
    fn section(&self) -> Result<Section> {
        let rows = self.group.ways.iter().map(|way| self.row(*way));
        let header = [
            "way",
            "Envoy CPU / µs a request",
            "picker CPU / µs a request",
            "both, to no-op Wasm",
            "p50 / µs",
            "p99 / µs",
            "requests/s",
            "weir-control CPU / ms a second",
        ];
        let mut notes = vec![self.reasons()];
        if self.number == 0 {
            notes.extend(self.notes());
        }
        Ok(Section {
            title: format!("{}: {}", self.group.title, self.case.title),
            how: self.how(),
            table: Table::new(header, rows.collect::<Result<Vec<_>>>()?),
            targets: self.targets()?,
            notes,
            ..Section::default()
        })
    }

    fn how(&self) -> String {
        let (group, plan) = (self.group, self.plan);
        let what = match self.case.prompt_bytes {
            Some(bytes) => format!("POST /v1/completions with a prompt of {bytes} B"),
            None => "GET without a body".to_owned(),
        };
        let pace = match self.case.rate {
            Rate::Closed => match self.case.protocol {
                Protocol::Http1(1) => "one connection, closed loop".to_owned(),
                Protocol::Http1(count) => format!("{count} connections, closed loop"),
                Protocol::Http2(count) => {
                    format!("HTTP/2, one connection with {count} streams, closed loop")
                }
            },
            Rate::HalfOfSaturation => format!(
                "open loop at {:.0} requests/s for all, half of what {} did with 16 connections; latencies \
                 count from when a request was due",
                self.results.rate,
                group.half_of.name()
            ),
        };
        format!(
            "{what}; {pace}. {} rounds of {:.1} s for each way, in alternating order; Envoys with {}; \
             {} hosts that answer at once; {} keys, each in one host's cache. Load generator, hosts, Envoys \
             and pickers share the machine.",
            plan.rounds,
            plan.slice.mul_f64(self.case.length).as_secs_f64(),
            match group.workers {
                1 => "one worker".to_owned(),
                workers => format!("{workers} workers"),
            },
            group.hosts,
            group.keys,
        )
    }

    fn figures(&self, way: Way) -> Result<&[Figures]> {
        let figures = self.results.figures.get(&(self.number, way));
        figures
            .map(Vec::as_slice)
            .with_context(|| format!("{} was not measured", way.name()))
    }

    fn each(&self, way: Way, figure: impl Fn(&Figures) -> f64) -> Result<Vec<f64>> {
        Ok(self.figures(way)?.iter().map(figure).collect())
    }

    fn spread(&self, way: Way, figure: impl Fn(&Figures) -> f64) -> Result<String> {
        let spread = Spread::of(&self.each(way, figure)?).context(NO_SPREAD)?;
        Ok(spread.to_string())
    }

    fn ratio(&self, way: Way, to: Way, figure: impl Fn(&Figures) -> f64) -> Result<Spread> {
        let (ours, theirs) = (self.each(way, &figure)?, self.each(to, &figure)?);
        Spread::of_ratios(&ours, &theirs).context(NO_SPREAD)
    }

    fn row(&self, way: Way) -> Result<Vec<String>> {
        let has_picker = self
            .figures(way)?
            .iter()
            .all(|figures| figures.picker.is_some());
        let none = || "–".to_owned();
        Ok(vec![
            match self.is_overloaded(way)? {
                true => format!("{} (OVERLOADED)", way.name()),
                false => way.name().to_owned(),
            },
            self.spread(way, |figures| figures.sidecar)?,
            match has_picker {
                true => self.spread(way, |figures| figures.picker.unwrap_or(f64::NAN))?,
                false => none(),
            },
            self.ratio(way, Way::NoOp, Figures::cpu)?.to_string(),
            self.spread(way, |figures| figures.p50)?,
            self.spread(way, |figures| figures.p99)?,
            self.spread(way, |figures| figures.per_second)?,
            match way.table().is_some() {
                true => self.spread(way, |figures| figures.control)?,
                false => none(),
            },
        ])
    }

    /// Did less than it was sent: its latencies are of a queue that grew.
    fn is_overloaded(&self, way: Way) -> Result<bool> {
        let done = self.each(way, |figures| figures.per_second)?;
        let done = Spread::of(&done).context(NO_SPREAD)?;
        Ok(self.case.rate == Rate::HalfOfSaturation && done.median < ENOUGH * self.results.rate)
    }

    fn targets(&self) -> Result<Vec<Target>> {
        let cpu = |way: Way, to: Way, bound| {
            let what = match bound {
                Bound::AtMost(_) => format!("CPU of {} to {}", way.name(), to.name()),
                Bound::AtLeast(_) => {
                    format!("CPU of {}, Envoy and picker, to {}", way.name(), to.name())
                }
            };
            let got = self.ratio(way, to, Figures::cpu)?;
            Ok::<_, anyhow::Error>(Target { what, bound, got })
        };
        let p99 = |way: Way, to: Way| {
            Ok::<_, anyhow::Error>(Target {
                what: format!("p99 of {} to {}", way.name(), to.name()),
                bound: Bound::AtMost(1.1),
                got: self.ratio(way, to, |figures| figures.p99)?,
            })
        };
        let has = |way| self.group.ways.contains(&way);
        let (beside_epp, beside_picker) = (has(Way::Epp), has(Way::Picker));
        Ok(match (self.case.rate, self.case.prompt_bytes, beside_epp) {
            (Rate::HalfOfSaturation, None, _) => {
                vec![p99(Way::Weir, Way::NoOp)?, p99(Way::Native, Way::Plain)?]
            }
            (Rate::Closed, None, _) if beside_picker && self.case.protocol == SATURATING => vec![
                cpu(Way::Weir, Way::NoOp, Bound::AtMost(1.2))?,
                cpu(Way::Native, Way::NoOp, Bound::AtMost(1.0))?,
                cpu(Way::NativeOne, Way::NoOp, Bound::AtMost(1.0))?,
                cpu(Way::Native, Way::Rules, Bound::AtMost(1.15))?,
                cpu(Way::Picker, Way::Native, Bound::AtLeast(3.0))?,
                cpu(Way::Picker, Way::Weir, Bound::AtLeast(2.0))?,
                cpu(Way::ToldPicker, Way::Weir, Bound::AtLeast(2.0))?,
            ],
            (Rate::Closed, Some(..1000), true) => {
                vec![cpu(Way::Epp, Way::Weir, Bound::AtLeast(4.0))?]
            }
            (Rate::Closed, Some(_), true) => {
                vec![cpu(Way::Epp, Way::Weir, Bound::AtLeast(10.0))?]
            }
            _ => vec![],
        })
    }

    fn reasons(&self) -> String {
        let ways = self.group.ways.iter().filter(|way| way.is_weir());
        let told = ways.filter_map(|way| {
            let reasons = self.results.reasons.get(&(self.number, *way))?;
            Some(format!("{}: {reasons}", way.name()))
        });
        let told: Vec<String> = told.collect();
        format!("Decisions, by Weir's own metric. {}.", told.join("; "))
    }

    fn notes(&self) -> Vec<String> {
        let checked = format!(
            "All {} requests of these tables were answered 200",
            self.results.requests
        );
        let has = |way| self.group.ways.contains(&way);
        let notes: &[&str] = match (has(Way::Epp), has(Way::Picker)) {
            (true, _) => &[
                "by the host that has the key (Weir; by its default, `estimate`, by another as often as its own \
                 metric says so) or that the picker named (EPP).",
                "EPP parses bodies, which pass through it both ways, and writes them anew; Weir reads three \
                 headers. It has the scorers and weights of its chart, and its share of scraping the hosts \
                 every 50 ms is in its figure.",
                "EPP's sidecar leaves the destination header on requests, so that hosts can tell whom it \
                 named; Weir's removes it, which costs Weir.",
            ],
            (false, true) => &[
                BY_THE_HOLDER,
                "Lua finds the host in a table that is written into the script: it knows no load and \
                 learns nothing.",
                "The ext_proc picker is the cheapest there can be: Weir's decision by `dynamic` on weir-control's \
                 tables, one thread, sent the three headers only. It cannot know what is in flight, as Weir \
                 does: that takes the row below, which is told of answers, too.",
                "weir-control works per second, not per request, for all ways that it tells. It asks the hosts \
                 twice here, as it has them in two clusters: with the default selection, and with `dynamic`.",
                "With load on answers each carries an `endpoint-load-metrics` header, which only Weir reads.",
            ],
            (false, false) if has(Way::Untold) => &[
                "and, but for those that leave it to Envoy (the no-op, and Weir without a table), by the host that has \
                 the key; by another as often as Weir's own metric says so.",
                "Without a table the filter reads the request's headers and asks for its cluster, counts the reason and \
                 tells it to access logs, and removes the caller's destination header: what that adds to the no-op is \
                 paid for every request. From there to Weir is the decision, Envoy's way to the host named, and the answer.",
                "Whatever cluster and caller: `clusters: {\"*\": …}` and `trust: any`, so that nothing is asked of Envoy for them.",
            ],
            (false, false) => &[BY_THE_HOLDER],
        };
        let mut notes: Vec<String> = notes.iter().map(|note| (*note).to_owned()).collect();
        if let Some(first) = notes.first_mut() {
            *first = format!("{checked}, {first}");
        }
        notes
    }
}
