// SPDX-License-Identifier: Apache-2.0
//! What was found out, as a table and as configuration.

use std::fmt;
use std::time::Duration;

use crate::calls::Calls;
use crate::choice::Candidate;
use crate::stacks::Function;

/// A call that takes longer than this share of them is late: it is proposed as the time after which a core gets its
/// highest frequency. Document 002 calibrates it by hand (section 4.8).
const LATE: f64 = 0.9;
/// Of the path, frames that are shown above the chosen function and below it.
const SHOWN: usize = 12;

/// What was found out.
#[derive(Clone, Debug)]
pub struct Report {
    /// Whether calls were.
    pub is_observed: bool,
    /// How long calls were observed.
    pub time: Duration,
    /// Queries a second, if they are known.
    pub queries: Option<f64>,
    /// Events that came faster than they were read: calls are more than are told.
    pub lost: u64,
    /// By share.
    pub candidates: Vec<Candidate>,
    /// The position of the one that is proposed.
    pub chosen: Option<usize>,
    /// The way through the stacks on which most time is spent, with shares.
    pub path: Vec<(Function, f64)>,
}

impl Report {
    /// The one that is proposed, with its calls.
    #[must_use]
    pub fn proposed(&self) -> Option<(&Candidate, &Calls)> {
        let candidate = self.candidates.get(self.chosen?)?;
        Some((candidate, candidate.calls.as_ref()?))
    }

    /// A configuration of the governor that names the proposed function, and for a JVM the option that its start
    /// wants in a comment.
    #[must_use]
    pub fn configuration(&self) -> Option<String> {
        let (candidate, calls) = self.proposed()?;
        let function = candidate.function();
        let written = function.written();
        let quoted =
            |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let mut text = format!(
            "functions:\n  - {{ id: 1, name: {} }}\n",
            quoted(&function.short())
        );
        match &function.binary {
            Some(binary) => {
                let (binary, symbol) = (quoted(&binary.to_string_lossy()), quoted(&function.name));
                text += &format!(
                    "uprobes:\n  - {{ function: 1, binary: {binary}, symbol: {symbol} }}\n"
                );
            }
            None => {
                text += "# The program starts with\n#   ";
                text += &format!(
                    "-javaagent:weir-events-agent.jar=ring=/run/weir/weir.events,hot=1:{written}\n"
                );
            }
        }
        let late = calls.quantile(LATE).as_secs_f64() * 1e3;
        text += "policy:\n  three_state:\n    # Nine calls of ten took less.\n";
        text += &format!("    threshold: {:.1}ms\n", late.max(0.1));
        Some(text)
    }

    /// Where on the path the proposed function is, or its end.
    fn place(&self) -> usize {
        let proposed = self.proposed().map(|(candidate, _)| candidate.function());
        let place = self
            .path
            .iter()
            .rposition(|(function, _)| Some(function) == proposed);
        place.unwrap_or(self.path.len().saturating_sub(1))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.time.as_secs_f64();
        writeln!(
            f,
            "share  calls/s  a query      mean       p90       p99  function"
        )?;
        for (place, candidate) in self.candidates.iter().enumerate() {
            let mark = if Some(place) == self.chosen { '*' } else { ' ' };
            write!(f, "{:>5.2}{mark} ", candidate.share.of_all)?;
            match &candidate.calls {
                Some(calls) if calls.count() > 0 => {
                    let a_second = calls.count() as f64 / seconds;
                    write!(f, "{a_second:>7.1}  ")?;
                    match self.queries {
                        Some(queries) => write!(f, "{:>7.2}  ", a_second / queries)?,
                        None => write!(f, "{:>7}  ", "-")?,
                    }
                    let times = [calls.mean(), calls.quantile(LATE), calls.quantile(0.99)];
                    for time in times {
                        write!(f, "{:>5.1} ms  ", time.as_secs_f64() * 1e3)?;
                    }
                }
                _ => write!(
                    f,
                    "{:>7}  {:>7}  {:>8}  {:>8}  {:>8}  ",
                    "-", "-", "-", "-", "-"
                )?,
            }
            write!(f, "{}", candidate.function().written())?;
            match &candidate.refused {
                Some(reason) => writeln!(f, "  (not observed: {reason})")?,
                None => writeln!(f)?,
            }
        }
        if self.lost > 0 {
            writeln!(
                f,
                "{} events came faster than they were read: calls are more",
                self.lost
            )?;
        }
        writeln!(f, "\nwhere most time goes, from the outermost function on:")?;
        let from = (self.place() + 1).saturating_sub(SHOWN);
        for (function, share) in self.path.iter().skip(from).take(2 * SHOWN) {
            writeln!(f, "{share:>5.2}  {}", function.written())?;
        }
        match (self.configuration(), self.is_observed) {
            (Some(text), _) => write!(
                f,
                "\nthe proposed function (*), for weir-governor.yaml:\n\n{text}"
            ),
            (None, true) => writeln!(
                f,
                "\nnone is proposed: no call was seen often enough to be one for each query"
            ),
            (None, false) => writeln!(
                f,
                "\nnone is proposed: calls of a JVM are observed with --agent weir-events-agent.jar"
            ),
        }
    }
}
