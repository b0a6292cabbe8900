// SPDX-License-Identifier: Apache-2.0
//! The decision for one request, host by host.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::screen::{BAD, GOOD, age, or_dash, styled, table};

/// What `/explain` answered, kept whole: JSON gives every field of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Explanation(Value);

impl From<Value> for Explanation {
    fn from(said: Value) -> Self {
        Self(said)
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = &self.0;
        let word = |name: &str| said[name].as_str().unwrap_or_default();
        let style = if word("outcome") == "send" { GOOD } else { BAD };
        let outcome = styled(style, word("outcome"));
        writeln!(to, "{outcome} ({})", word("reason"))?;
        for (name, words) in [
            ("held_for_ms", "held for at most"),
            ("hedged_after_ms", "the second host is tried too after"),
        ] {
            if let Some(ms) = said[name].as_u64() {
                writeln!(to, "{words} {}", age(ms))?;
            }
        }
        writeln!(
            to,
            "by `{}` and `{}`, from table {} of {} ago; class {}, user priority {}",
            word("selection"),
            word("overload"),
            word("table_version"),
            age(said["table_age_ms"].as_u64().unwrap_or(0)),
            said["class"],
            said["user_priority"],
        )?;
        let mut table = table(&[
            "",
            "HOST",
            "DONE IN",
            "STATE",
            "CACHED",
            "IN FLIGHT",
            "QUEUED",
            "DELAY",
            "ADMITS",
            "LOAD AGE",
            "FROM",
        ]);
        let ranked = said["ranked"].as_array().into_iter().flatten();
        let ranked = ranked
            .enumerate()
            .map(|(place, row)| ((place + 1).to_string(), row));
        let others = said["others"].as_array().into_iter().flatten();
        let others = others.map(|row| (String::new(), row));
        for (place, row) in ranked.chain(others) {
            table.add_row(cells(place, row));
        }
        writeln!(to, "\n{table}\n")?;
        let trouble = said["trouble"].as_array().into_iter().flatten();
        for line in trouble.filter_map(Value::as_str) {
            writeln!(to, "{line}")?;
        }
        write!(to, "{}", word("note"))
    }
}

/// `12.0 ms = 2.0 + (0.0 + 10.0) ÷ 1.00`: wait, fetch, run, speed; in another zone what crossing takes is after the
/// wait. None where the host was not looked at.
fn done(estimate: &Value) -> Option<String> {
    let term = |name: &str| estimate[name].as_f64();
    let finish = term("finish_ms")?;
    let (wait, fetch, run) = (term("wait_ms")?, term("fetch_ms")?, term("run_ms")?);
    let speed = term("speed")?;
    let crossing = term("crossing_ms").filter(|crossing| *crossing > 0.0);
    let crossing = crossing.map_or_else(String::new, |ms| format!(" + {ms:.1} to cross"));
    Some(format!(
        "{finish:.1} ms = {wait:.1}{crossing} + ({fetch:.1} + {run:.1}) ÷ {speed:.2}"
    ))
}

fn cells(place: String, row: &Value) -> [String; 11] {
    let word = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let delay = row["queuing_delay_ms"].as_f64();
    let stale = match row["load_stale"].as_bool() {
        Some(true) => " (stale)",
        _ => "",
    };
    [
        place,
        word("address"),
        or_dash(done(&row["estimate"])),
        word("state"),
        word("cached"),
        or_dash(row["in_progress"].as_u64()),
        or_dash(row["queued"].as_u64()),
        or_dash(delay.map(|delay| format!("{delay:.1} ms"))),
        match row["admits"].as_bool() {
            Some(true) => "yes".to_owned(),
            _ => "no".to_owned(),
        },
        or_dash(
            row["load_age_ms"]
                .as_u64()
                .map(|ms| format!("{}{stale}", age(ms))),
        ),
        or_dash(row["load_from"].as_str()),
    ]
}
