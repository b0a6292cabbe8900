// SPDX-License-Identifier: Apache-2.0
//! The load that a host puts on its answers: the `endpoint-load-metrics` header of the Open Request Cost
//! Aggregation standard (`xds.data.orca.v3.OrcaLoadReport`), in its TEXT and JSON forms.

use std::time::Duration;

use serde::Deserialize;
use std::collections::BTreeMap;
use weir_policy::Load;

/// The header's name.
pub const HEADER: &str = "endpoint-load-metrics";
/// Longer headers are not read: 32 classes and the other figures take a quarter of it.
const MAX_LENGTH: usize = 4096;

#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    named_metrics: BTreeMap<String, f64>,
}

/// The load in a header's value, seen `now`; none where it names no `weir.in_progress` or no queue, or is
/// malformed. Half a load would hide the other half, which the table has.
pub fn parse(value: &[u8], now: Duration) -> Option<Load> {
    let value = std::str::from_utf8(value)
        .ok()
        .filter(|value| value.len() <= MAX_LENGTH)?;
    let mut figures = Figures::default();
    if let Some(text) = value.strip_prefix("TEXT ") {
        for pair in text.split(',') {
            let (name, figure) = pair.split_once('=')?;
            if let Some(name) = name.trim().strip_prefix("named_metrics.") {
                figures.take(name, figure.trim().parse().ok()?)?;
            }
        }
    } else {
        let report: Report = serde_json::from_str(value.strip_prefix("JSON ")?).ok()?;
        for (name, figure) in report.named_metrics {
            figures.take(&name, figure)?;
        }
    }
    Some(Load {
        observed: now,
        in_progress: figures.in_progress?,
        queued: figures.queued?,
        queuing_delay: figures.queuing_delay,
    })
}

#[derive(Default)]
struct Figures {
    in_progress: Option<u32>,
    queued: Option<u32>,
    queuing_delay: Option<Duration>,
}

impl Figures {
    /// None where the figure cannot be one: a host that sends nonsense is not believed in the rest either.
    fn take(&mut self, name: &str, figure: f64) -> Option<()> {
        if !figure.is_finite() || figure < 0.0 {
            return None;
        }
        match name {
            "weir.in_progress" => self.in_progress = Some(figure as u32),
            "weir.queuing_delay_seconds" => {
                self.queuing_delay = Duration::try_from_secs_f64(figure).ok()
            }
            _ if name.starts_with("weir.queued.") => {
                self.queued = Some(self.queued.unwrap_or(0).saturating_add(figure as u32));
            }
            _ => {}
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Duration = Duration::from_secs(7);

    #[test]
    fn text_and_json_say_the_same() {
        let expected = Load {
            observed: NOW,
            in_progress: 3,
            queued: 3,
            queuing_delay: Some(Duration::from_millis(12)),
        };
        let text = "TEXT cpu=0.3,named_metrics.weir.in_progress=3,named_metrics.weir.queued.0=1,\
                    named_metrics.weir.queued.16=2,named_metrics.weir.queuing_delay_seconds=0.012";
        let json = r#"JSON {"cpu_utilization":0.3,"named_metrics":{"weir.in_progress":3,"weir.queued.0":1,
                    "weir.queued.16":2,"weir.queuing_delay_seconds":0.012,"other":1}}"#;
        assert_eq!(parse(text.as_bytes(), NOW), Some(expected.clone()));
        assert_eq!(parse(json.as_bytes(), NOW), Some(expected));
    }

    #[test]
    fn nonsense_is_no_load() {
        for value in [
            "",
            "TEXT ",
            "TEXT cpu=0.5",
            "TEXT named_metrics.weir.in_progress=3",
            "named_metrics.weir.in_progress=3",
            "TEXT named_metrics.weir.in_progress=-1",
            "TEXT named_metrics.weir.in_progress=NaN",
            "TEXT named_metrics.weir.in_progress=many",
            "JSON {",
            r#"JSON {"named_metrics":[]}"#,
        ] {
            assert_eq!(parse(value.as_bytes(), NOW), None, "{value}");
        }
        assert_eq!(parse(&[b'T', 0xff], NOW), None);
        assert_eq!(parse(&vec![b'x'; 65_536], NOW), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(value in prop::collection::vec(any::<u8>(), 0..200)) {
            parse(&value, NOW);
        }
    }
}
