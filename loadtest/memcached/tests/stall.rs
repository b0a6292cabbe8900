// SPDX-License-Identifier: Apache-2.0
//! A server that stands still for a while: the requests that were due meanwhile are slow.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::thread;
use std::time::Duration;

use weir_memcached_load::drive::{Load, Way};
use weir_memcached_load::interval::{Figures, Interval};
use weir_memcached_load::keys::Keys;
use weir_memcached_load::schedule::Steps;
use weir_memcached_load::target::Target;

const QPS: f64 = 1_000.0;

/// Answers `END` to each `get`, the first being number 1; those of these numbers when another one comes.
fn serve(stream: TcpStream, held: Range<u64>) {
    let mut answers = stream.try_clone().unwrap();
    let mut lines = BufReader::new(stream).lines();
    let (mut gets, mut due) = (0, Vec::new());
    while let Some(Ok(line)) = lines.next() {
        let answer: &[u8] = match line.split(' ').next() {
            Some("version") => b"VERSION 1\r\n",
            _ => {
                gets += 1;
                b"END\r\n"
            }
        };
        due.extend_from_slice(answer);
        if held.contains(&gets) {
            continue;
        }
        if answers.write_all(&std::mem::take(&mut due)).is_err() {
            return;
        }
    }
}

/// One second of a constant load, on one connection to such a server.
fn seen(held: Range<u64>, in_flight: u32, patience: Duration) -> Figures {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = thread::spawn(move || serve(listener.accept().unwrap().0, held));
    let second = Duration::from_secs(1);
    let steps = Steps::new(second, second, (QPS, QPS), 1).unwrap();
    let keys = Keys::new(10, 10).unwrap();
    let way = Way {
        connections: 1,
        keys_per_get: 2,
        in_flight,
        patience,
    };
    let mut seen = None;
    let target = Target::new(&address, false).unwrap();
    Load::connect(target, &steps, &keys, way)
        .unwrap()
        .run(|interval: &Interval| {
            seen = Some(interval.figures(1_000));
            Ok(())
        })
        .unwrap();
    server.join().unwrap();
    seen.expect("the interval was told")
}

#[test]
fn every_request_that_was_due_while_the_server_stood_still_is_slow() {
    let figures = seen(100..800, 100_000, Duration::from_secs(60));
    // 99 are answered before; some 650 are due 50 ms or more before the one at which the server goes on, however
    // slow the machine is. A client that waited for its answers would have sent none of them.
    assert!(figures.latency.p50_us > Some(50_000), "{figures:?}");
    assert!(figures.violated);
    assert!(figures.in_flight_max >= 700, "{figures:?}");
    assert_eq!(figures.counts.answered, figures.counts.due);
    assert_eq!(figures.counts.misses, 2 * figures.counts.due);
}

#[test]
fn what_is_due_beyond_the_limit_in_flight_is_dropped_and_counts_against_the_server() {
    // It never goes on.
    let figures = seen(100..u64::MAX, 50, Duration::from_millis(100));
    assert_eq!(figures.in_flight_max, 50);
    assert_eq!((figures.counts.answered, figures.counts.errors), (99, 50));
    assert_eq!(figures.counts.dropped, figures.counts.due - 149);
    assert_eq!(figures.latency.p95_us, None);
    assert!(figures.violated);
}

#[test]
fn a_server_that_never_answers_again_is_waited_for_only_so_long() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = thread::spawn(move || {
        let stream = listener.accept().unwrap().0;
        let mut answers = stream.try_clone().unwrap();
        answers.write_all(b"VERSION 1\r\n").unwrap();
        // Reads, until the client has gone.
        BufReader::new(stream).lines().map_while(Result::ok).count()
    });
    let tenth = Duration::from_millis(100);
    let steps = Steps::new(tenth, 2 * tenth, (QPS, QPS), 1).unwrap();
    let keys = Keys::new(10, 10).unwrap();
    let way = Way {
        connections: 1,
        keys_per_get: 1,
        in_flight: 100_000,
        patience: tenth,
    };
    let (mut due, mut errors, mut intervals) = (0, 0, 0);
    Load::connect(Target::new(&address, false).unwrap(), &steps, &keys, way)
        .unwrap()
        .run(|interval| {
            let counts = interval.figures(1_000).counts;
            due += counts.due;
            errors += counts.errors;
            intervals += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!((errors, intervals), (due, 2));
    assert_eq!(steps.arrivals().count() as u64, due);
    // The greeting, and each request.
    assert_eq!(server.join().unwrap() as u64, 1 + due);
}

#[test]
fn a_client_that_is_late_itself_does_not_hide_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = thread::spawn(move || serve(listener.accept().unwrap().0, 0..0));
    let tenth = Duration::from_millis(100);
    let steps = Steps::new(tenth, 20 * tenth, (QPS, QPS), 1).unwrap();
    let keys = Keys::new(10, 10).unwrap();
    let way = Way {
        connections: 1,
        keys_per_get: 1,
        in_flight: 100_000,
        patience: Duration::from_secs(60),
    };
    let (mut slowest, mut latest) = (None, None);
    Load::connect(Target::new(&address, false).unwrap(), &steps, &keys, way)
        .unwrap()
        .run(|interval| {
            let figures = interval.figures(1_000);
            slowest = slowest.max(figures.latency.max_us);
            latest = latest.max(figures.client_late_p95_us);
            if figures.interval == 0 {
                // Whoever sends is here now, and what is due meanwhile is not sent.
                thread::sleep(5 * tenth);
            }
            Ok(())
        })
        .unwrap();
    server.join().unwrap();
    assert!(slowest > Some(400_000), "{slowest:?}");
    assert!(latest > Some(300_000), "{latest:?}");
}
