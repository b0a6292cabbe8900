// SPDX-License-Identifier: Apache-2.0
//! Latencies on a page of metrics while the load runs, as the service's sidecar would show them.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// The histogram's name.
pub const METRIC: &str = "weir_memcached_latency_seconds";
/// The first bound.
const FIRST_US: f64 = 50.0;
/// Each is 9 % above the one before it: a limit can be told from 9/10 of it.
const BOUNDS_PER_DOUBLING: usize = 8;
/// Up to 205 ms.
const DOUBLINGS: usize = 12;
const BOUNDS: usize = BOUNDS_PER_DOUBLING * DOUBLINGS + 1;
/// For a reader to ask, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Nobody asks with more.
const LONGEST_QUESTION: u64 = 8 * 1024;

/// What was seen until now. Counts only grow.
#[derive(Debug)]
pub struct Seen {
    /// Those no slower than the bound, and slower than the one before it; the last are all others.
    buckets: [AtomicU64; BOUNDS + 1],
    sum_us: AtomicU64,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            buckets: [const { AtomicU64::new(0) }; BOUNDS + 1],
            sum_us: AtomicU64::new(0),
        }
    }
}

impl Seen {
    /// An answer, so long after it was due.
    pub fn answered(&self, latency_ns: u64) {
        let us = latency_ns.div_ceil(1_000);
        let octaves = (us as f64 / FIRST_US).log2() * BOUNDS_PER_DOUBLING as f64;
        // A hair of room: a bound itself belongs below it. What is not above the first bound goes there, too.
        let bucket = ((octaves - 1e-9).ceil().max(0.0) as usize).min(BOUNDS);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// A request without a good answer: slower than every other, as in the intervals.
    pub fn failed(&self) {
        self.buckets[BOUNDS].fetch_add(1, Ordering::Relaxed);
    }

    /// The page.
    #[must_use]
    pub fn page(&self) -> String {
        let mut text = format!("# TYPE {METRIC} histogram\n");
        let mut count = 0;
        for (index, bucket) in self.buckets.iter().enumerate() {
            count += bucket.load(Ordering::Relaxed);
            let bound = match index {
                BOUNDS => "+Inf".to_owned(),
                _ => format!("{:.7}", bound_us(index) / 1e6),
            };
            // To a string, nothing can fail.
            let _ = writeln!(text, "{METRIC}_bucket{{le=\"{bound}\"}} {count}");
        }
        let sum = self.sum_us.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(text, "{METRIC}_sum {sum}\n{METRIC}_count {count}");
        text
    }
}

fn bound_us(index: usize) -> f64 {
    FIRST_US * (index as f64 / BOUNDS_PER_DOUBLING as f64).exp2()
}

/// Shows it to whoever asks on this address, whatever path, until the program ends. Returns the address, whose
/// port may have been 0.
///
/// # Errors
/// The address is not of this machine alone, or taken.
pub fn serve(address: SocketAddr, seen: Arc<Seen>) -> Result<SocketAddr> {
    ensure!(
        address.ip().is_loopback(),
        "metrics: {address} is not a loopback address, and the page has no TLS and no login"
    );
    let listener =
        TcpListener::bind(address).with_context(|| format!("metrics: listening on {address}"))?;
    let bound = listener.local_addr()?;
    thread::Builder::new()
        .name("metrics".to_owned())
        .spawn(move || {
            for stream in listener.incoming().flatten() {
                // A reader that goes away has its reasons.
                let _ = answer(stream, &seen);
            }
        })?;
    Ok(bound)
}

fn answer(mut stream: TcpStream, seen: &Seen) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let question = BufReader::new(stream.try_clone()?).take(LONGEST_QUESTION);
    for line in question.lines() {
        if line?.is_empty() {
            break;
        }
    }
    let page = seen.page();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{page}",
        page.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The count at the first bound that is not below so many microseconds.
    fn no_slower(page: &str, us: f64) -> u64 {
        let of = |line: &str| {
            let rest = line.strip_prefix(METRIC)?.strip_prefix("_bucket{le=\"")?;
            let (bound, count) = rest.split_once("\"} ")?;
            let bound: f64 = bound.parse().ok()?;
            (bound * 1e6 > us * (1.0 - 1e-6)).then(|| count.parse().ok())?
        };
        page.lines().find_map(of).unwrap()
    }

    #[test]
    fn an_answer_is_in_the_bucket_of_the_first_bound_that_is_not_below_it() {
        for (us, below) in [
            (1, 50.0),
            (50, 50.0),
            (51, 54.5),
            (100, 100.0),
            (12_800, 12_800.0),
        ] {
            let seen = Seen::default();
            seen.answered(us * 1_000);
            let page = seen.page();
            assert_eq!(no_slower(&page, below), 1, "{us}: {page}");
            if us > 50 {
                assert_eq!(no_slower(&page, below / 1.1), 0, "{us}: {page}");
            }
        }
    }

    #[test]
    fn what_is_slower_than_every_bound_or_not_answered_is_in_the_last_bucket_only() {
        let seen = Seen::default();
        seen.answered(1_000_000_000);
        seen.failed();
        let page = seen.page();
        assert!(page.contains("le=\"+Inf\"} 2\n"), "{page}");
        assert!(page.contains("le=\"0.2048000\"} 0\n"), "{page}");
        assert!(page.contains("_count 2\n"), "{page}");
    }

    #[test]
    fn the_page_is_served_on_this_machine_alone() {
        let refused = serve("192.0.2.1:0".parse().unwrap(), Arc::default());
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("metrics: 192.0.2.1:0"), "{refused}");
        let seen = Arc::new(Seen::default());
        seen.answered(1);
        let address = serve("127.0.0.1:0".parse().unwrap(), seen).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
            .unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
        assert!(said.ends_with("_count 1\n"), "{said}");
    }
}
