// SPDX-License-Identifier: Apache-2.0
//! Decisions as they end, a line each.

use std::fmt;

use serde::Deserialize;

use crate::screen::{BAD, FAIR, GOOD, styled};

/// A receipt, as far as a line of it is shown.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Receipt {
    pub number: u64,
    pub cluster: String,
    pub proxy: String,
    pub class: u8,
    pub keys: Vec<String>,
    pub reason: String,
    pub outcome: String,
    pub chosen: Vec<String>,
    pub steered: bool,
    pub looks: Vec<Look>,
    pub host: Option<String>,
    pub status: u32,
    pub duration_ms: f64,
}

/// A host that was looked at.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Look {
    pub address: String,
    pub has: String,
    pub finish_ms: f64,
    pub wait_ns: f64,
    pub crossing_ns: f64,
    pub fetch_ns: f64,
    pub run_ns: f64,
}

/// Which receipts are shown; none given: all.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Filter {
    pub cluster: Option<String>,
    /// A part of the node id.
    pub proxy: Option<String>,
    /// Where the request was, or should have gone first.
    pub host: Option<String>,
    /// The hash, as `explain` prints it.
    pub key: Option<String>,
}

impl Filter {
    /// Whether it is shown.
    pub fn shows(&self, receipt: &Receipt) -> bool {
        let is = |wanted: &Option<String>, it: &str| wanted.as_deref().is_none_or(|w| w == it);
        let mut hosts = receipt.host.iter().chain(receipt.chosen.first());
        is(&self.cluster, &receipt.cluster)
            && self
                .proxy
                .as_deref()
                .is_none_or(|part| receipt.proxy.contains(part))
            && self
                .host
                .as_ref()
                .is_none_or(|wanted| hosts.any(|host| host == wanted))
            && self
                .key
                .as_ref()
                .is_none_or(|key| receipt.keys.contains(key))
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = match (self.outcome.as_str(), self.status) {
            ("shed", _) if self.steered => styled(FAIR, "shed"),
            (_, 0) => styled(BAD, "no answer"),
            (_, 500..) => styled(BAD, &self.status.to_string()),
            (_, status) => styled(GOOD, &status.to_string()),
        };
        let at = self.host.as_deref().unwrap_or("–");
        let lasted = self.duration_ms;
        write!(
            to,
            "{} {} class {} {} → {at} {status} in {lasted:.1} ms",
            self.cluster, self.proxy, self.class, self.reason
        )?;
        if !self.steered {
            let chosen = self.chosen.first().map_or("none", String::as_str);
            write!(to, "; not steered, {} {chosen}", self.outcome)?;
        }
        for (word, address) in ["", "next "].into_iter().zip(&self.chosen) {
            let look = self.looks.iter().find(|look| look.address == *address);
            if let Some(Look {
                has,
                finish_ms,
                wait_ns,
                crossing_ns,
                fetch_ns,
                run_ns,
                ..
            }) = look
            {
                let [wait, crossing, fetch, run] =
                    [wait_ns, crossing_ns, fetch_ns, run_ns].map(|ns| ns / 1e6);
                let crossing = match crossing > 0.0 {
                    true => format!(" + crossing {crossing:.1}"),
                    false => String::new(),
                };
                write!(
                    to,
                    "; {word}{address} {has}: wait {wait:.1}{crossing} + fetch {fetch:.1} + run {run:.1} → {finish_ms:.1} ms"
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_where_why_and_what_came_of_it() {
        let receipt: Receipt = serde_json::from_value(serde_json::json!({
            "number": 7, "cluster": "rules", "proxy": "caller-1", "class": 16, "keys": ["00ff"], "reason": "known_cached",
            "outcome": "send", "chosen": ["10.0.0.1:80", "10.0.0.2:80"], "steered": true, "host": "10.0.0.1:80",
            "status": 200, "duration_ms": 12.25,
            "looks": [{"address": "10.0.0.1:80", "has": "known", "finish_ms": 10.0, "wait_ns": 0.0, "fetch_ns": 0.0,
                       "run_ns": 1e7}],
        }))
        .unwrap();
        let line = anstream::adapter::strip_str(&receipt.to_string()).to_string();
        assert_eq!(
            line,
            "rules caller-1 class 16 known_cached → 10.0.0.1:80 200 in 12.2 ms; \
             10.0.0.1:80 known: wait 0.0 + fetch 0.0 + run 10.0 → 10.0 ms"
        );
        let filter = |host: &str| Filter {
            host: Some(host.to_owned()),
            ..Filter::default()
        };
        assert!(filter("10.0.0.1:80").shows(&receipt));
        assert!(!filter("10.0.0.2:80").shows(&receipt));
        let key = Some("00fe".to_owned());
        assert!(
            !Filter {
                key,
                ..Filter::default()
            }
            .shows(&receipt)
        );
    }
}
