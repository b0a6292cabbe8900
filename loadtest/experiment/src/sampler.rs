// SPDX-License-Identifier: Apache-2.0
//! Looks at every host, and at weir-control where there is one, twice a second while a way is sent.
//!
//! ```text
//! hosts' /metrics ─────────┐
//! weir-control's /metrics ─┴─> page (pure) ─> Sample ─> samples.jsonl
//!                                                └────> over_time (pure) ─> series for a report
//! ```

pub(crate) mod over_time;
pub(crate) mod page;

use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use weir_stage::http;

use crate::sampler::page::Load;

/// The file of samples in a way's folder, a line of JSON each.
pub(crate) const FILE: &str = "samples.jsonl";

/// Seldom enough not to be felt on two cores: a look costs a host less than a request.
const EVERY: Duration = Duration::from_millis(500);

/// A look at one host.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Sample {
    /// Seconds since sending began.
    #[serde(rename = "at_s")]
    pub(crate) at: f64,
    /// Its place among the hosts, from 0.
    pub(crate) host: usize,
    /// None if it did not answer.
    pub(crate) load: Option<Load>,
    /// Ranks that weir-control lets it be asked for; none where no levels are kept.
    pub(crate) level: Option<u16>,
}

impl Sample {
    /// Requests that wait for a core; not a number where the host did not answer.
    pub(crate) fn queued(&self) -> f64 {
        self.load.as_ref().map_or(f64::NAN, |load| load.queued)
    }
}

/// Where to look.
#[derive(Clone)]
pub(crate) struct Sights {
    pub(crate) hosts: Vec<SocketAddr>,
    /// The same as weir-control names them: elsewhere, where they have sidecars.
    pub(crate) named: Vec<SocketAddr>,
    /// weir-control's admin pages, where there is a weir-control.
    pub(crate) control: Option<SocketAddr>,
}

/// Looks until it is ended or dropped.
pub(crate) struct Sampler {
    stop: Option<Sender<()>>,
    looking: Option<JoinHandle<Vec<Sample>>>,
}

impl Sampler {
    /// Starts looking; time counts from now.
    pub(crate) fn start(sights: Sights) -> Self {
        let (stop, stopped) = channel();
        let looking = spawn(move || {
            let started = Instant::now();
            let mut samples = Vec::new();
            loop {
                samples.extend(sights.look(started));
                // Looks that a busy machine missed are not made up for.
                let late = started.elapsed().as_nanos() % EVERY.as_nanos();
                let pause = EVERY - Duration::from_nanos(late as u64);
                if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    return samples;
                }
            }
        });
        Self {
            stop: Some(stop),
            looking: Some(looking),
        }
    }

    /// Stops looking and returns what was seen, in the order of time.
    pub(crate) fn end(mut self) -> Result<Vec<Sample>> {
        self.stop = None;
        let looking = self.looking.take().context("ended twice")?;
        looking.join().map_err(|_| anyhow!("the sampler panicked"))
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(looking) = self.looking.take() {
            // Whoever drops it has another error to tell of.
            let _ = looking.join();
        }
    }
}

impl Sights {
    /// Of hosts that weir-control, if there is one, names as they are.
    pub(crate) fn of(hosts: Vec<SocketAddr>, control: Option<SocketAddr>) -> Self {
        Self {
            named: hosts.clone(),
            hosts,
            control,
        }
    }

    /// One look at each host. Who does not answer, or not what was expected, is a gap.
    fn look(&self, started: Instant) -> Vec<Sample> {
        let levels = self.control.and_then(|control| {
            let page = http::get(control, "/metrics").ok()?;
            page::levels(&page.body).ok()
        });
        let look = |(index, (host, named)): (usize, (&SocketAddr, &SocketAddr))| {
            let at = started.elapsed();
            let page = http::get(*host, "/metrics").ok();
            let level = levels.as_ref().and_then(|levels| levels.get(named));
            Sample {
                at: at.as_secs_f64(),
                host: index,
                load: page.and_then(|page| Load::parse(&page.body).ok()),
                level: level.copied(),
            }
        };
        let hosts = self.hosts.iter().zip(&self.named);
        hosts.enumerate().map(look).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    const PAGE: &str = "weir_host_in_progress 3\nweir_host_queued{priority=\"0\"} 1\n";

    /// Answers its first `times` visitors.
    fn host(times: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for _ in 0..times {
                let (mut stream, _) = listener.accept().unwrap();
                // An unread rest of the question would break the connection before the answer.
                let mut question = String::new();
                while !question.ends_with("\r\n\r\n") {
                    let mut part = [0; 1024];
                    let read = stream.read(&mut part).unwrap();
                    question += std::str::from_utf8(&part[..read]).unwrap();
                }
                write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{PAGE}").unwrap();
            }
        });
        address
    }

    #[test]
    fn a_host_that_does_not_answer_is_a_gap_beside_the_others() {
        let sights = Sights::of(vec![host(1), host(0)], Some(host(0)));
        let samples = sights.look(Instant::now());
        assert_eq!(samples[0].load.as_ref().unwrap().in_progress, 3.0);
        assert!(samples[1].load.is_none());
        assert!(samples.iter().all(|sample| sample.level.is_none()));
    }

    #[test]
    fn looking_ends_when_it_is_told_to() {
        let sights = Sights::of(vec![host(1)], None);
        let samples = Sampler::start(sights).end().unwrap();
        assert_eq!(samples.len(), 1);
    }
}
