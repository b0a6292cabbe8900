// SPDX-License-Identifier: Apache-2.0
//! From looks at hosts to values over time.

use crate::sampler::Sample;

/// Points over seconds.
pub(crate) type Points = Vec<(f64, f64)>;

/// Ranks of a class: user priorities in `weir-policy`.
const USERS: f64 = weir_policy::USERS as f64;
/// The class of low priority, in weir-worker and the filter.
pub(crate) const LOW: u8 = 16;

/// A value of one host at each look; not a number where it did not answer.
pub(crate) fn of_host(samples: &[Sample], host: usize, value: impl Fn(&Sample) -> f64) -> Points {
    let looks = samples.iter().filter(|sample| sample.host == host);
    looks.map(|sample| (sample.at, value(sample))).collect()
}

/// The same of each of so many hosts.
pub(crate) fn of_each(
    samples: &[Sample],
    hosts: usize,
    value: impl Fn(&Sample) -> f64,
) -> Vec<Points> {
    (0..hosts)
        .map(|host| of_host(samples, host, &value))
        .collect()
}

/// How long the jobs that began since the look before had waited, mean in milliseconds. While none
/// begins they wait on: then it is the last mean and the time since, or nothing on an idle host.
pub(crate) fn delays(samples: &[Sample], host: usize) -> Points {
    let samples = samples.iter().filter(|sample| sample.host == host);
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
pub(crate) fn largest(hosts: &[Points]) -> Points {
    joined(hosts, |values| {
        values.iter().copied().fold(f64::NAN, f64::max)
    })
}

/// At each look the mean of the hosts' values.
pub(crate) fn mean(hosts: &[Points]) -> Points {
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

/// What a host admits of a class, in per cent; not a number where no levels are kept.
pub(crate) fn admitted(sample: &Sample, class: u8) -> f64 {
    sample.level.map_or(f64::NAN, |level| {
        let ranks = f64::from(level) - f64::from(class) * USERS;
        100.0 * (ranks / USERS).clamp(0.0, 1.0)
    })
}

/// The largest value in each of `count` equal parts of the time until `end`; not a number where
/// there is none.
pub(crate) fn parts(points: &[(f64, f64)], end: f64, count: usize) -> Vec<f64> {
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
    use crate::sampler::page::Load;

    fn samples(loads: &[(f64, f64, f64)]) -> Vec<Sample> {
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
        loads.iter().enumerate().map(sample).collect()
    }

    #[test]
    fn jobs_that_wait_while_none_begins_wait_on() {
        let samples = samples(&[
            (0.0, 0.0, 0.0),
            (3.0, 0.2, 4.0),
            (9.0, 0.2, 4.0),
            (0.0, 0.2, 4.0),
        ]);
        let delays: Vec<f64> = delays(&samples, 0).iter().map(|p| p.1).collect();
        assert_eq!(delays, [50.0, 550.0, 0.0]);
        assert!(super::delays(&samples, 1).is_empty());
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
        let admitted = |level, class| {
            let sample = Sample {
                level: Some(level),
                ..samples(&[(0.0, 0.0, 0.0)])[0].clone()
            };
            admitted(&sample, class)
        };
        assert_eq!(admitted(4096, 16), 100.0);
        assert_eq!(admitted(2048 + 32, 16), 25.0);
        assert_eq!((admitted(1000, 16), admitted(1000, 0)), (0.0, 100.0));
        assert_eq!(admitted(64, 0), 50.0);
    }

    #[test]
    fn parts_keep_the_largest_and_the_end() {
        let parts = parts(&[(0.0, 1.0), (0.4, 7.0), (4.0, 2.0)], 4.0, 4);
        assert_eq!((parts[0], parts[3]), (7.0, 2.0));
        assert!(parts[1].is_nan() && parts[2].is_nan());
    }
}
