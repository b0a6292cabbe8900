// SPDX-License-Identifier: Apache-2.0
//! The memcached that is asked: only on this machine, unless told otherwise.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// For connecting, and for each answer while nothing is measured.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Enough of what somebody else says to show who it is.
const LONGEST_GREETING: u64 = 80;

/// An address that may be asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Target(SocketAddr);

impl Target {
    /// Reads `host:port`. Addresses of other machines are taken only if `remote`.
    ///
    /// # Errors
    /// It is no address, or that of another machine.
    pub fn new(address: &str, remote: bool) -> Result<Self> {
        let found = address
            .to_socket_addrs()
            .with_context(|| format!("address: `{address}` is not a host with a port"))?
            .next()
            .with_context(|| format!("address: `{address}` is nowhere"))?;
        ensure!(
            remote || found.ip().is_loopback(),
            "address: {found} is not on this machine: a load may harm it; --remote if you mean it"
        );
        Ok(Self(found))
    }

    /// A connection to a memcached, which has said its version.
    ///
    /// # Errors
    /// Nobody listens there, or it is not memcached.
    pub fn connect(&self) -> Result<TcpStream> {
        let address = self.0;
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)
            .with_context(|| format!("connecting to memcached at {address}"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let version = greet(&mut stream)
            .with_context(|| format!("asking for its version at {address}: is it memcached?"))?;
        if !version.starts_with("VERSION ") {
            bail!(
                "at {address} it says `{}` and not its version: is it memcached?",
                version.escape_debug()
            );
        }
        Ok(stream)
    }
}

/// The line that memcached says; nothing comes after it that a buffer could take away.
fn greet(stream: &mut TcpStream) -> io::Result<String> {
    stream.write_all(b"version\r\n")?;
    let mut line = Vec::new();
    BufReader::new(stream)
        .take(LONGEST_GREETING)
        .read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    #[test]
    fn only_this_machine_is_asked_unless_told_otherwise() {
        for address in ["127.0.0.1:11211", "[::1]:11211"] {
            assert!(Target::new(address, false).is_ok(), "{address}");
        }
        let refused = Target::new("192.0.2.1:11211", false)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("--remote"), "{refused}");
        assert!(Target::new("192.0.2.1:11211", true).is_ok());
        for address in ["", "11211", "127.0.0.1", "127.0.0.1:99999"] {
            let refused = format!("{:#}", Target::new(address, true).unwrap_err());
            assert!(refused.starts_with("address: `"), "{refused}");
        }
    }

    #[test]
    fn a_server_that_is_not_memcached_is_refused_with_what_it_says() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n").unwrap();
            // Until the client goes: a close with unread bytes could take the answer away.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let refused = Target::new(&address, false).unwrap().connect().unwrap_err();
        assert!(refused.to_string().contains("HTTP/1.1 400"), "{refused}");
        server.join().unwrap();
    }
}
