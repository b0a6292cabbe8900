// SPDX-License-Identifier: Apache-2.0
//! Requests, one by one or all the time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use weir_mesh::{Caller, Mesh};
use weir_stage::http::{self, Answer, Request};

/// Of one caller under load.
const PAUSE: Duration = Duration::from_millis(20);
/// A load that is forgotten ends by itself.
const MOST: usize = 20_000;

/// Sends a request for a key and returns the answer, whatever it is.
pub(crate) fn send(outbound: SocketAddr, key: &str) -> Result<Answer> {
    with_request(key, |request| http::send(outbound, request))
}

fn with_request<T>(key: &str, act: impl FnOnce(&Request) -> T) -> T {
    let headers = [
        ("x-weir-key", key),
        ("x-emulate-run-us", "1000"),
        ("x-emulate-bytes", "1000"),
    ];
    act(&Request {
        method: "GET",
        path: "/",
        headers: &headers,
        body: "",
    })
}

/// Who answered a request for a key, and why it went there.
pub(crate) fn choice(caller: &Caller, key: &str) -> Result<(SocketAddr, String)> {
    let answer = with_request(key, |request| caller.send(request))?;
    ensure!(answer.status == "200", "status {}", answer.status);
    let host = answer.header("x-weir-host").context("no x-weir-host")?;
    let reason = answer.header("x-weir-reason").context("no x-weir-reason")?;
    Ok((host.parse()?, reason.to_owned()))
}

/// Requests by all callers until it is ended.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    callers: Vec<JoinHandle<Sent>>,
}

/// What came of a load.
#[derive(Default)]
pub(crate) struct Sent {
    pub(crate) answered: usize,
    pub(crate) failed: Vec<String>,
}

impl Load {
    pub(crate) fn start(mesh: &Mesh) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let caller = |caller: &Caller| {
            let (outbound, stop) = (caller.outbound, Arc::clone(&stop));
            thread::spawn(move || requests(outbound, &stop))
        };
        let callers = mesh.callers().iter().map(caller).collect();
        Self { stop, callers }
    }

    /// Ends it. All requests must have been answered with 200, and there must have been some.
    pub(crate) fn end_without_failure(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Sent::default();
        for caller in self.callers {
            let sent = caller.join().ok().context("a caller panicked")?;
            all.answered += sent.answered;
            all.failed.extend(sent.failed);
        }
        ensure!(
            all.failed.is_empty(),
            "{} failed of {}: {:?}",
            all.failed.len(),
            all.failed.len() + all.answered,
            &all.failed[..all.failed.len().min(5)]
        );
        ensure!(all.answered > 20, "only {} were sent", all.answered);
        Ok(())
    }
}

fn requests(outbound: SocketAddr, stop: &AtomicBool) -> Sent {
    let mut sent = Sent::default();
    for number in 0..MOST {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        match send(outbound, &format!("load-{}", number % 30)) {
            Ok(answer) if answer.status == "200" => sent.answered += 1,
            Ok(answer) => sent.failed.push(format!(
                "request {number}: {} {}",
                answer.status,
                answer.body.trim()
            )),
            Err(error) => sent.failed.push(format!("request {number}: {error:#}")),
        }
        sleep(PAUSE);
    }
    sent
}
