// SPDX-License-Identifier: Apache-2.0
//! Numbers of a way, of one round or over all.

use serde::Serialize;
use weir_replay::record::Outcome;
use weir_report::quantile;

use crate::shared_node::plan::Plan;
use crate::shared_node::records::Record;

/// What became of requests.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// Of high priority.
    pub high: Count,
    /// Of low priority.
    pub low: Count,
    /// Waits at the host of those that were served, in milliseconds.
    #[serde(skip)]
    waits: Vec<f64>,
    /// From when they were due to their end, of all, in milliseconds.
    #[serde(skip)]
    durations: Vec<f64>,
}

/// How many ended how.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Count {
    /// All of them.
    pub sent: u64,
    /// With a good answer.
    pub ok: u64,
    /// Refused by the mesh.
    pub shed: u64,
    /// Of these, while the load was more than one core's.
    pub shed_over: u64,
    /// Otherwise.
    pub failed: u64,
}

impl Figures {
    /// Of a round's requests.
    #[must_use]
    pub fn of(records: &[Record], plan: &Plan) -> Self {
        let mut figures = Self::default();
        for record in records {
            let count = match record.priority.as_str() {
                "high" => &mut figures.high,
                _ => &mut figures.low,
            };
            count.sent += 1;
            match record.outcome {
                Outcome::Ok => count.ok += 1,
                Outcome::Shed => {
                    count.shed += 1;
                    let at = std::time::Duration::from_micros(record.t_us);
                    count.shed_over += u64::from(plan.load_at(at) > 1.0);
                }
                Outcome::Failed | Outcome::Timeout => count.failed += 1,
            }
            figures.durations.push(record.duration_us as f64 / 1e3);
            if let (Outcome::Ok, Some(wait)) = (record.outcome, record.wait_us) {
                figures.waits.push(wait as f64 / 1e3);
            }
        }
        figures
    }

    /// Of several rounds.
    #[must_use]
    pub fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for figures in all {
            sum.high.add(figures.high);
            sum.low.add(figures.low);
            sum.waits.extend(&figures.waits);
            sum.durations.extend(&figures.durations);
        }
        sum
    }

    /// Of both priorities.
    #[must_use]
    pub fn all(&self) -> Count {
        let mut all = self.high;
        all.add(self.low);
        all
    }

    /// 95th percentile of the waits at the host, in milliseconds.
    #[must_use]
    pub fn wait_p95(&self) -> f64 {
        quantile(&self.waits, 0.95).unwrap_or(0.0)
    }

    /// 95th percentile of the whole times, in milliseconds.
    #[must_use]
    pub fn duration_p95(&self) -> f64 {
        quantile(&self.durations, 0.95).unwrap_or(0.0)
    }
}

impl Count {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.ok += other.ok;
        self.shed += other.shed;
        self.shed_over += other.shed_over;
        self.failed += other.failed;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn record(t_s: u64, outcome: Outcome, wait_ms: u64) -> Record {
        Record {
            t_us: t_s * 1_000_000,
            duration_us: 2_000 * wait_ms,
            priority: if t_s.is_multiple_of(2) { "high" } else { "low" }.to_owned(),
            outcome,
            wait_us: (outcome == Outcome::Ok).then_some(1_000 * wait_ms),
        }
    }

    #[test]
    fn what_was_shed_is_counted_by_priority_and_load() {
        let records = [
            record(0, Outcome::Ok, 10),
            record(1, Outcome::Shed, 1),
            record(6, Outcome::Shed, 1),
            record(3, Outcome::Timeout, 9_000),
        ];
        let figures = Figures::of(&records, &Plan::QUICK);
        assert_eq!((figures.high.shed, figures.high.shed_over), (1, 0));
        assert_eq!((figures.low.shed, figures.low.shed_over), (1, 1));
        assert_eq!((figures.all().sent, figures.all().failed), (4, 1));
        assert_eq!(
            (figures.wait_p95(), figures.duration_p95()),
            (10.0, 18_000.0)
        );
        let twice = Figures::sum([&figures, &figures].into_iter());
        assert_eq!(twice.all().shed, 4);
    }
}
