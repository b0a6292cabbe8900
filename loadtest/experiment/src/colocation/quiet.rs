// SPDX-License-Identifier: Apache-2.0
//! The page of latencies once nobody asks any more: as a sidecar's, it is there still, and no request is on it. A
//! governor that finds no page at all keeps the cores for the service.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use weir_memcached_load::page::METRIC;

/// Whoever asks and says nothing is not waited for longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shown until it goes out of scope.
#[derive(Debug)]
pub struct Page {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Page {
    /// Shows it where the client has shown its own.
    ///
    /// # Errors
    /// Somebody else is there.
    pub fn at(address: SocketAddr) -> Result<Page> {
        let listener = TcpListener::bind(address).with_context(|| address.to_string())?;
        let ended = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if told.load(Ordering::Acquire) {
                    return;
                }
                // Who goes away before the answer has not missed much.
                let _ = answer(stream);
            }
        });
        Ok(Page {
            address,
            ended,
            thread: Some(thread),
        })
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        // Wakes the thread.
        let woken = TcpStream::connect(self.address);
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut request = [0; 1024];
    let _ = stream.read(&mut request)?;
    let page = format!(
        "# TYPE {METRIC} histogram\n{METRIC}_bucket{{le=\"+Inf\"}} 0\n{METRIC}_sum 0\n{METRIC}_count 0\n"
    );
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
        page.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_sees_a_histogram_of_nothing_until_it_is_gone() {
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let page = Page::at(address).unwrap();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut said = String::new();
            stream.read_to_string(&mut said).unwrap();
            assert!(
                said.contains(&format!("{METRIC}_bucket{{le=\"+Inf\"}} 0\n")),
                "{said}"
            );
        }
        drop(page);
        assert!(TcpStream::connect(address).is_err());
    }
}
