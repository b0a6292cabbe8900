// SPDX-License-Identifier: Apache-2.0
//! Ports for programs that come back where they were.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::Mutex;

/// Below those that the system gives to callers.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// A free port of the loopback address that no other test gets, in this process or another one, until this process ends:
/// also while nobody listens there.
#[must_use]
pub fn free_port() -> u16 {
    static OURS: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    let begin = std::process::id().wrapping_mul(31) % u32::from(PORTS.end - PORTS.start);
    let begin = PORTS.start + begin as u16;
    for port in (begin..PORTS.end).chain(PORTS.start..begin) {
        if let Some(claim) = claim(port)
            && TcpListener::bind(("127.0.0.1", port)).is_ok()
        {
            OURS.lock()
                .unwrap_or_else(|held| held.into_inner())
                .push(claim);
            return port;
        }
    }
    panic!("no port of {PORTS:?} is free");
}

/// The right to a port: a name that the system forgets when this process ends.
fn claim(port: u16) -> Option<UnixListener> {
    let name = format!("weir-test-port-{port}");
    let name = SocketAddr::from_abstract_name(name).ok()?;
    UnixListener::bind_addr(&name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_once_also_while_nobody_listens_there() {
        let mut ports: Vec<_> = (0..20).map(|_| free_port()).collect();
        assert!(ports.iter().all(|port| claim(*port).is_none()));
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 20);
    }
}
