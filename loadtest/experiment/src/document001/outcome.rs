// SPDX-License-Identifier: Apache-2.0
//! From the records of requests and the looks at hosts to what document 001 measures, in its own time.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use weir_executor::{Source, Spent};
use weir_sim::tally::Tally;
use weir_sim::workload::{LOW, class};
use weir_sim::{Ended, Sample as Look};

use super::plan::Plan;
use crate::replay::{Record, Served};
use crate::sampler::Sample;

/// A host without a level admits all.
const OPEN: u16 = 4096;

/// The figures of a run.
pub(super) fn tally(
    plan: &Plan,
    hosts: &[SocketAddr],
    records: &[Record],
    samples: &[Sample],
) -> Tally {
    let lasts = records.iter().map(|record| record.at).fold(0.0, f64::max);
    let hours = lasts * f64::from(plan.speed) / 3600.0;
    let mut tally = Tally::new(plan.hosts, hours);
    let names = hosts.iter().zip(0..);
    let places: HashMap<String, usize> = names.map(|(host, n)| (host.to_string(), n)).collect();
    for (index, record) in records.iter().enumerate() {
        tally.add(&ended(plan, &places, index, record), None);
    }
    for sample in samples {
        tally.history.add(look(plan, sample));
    }
    tally
}

/// Milliseconds of this machine in the document's time.
fn stretched(plan: &Plan, milliseconds: f64) -> Duration {
    Duration::from_secs_f64(milliseconds.max(0.0) / 1e3) * plan.speed
}

/// The request as a server of the document saw it: its attempt is the time in the host.
fn ended(plan: &Plan, places: &HashMap<String, usize>, index: usize, record: &Record) -> Ended {
    let time = |milliseconds| stretched(plan, milliseconds);
    let served = record.served.as_ref();
    // An answer that streams does not tell how long its host works: until the last byte is there.
    let worked = |served: &Served| served.worked.unwrap_or(record.attempt - served.wait);
    let spent = served.map(|served| Spent {
        wait: time(served.wait),
        fetch: Duration::ZERO,
        run: time(worked(served)),
        cost: Default::default(),
        source: if served.hit {
            Source::Hit
        } else {
            Source::Miss
        },
    });
    Ended {
        index,
        at: time(1e3 * record.at),
        class: class(&record.priority).unwrap_or(LOW),
        duration: time(record.duration),
        attempt: spent
            .as_ref()
            .map_or(Duration::ZERO, |spent| spent.wait + spent.run),
        outcome: record.outcome,
        attempts: record.attempts as u32,
        shed_attempts: record.shed_attempts as u32,
        unconnected: 0,
        connect_timeouts: 0,
        bounces: 0,
        queue_timeouts: Vec::new(),
        read_timeouts: 0,
        caller: 0,
        host: served.and_then(|served| places.get(&served.host).copied()),
        reason: None,
        first_wait: spent.as_ref().map_or(Duration::ZERO, |spent| spent.wait),
        found: 0,
        spent,
    }
}

fn look(plan: &Plan, sample: &Sample) -> Look {
    Look {
        at: Duration::from_secs_f64(sample.at.max(0.0)) * plan.speed,
        host: sample.host,
        up: sample.load.is_some(),
        level: sample.level.unwrap_or(OPEN),
        queued: sample.load.as_ref().map_or(0, |load| load.queued as u32),
        busy: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_the_documents_and_hosts_their_places() {
        let plan = Plan::emulated(0, 1);
        let hosts: Vec<SocketAddr> = (1..=14).map(|n| ([127, 0, 0, 1], n).into()).collect();
        let records = [
            Record::good("low", "127.0.0.1:2", 300.0, true),
            Record::good("high", "127.0.0.1:1", 0.0, false),
            Record::good("low", "127.0.0.1:3", 100.0, false),
        ];
        let tally = tally(&plan, &hosts, &records, &[]);
        let rows = tally.rows();
        assert!((rows.low_wait[0] - 2.0).abs() < 1e-9, "{rows:?}");
        // 9 ms of work each.
        assert!((rows.low_duration[0] - 2.09).abs() < 1e-9, "{rows:?}");
        assert_eq!(rows.high_wait[0], 0.0);
        assert_eq!((tally.answers, tally.hits), (3, 1));
    }

    #[test]
    fn an_answer_that_streams_is_worked_for_until_it_is_there() {
        let plan = Plan::new(true, true);
        let mut record = Record::good("low", "127.0.0.1:1", 200.0, true);
        record.attempt = 500.0;
        record.served.as_mut().unwrap().worked = None;
        let ended = ended(&plan, &HashMap::new(), 0, &record);
        let spent = ended.spent.unwrap();
        let expected = [200, 300].map(Duration::from_millis);
        assert_eq!([spent.wait, spent.run], expected);
        assert_eq!(ended.attempt, Duration::from_millis(500));
    }

    #[test]
    fn what_is_seen_of_a_host_is_its_level_and_its_queue() {
        let plan = Plan::emulated(0, 1);
        let gone = Sample {
            at: 0.5,
            host: 3,
            load: None,
            level: None,
        };
        let look = look(&plan, &gone);
        assert_eq!((look.at, look.host), (Duration::from_secs(5), 3));
        assert_eq!((look.up, look.level, look.queued), (false, OPEN, 0));
    }
}
