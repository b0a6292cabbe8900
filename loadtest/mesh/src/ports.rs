// SPDX-License-Identifier: Apache-2.0
//! Ports that are known before their process starts, because Consul is told first.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Result, bail};

/// Below those that the system gives to callers (32768 on Linux), so that nobody takes one while its
/// process is dead.
const FIRST: u16 = 10_000;
const COUNT: u16 = 22_000;

/// Gives each port once.
pub(crate) struct Ports(u16);

impl Ports {
    /// Meshes of several processes begin far from each other.
    pub(crate) fn new() -> Self {
        Self((u64::from(std::process::id()) * 211 % u64::from(COUNT)) as u16)
    }

    /// One that nobody listens on.
    pub(crate) fn next(&mut self) -> Result<u16> {
        for _ in 0..COUNT {
            self.0 = (self.0 + 1) % COUNT;
            let port = FIRST + self.0;
            if TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok() {
                return Ok(port);
            }
        }
        bail!("no port from {FIRST} on is free");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_once_and_never_one_that_is_taken() {
        let mut ports = Ports::new();
        let first = ports.next().unwrap();
        let taken = TcpListener::bind((Ipv4Addr::UNSPECIFIED, first + 1)).unwrap();
        let second = ports.next().unwrap();
        assert!(second != first && second != taken.local_addr().unwrap().port());
    }
}
