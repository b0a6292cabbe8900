// SPDX-License-Identifier: Apache-2.0
//! From looks and requests to values over time.

use crate::demo::report::story::Told;
use crate::demo::results::Record;
use crate::demo::sampler::samples::Sample;

/// Points over seconds.
pub(super) type Points = Vec<(f64, f64)>;

/// Ranks of a class: user priorities in `weir-policy`.
const USERS: f64 = 128.0;

/// A value of one host at each look; not a number where it did not answer.
pub(super) fn of_host(told: &Told, host: usize, value: impl Fn(&Sample) -> f64) -> Points {
    let samples = told.samples.iter().filter(|sample| sample.host == host);
    samples.map(|sample| (sample.at, value(sample))).collect()
}

/// How long the jobs that began since the look before had waited, mean in milliseconds. While none
/// begins they wait on: then it is the last mean and the time since, or nothing on an idle host.
pub(super) fn delays(told: &Told, host: usize) -> Points {
    let samples = told.samples.iter().filter(|sample| sample.host == host);
    let looks = samples.filter_map(|sample| Some((sample.at, sample.load.as_ref()?)));
    let looks: Vec<_> = looks.collect();
    let mut last = 0.0;
    let pairs = looks.windows(2).map(|pair| {
        let ((from, before), (at, now)) = (pair[0], pair[1]);
        let jobs = now.jobs - before.jobs;
        last = if jobs > 0.0 {
            1e3 * (now.waited - before.waited) / jobs
        } else if now.queued > 0.0 {
            last + 1e3 * (at - from)
        } else {
            0.0
        };
        (at, last)
    });
    pairs.collect()
}

/// At each look the largest of the hosts' values.
pub(super) fn largest(hosts: &[Points]) -> Points {
    joined(hosts, |values| {
        values.iter().copied().fold(f64::NAN, f64::max)
    })
}

/// At each look the mean of the hosts' values.
pub(super) fn mean(hosts: &[Points]) -> Points {
    joined(hosts, |values| {
        values.iter().sum::<f64>() / values.len() as f64
    })
}

/// Hosts are looked at one after another, so their n-th looks are one moment. Who did not answer
/// is left out of it.
fn joined(hosts: &[Points], join: impl Fn(&[f64]) -> f64) -> Points {
    let looks = hosts.iter().map(Vec::len).max().unwrap_or(0);
    let look = |n: usize| {
        let at = hosts.iter().find_map(|points| points.get(n))?.0;
        let values = hosts.iter().filter_map(|points| Some(points.get(n)?.1));
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        Some((at, join(&values)))
    };
    (0..looks).filter_map(look).collect()
}

/// What a host admits of a class at this level, in 0..=1.
pub(super) fn admitted(level: u16, class: u8) -> f64 {
    let ranks = f64::from(level) - f64::from(class) * USERS;
    (ranks / USERS).clamp(0.0, 1.0)
}

/// Seconds of a stretch of the workload: at most some fifty, and enough requests in each.
pub(super) fn stretch(seconds: f64, requests: usize) -> f64 {
    let least = (seconds / 50.0).max(60.0 * seconds / requests.max(1) as f64);
    let nice = [0.5, 1.0, 2.0, 5.0, 10.0];
    nice.into_iter().find(|n| *n >= least).unwrap_or(20.0)
}

/// The requests of each stretch, as one value at its middle; `value` is told the seconds of the
/// stretch, of which the last may have fewer. Not a number: nothing to tell.
pub(super) fn by_stretch<'a>(
    records: impl Iterator<Item = &'a Record>,
    seconds: f64,
    stretch: f64,
    value: impl Fn(&[&Record], f64) -> f64,
) -> Points {
    let count = (seconds / stretch).ceil() as usize;
    let mut stretches: Vec<Vec<&Record>> = vec![Vec::new(); count];
    for record in records {
        if let Some(stretch) = stretches.get_mut((record.at / stretch) as usize) {
            stretch.push(record);
        }
    }
    let point = |(n, records): (usize, &Vec<&Record>)| {
        let start = n as f64 * stretch;
        let lasts = stretch.min(seconds - start);
        (start + lasts / 2.0, value(records, lasts))
    };
    stretches.iter().enumerate().map(point).collect()
}

