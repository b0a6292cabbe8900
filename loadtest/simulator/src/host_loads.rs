// SPDX-License-Identifier: Apache-2.0
//! How evenly hosts are loaded.

use std::time::Duration;

use crate::Sample;

/// Busy cores of each host over a part of the time, by what is known of it at each poll.
#[derive(Debug)]
pub struct HostLoads {
    from: Duration,
    until: Duration,
    hosts: Vec<HostLoad>,
}

#[derive(Debug, Clone, Default)]
struct HostLoad {
    /// The first poll that counts, and the last one so far.
    polled: Option<(Duration, Duration)>,
    /// What was known of its busy core time at the last one.
    busy: Option<Duration>,
    /// Core time between the first and the last.
    core_time: Duration,
}

impl HostLoad {
    fn add(&mut self, at: Duration, busy: Option<Duration>) {
        let Some((first, _)) = self.polled else {
            (self.polled, self.busy) = (Some((at, at)), busy);
            return;
        };
        self.polled = Some((first, at));
        if let Some(new) = busy {
            // Another life counts from zero.
            let before = self.busy.filter(|before| *before <= new);
            self.core_time += new - before.unwrap_or_default();
            self.busy = busy;
        }
    }

    /// Cores that were busy in the mean; none where it was not polled twice, or has none.
    fn cores(&self) -> Option<f64> {
        let (first, last) = self.polled?;
        self.busy?;
        let lasted = (last - first).as_secs_f64();
        (lasted > 0.0).then(|| self.core_time.as_secs_f64() / lasted)
    }
}

impl HostLoads {
    /// Of so many hosts, and what is known of them in this part of the time.
    #[must_use]
    pub fn new(hosts: usize, from: Duration, until: Duration) -> Self {
        let hosts = vec![HostLoad::default(); hosts];
        Self { from, until, hosts }
    }

    /// Adds what is known of a host that was just polled.
    pub fn add(&mut self, sample: Sample) {
        if (self.from..=self.until).contains(&sample.at)
            && let Some(host) = self.hosts.get_mut(sample.host)
        {
            host.add(sample.at, sample.busy);
        }
    }

    /// The deviation of all hosts' mean busy cores over the mean of them: 0 where all had the same load. None where
    /// hosts were not polled, or have no cores.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        let cores: Option<Vec<f64>> = self.hosts.iter().map(HostLoad::cores).collect();
        let cores = cores?;
        let n = cores.len() as f64;
        let mean = cores.iter().sum::<f64>() / n;
        let squares = cores.iter().map(|cores| (cores - mean).powi(2));
        (mean > 0.0).then(|| (squares.sum::<f64>() / n).sqrt() / mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls of two hosts: when, which, and how long its cores have been busy by then, in seconds.
    fn loads(polls: &[(u64, usize, Option<u64>)]) -> HostLoads {
        let seconds = Duration::from_secs;
        let mut loads = HostLoads::new(2, seconds(10), seconds(30));
        for (at, host, busy) in polls {
            loads.add(Sample {
                at: seconds(*at),
                host: *host,
                up: true,
                level: 0,
                queued: 0,
                busy: busy.map(seconds),
            });
        }
        loads
    }

    #[test]
    fn the_deviation_is_of_busy_cores_between_the_first_poll_that_counts_and_the_last() {
        let even = [
            (10, 0, Some(5)),
            (30, 0, Some(45)),
            (11, 1, Some(0)),
            (29, 1, Some(36)),
        ];
        assert_eq!(loads(&even).deviation(), Some(0.0));
        // Three cores and one, however busy before and after.
        let uneven = [
            (0, 0, Some(0)),
            (10, 0, Some(50)),
            (20, 0, Some(80)),
            (40, 0, Some(999)),
            (10, 1, Some(0)),
            (30, 1, Some(20)),
        ];
        assert_eq!(loads(&uneven).deviation(), Some(0.5));
    }

    #[test]
    fn a_host_that_was_away_counts_from_zero_when_it_is_back() {
        let lost = [
            (10, 0, Some(100)),
            (15, 0, None),
            (20, 0, Some(5)),
            (30, 0, Some(25)),
            (10, 1, Some(0)),
            (30, 1, Some(25)),
        ];
        assert_eq!(loads(&lost).deviation(), Some(0.0));
    }

    #[test]
    fn of_hosts_that_were_not_polled_nothing_is_known() {
        assert_eq!(loads(&[]).deviation(), None);
        assert_eq!(
            loads(&[(10, 0, Some(1)), (20, 0, Some(2))]).deviation(),
            None
        );
        let without = [(10, 0, None), (20, 0, None), (10, 1, None), (20, 1, None)];
        assert_eq!(loads(&without).deviation(), None);
    }
}
