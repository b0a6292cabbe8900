// SPDX-License-Identifier: Apache-2.0
//! A host that tells its load and its cache, and answers with its address and the head that reached it.

use std::io::{BufRead, BufReader, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use serde_json::json;

/// The load of one that has nothing to do.
pub(crate) const IDLE: &str = "weir_host_in_progress 0\n\
    weir_host_queued{priority=\"0\"} 0\n\
    weir_host_queuing_delay_seconds_sum 0\n\
    weir_host_queuing_delay_seconds_count 0\n\
    weir_host_cores 2\n";

/// It refuses connections when the value is dropped.
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Starts one with this page of load, and these keys in its cache.
    pub(crate) fn start(load: &'static str, keys: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let cache = json!({ "version": 1, "epoch": 1, "reset": true, "added": keys }).to_string();
        let ends = Arc::new(AtomicBool::new(false));
        let ended = ends.clone();
        let serve = move || {
            for connection in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let cache = cache.clone();
                thread::spawn(move || answer(connection?, address, load, &cache));
            }
        };
        Self {
            address,
            ends,
            thread: Some(thread::spawn(serve)),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        // It waits for connections, and for nothing else.
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn answer(connection: TcpStream, address: SocketAddr, load: &str, cache: &str) -> Result<()> {
    let mut head = Vec::new();
    for line in BufReader::new(&connection).lines() {
        match line?.to_lowercase() {
            end if end.is_empty() => break,
            line => head.push(line),
        }
    }
    let path = head.first().and_then(|line| line.split(['?', ' ']).nth(1));
    let body = match path {
        Some("/metrics") => load.to_owned(),
        Some("/cache") => cache.to_owned(),
        _ => format!("{address}\n{}\n", head.join("\n")),
    };
    let length = body.len();
    write!(
        &connection,
        "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}
