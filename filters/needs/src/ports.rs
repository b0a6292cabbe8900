// SPDX-License-Identifier: Apache-2.0
//! Ports that are known before their process starts, because others are told first, or because it comes back to it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::{LazyLock, Mutex, PoisonError};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

/// Below those that the system gives to callers by default (32768 on Linux).
const FIRST: u16 = 10_000;
const COUNT: u16 = 22_000;

/// A port that nobody else gets until this process ends, also while nobody listens there ([`Ports::take`]).
#[must_use]
pub fn free_port() -> u16 {
    static OURS: LazyLock<Mutex<Ports>> = LazyLock::new(|| Mutex::new(Ports::of_this_process()));
    let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    ours.take().expect("no port is free")
}

/// Gives each port once, and holds it until it is dropped: nobody takes one before its process starts or while that is
/// dead, be it another test, a mesh or a caller whose port the system chooses.
#[derive(Debug)]
pub struct Ports {
    last: u16,
    held: Vec<OwnedFd>,
}

impl Ports {
    /// Those of several processes begin far from each other.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self {
            last: (u64::from(std::process::id()) * 211 % u64::from(COUNT)) as u16,
            held: Vec::new(),
        }
    }

    /// One that nobody has. Whoever sets `SO_REUSEADDR`, as servers do, may listen on it.
    ///
    /// # Errors
    /// All are taken.
    pub fn take(&mut self) -> io::Result<u16> {
        for _ in 0..COUNT {
            self.last = (self.last + 1) % COUNT;
            let port = FIRST + self.last;
            if let Ok(socket) = hold(port) {
                self.held.push(socket);
                return Ok(port);
            }
        }
        let all = format!("no port from {FIRST} on is free");
        Err(io::Error::new(io::ErrorKind::AddrInUse, all))
    }

    /// The same, on loopback.
    ///
    /// # Errors
    /// All are taken.
    pub fn loopback(&mut self) -> io::Result<SocketAddr> {
        Ok((Ipv4Addr::LOCALHOST, self.take()?).into())
    }
}

/// A socket that has a port and does not listen. It allows others beside it only once it has the port, so that of
/// two who want to hold it one is refused.
fn hold(port: u16) -> rustix::io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_port_is_given_once_and_never_one_that_is_taken() {
        let mut ports = Ports::of_this_process();
        let first = ports.take().unwrap();
        let taken = TcpListener::bind((Ipv4Addr::UNSPECIFIED, first + 1)).unwrap();
        let second = ports.take().unwrap();
        assert!(second != first && second != taken.local_addr().unwrap().port());
    }

    #[test]
    fn a_port_is_kept_for_its_process_while_that_is_dead() {
        let port = free_port();
        for _ in 0..2 {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
            drop(listener);
            let others = Ports::of_this_process().take().unwrap();
            assert!(others != port && free_port() != port, "another has it");
            assert!(hold(port).is_err(), "a caller can have it");
        }
    }
}
