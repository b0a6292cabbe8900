// SPDX-License-Identifier: Apache-2.0
//! A steady load: every request on a connection of its own, every minute keys that nobody has asked for before.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;
use weir_replay::rng::SplitMix64;
use weir_stage::http::{self, Request};

use crate::soak::places::{Place, Places};

/// Threads that send in turns to every place.
const SENDERS: u64 = 4;
/// Between two requests of a sender. With the answer's time it is some 30 requests a second for each.
const PAUSE: Duration = Duration::from_millis(15);
/// Keys of a minute: more than one host's cache holds. Not many more, because weir-control remembers what the newest
/// 262,144 keys cost, and would grow all the time until then.
const KEYS: u64 = 120;
/// Every so many-th request is left by its caller before the answer.
const LEFT: u64 = 20;

/// Runs until it is ended.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
    senders: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Counts {
    ok: AtomicU64,
    shed: AtomicU64,
    left: AtomicU64,
    failed: AtomicU64,
    failed_where_vms_crash: AtomicU64,
}

/// What became of the requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// Answered 200.
    pub ok: u64,
    /// Answered 429.
    pub shed: u64,
    /// Left by the caller before there was an answer.
    pub left: u64,
    /// Anything else, at callers whose VMs live.
    pub failed: u64,
    /// The same where VMs are killed.
    pub failed_where_vms_crash: u64,
}

impl Load {
    pub(crate) fn start(places: &Places) -> Self {
        let (stop, counts) = (Arc::default(), Arc::<Counts>::default());
        let sender = |number| {
            let (places, stop, counts) = (places.clone(), Arc::clone(&stop), Arc::clone(&counts));
            spawn(move || send(number, &places, &stop, &counts))
        };
        let senders = (0..SENDERS).map(sender).collect();
        Self {
            stop,
            counts,
            senders,
        }
    }

    pub(crate) fn sent(&self) -> Sent {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Sent {
            ok: of(&self.counts.ok),
            shed: of(&self.counts.shed),
            left: of(&self.counts.left),
            failed: of(&self.counts.failed),
            failed_where_vms_crash: of(&self.counts.failed_where_vms_crash),
        }
    }

    /// Ends it; no request is under way afterwards, but for those that callers have left.
    pub(crate) fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for sender in self.senders.drain(..) {
            // A panic is seen in the counts: nothing is sent any more.
            let _ = sender.join();
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end();
    }
}

fn send(sender: u64, places: &Places, stop: &AtomicBool, counts: &Counts) {
    let started = Instant::now();
    let mut number = sender;
    while !stop.load(Ordering::Relaxed) {
        for place in places.all() {
            number += SENDERS;
            one(&place, number, started.elapsed(), counts);
            sleep(PAUSE);
        }
    }
}

fn one(place: &Place, number: u64, since: Duration, counts: &Counts) {
    let key = format!("m{}-{}", since.as_secs() / 60, chance(number) % KEYS);
    let user = format!("u{}", chance(number + 1) % 1000);
    let priority = if number.is_multiple_of(10) {
        "high"
    } else {
        "low"
    };
    let headers = [
        ("x-weir-key", key.as_str()),
        ("x-weir-user", &user),
        ("x-weir-priority", priority),
        ("x-emulate-run-us", "5000"),
        ("x-emulate-bytes", "100000"),
    ];
    let one_more = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed);
    if number.is_multiple_of(LEFT) {
        // The connection is closed as soon as the request is written.
        if leave(place.listener, &headers).is_ok() {
            one_more(&counts.left);
        }
        return;
    }
    let request = Request {
        method: "GET",
        path: "/",
        headers: &headers,
        body: "",
    };
    let answer = http::send(place.listener, &request);
    one_more(match answer.as_ref().map(|answer| answer.status.as_str()) {
        Ok("200") => &counts.ok,
        Ok("429") => &counts.shed,
        _ if place.crashes => &counts.failed_where_vms_crash,
        Ok(status) => {
            eprintln!("soak: {} answered {status}", place.name);
            &counts.failed
        }
        Err(error) => {
            eprintln!("soak: {}: {error:#}", place.name);
            &counts.failed
        }
    });
}

fn leave(address: SocketAddr, headers: &[(&str, &str)]) -> Result<()> {
    let mut text = format!("GET / HTTP/1.1\r\nhost: {address}\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(address)?;
    stream.write_all((text + "\r\n").as_bytes())?;
    sleep(Duration::from_millis(2));
    Ok(())
}

/// A number without a pattern.
fn chance(number: u64) -> u64 {
    SplitMix64::new(number).next_u64()
}