/// The largest value in each of `count` equal parts of the time until `end`; not a number where
/// there is none.
pub(super) fn parts(points: &[(f64, f64)], end: f64, count: usize) -> Vec<f64> {
    let mut parts = vec![f64::NAN; count];
    for (at, value) in points {
        let part = (at / end * count as f64) as usize;
        // The last look is at the very end.
        if let Some(part) = parts.get_mut(part.min(count.saturating_sub(1))) {
            *part = part.max(*value);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::kept::Way;
    use crate::demo::sampler::page::Load;

    fn told(loads: &[(f64, f64, f64)]) -> Told {
        let sample = |(n, (queued, waited, jobs)): (usize, &(f64, f64, f64))| Sample {
            at: 0.5 * n as f64,
            host: 0,
            load: Some(Load {
                in_progress: *queued,
                queued: *queued,
                waited: *waited,
                jobs: *jobs,
            }),
            level: None,
        };
        let way = Way {
            name: "way".to_owned(),
            folder: "way".to_owned(),
            overload: None,
            hosts: Vec::new(),
            busy: None,
            lag: 0.0,
        };
        let samples = loads.iter().enumerate().map(sample).collect();
        Told::new(way, Vec::new(), samples)
    }

    #[test]
    fn jobs_that_wait_while_none_begins_wait_on() {
        let told = told(&[
            (0.0, 0.0, 0.0),
            (3.0, 0.2, 4.0),
            (9.0, 0.2, 4.0),
            (0.0, 0.2, 4.0),
        ]);
        let delays: Vec<f64> = delays(&told, 0).iter().map(|p| p.1).collect();
        assert_eq!(delays, [50.0, 550.0, 0.0]);
        assert!(super::delays(&told, 1).is_empty());
    }

    #[test]
    fn hosts_join_at_each_look_without_those_that_did_not_answer() {
        let hosts = [
            vec![(0.0, 1.0), (1.0, 5.0)],
            vec![(0.0, 3.0), (1.0, f64::NAN)],
        ];
        assert_eq!(largest(&hosts), [(0.0, 3.0), (1.0, 5.0)]);
        assert_eq!(mean(&hosts), [(0.0, 2.0), (1.0, 5.0)]);
    }

    #[test]
    fn a_level_admits_classes_from_the_most_important_on() {
        assert_eq!(admitted(4096, 16), 1.0);
        assert_eq!(admitted(2048 + 32, 16), 0.25);
        assert_eq!((admitted(1000, 16), admitted(1000, 0)), (0.0, 1.0));
        assert_eq!(admitted(64, 0), 0.5);
    }

    #[test]
    fn a_level_counts_the_ranks_that_the_policy_has() {
        assert_eq!(USERS, f64::from(weir_policy::USERS));
    }

    #[test]
    fn stretches_are_few_and_hold_enough() {
        assert_eq!(stretch(50.0, 16_000), 1.0);
        assert_eq!(stretch(15.0, 486), 2.0);
        assert_eq!(stretch(15.0, 1), 20.0);
    }

    #[test]
    fn the_last_stretch_may_be_shorter() {
        let points = by_stretch(std::iter::empty(), 5.0, 2.0, |_, lasts| lasts);
        assert_eq!(points, [(1.0, 2.0), (3.0, 2.0), (4.5, 1.0)]);
    }

    #[test]
    fn parts_keep_the_largest_and_the_end() {
        let parts = parts(&[(0.0, 1.0), (0.4, 7.0), (4.0, 2.0)], 4.0, 4);
        assert_eq!((parts[0], parts[3]), (7.0, 2.0));
        assert!(parts[1].is_nan() && parts[2].is_nan());
    }
}
