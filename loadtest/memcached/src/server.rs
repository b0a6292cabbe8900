// SPDX-License-Identifier: Apache-2.0
//! A memcached of our own, for tests and measurements: found, started on a free port, ended.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// To say its port.
const READY: Duration = Duration::from_secs(20);

/// The program.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Program(PathBuf);

impl Program {
    /// Finds it by `WEIR_MEMCACHED`, which `cargo xtask test` sets where it can be had; none where
    /// that is not set.
    ///
    /// # Errors
    /// There is no such file.
    pub fn find() -> Result<Option<Self>> {
        let Some(path) = env::var_os("WEIR_MEMCACHED").map(PathBuf::from) else {
            return Ok(None);
        };
        ensure!(
            path.is_absolute() && path.is_file(),
            "WEIR_MEMCACHED is {}, which is not the absolute path of a file",
            path.display()
        );
        Ok(Some(Self(path)))
    }

    /// The one in this file.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Starts it on a free port of this machine with so many threads; `folder` is for its files.
    ///
    /// # Errors
    /// It cannot be started or does not say its port.
    pub fn start(&self, threads: u32, folder: &Path) -> Result<Server> {
        let ports = folder.join("memcached.port");
        // Of one before, which would be asked in its place.
        let _ = fs::remove_file(&ports);
        let mut command = Command::new(&self.0);
        command
            // -1: a free port, told in the file. It will not run as root without -u, and leaves -u
            // aside where nobody is root.
            .args(["-l", "127.0.0.1", "-p", "-1", "-U", "0", "-u", "root"])
            .args(["-m", "512", "-c", "2048", "-t", &threads.to_string()])
            .env("MEMCACHED_PORT_FILENAME", &ports)
            .stdin(Stdio::null());
        if let Some(libraries) = libraries(&self.0) {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        let child = command
            .spawn()
            .with_context(|| format!("starting {}", self.0.display()))?;
        let mut server = Server {
            child,
            address: String::new(),
        };
        let deadline = Instant::now() + READY;
        loop {
            if let Some(port) = fs::read_to_string(&ports).ok().as_deref().and_then(port) {
                server.address = format!("127.0.0.1:{port}");
                return Ok(server);
            }
            if let Some(status) = server.child.try_wait()? {
                bail!("memcached ended with {status} at its start");
            }
            ensure!(Instant::now() < deadline, "memcached does not say its port");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The shared libraries that were unpacked beside a program, if it is not the machine's own.
#[must_use]
pub fn libraries(program: &Path) -> Option<PathBuf> {
    let root = program.parent()?.parent()?.parent()?;
    let folder = root.join("usr/lib/x86_64-linux-gnu");
    (root != Path::new("/") && folder.is_dir()).then_some(folder)
}

/// The port in what memcached writes: a line `TCP INET: <port>` for each address.
fn port(said: &str) -> Option<u16> {
    let (line, _) = said.split_once('\n')?;
    line.strip_prefix("TCP INET: ")?.parse().ok()
}

/// One that runs, until it is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether it has not ended by itself.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Also where it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_read_once_its_line_is_whole() {
        assert_eq!(port("TCP INET: 40123\n"), Some(40123));
        assert_eq!(port("TCP INET: 40123\nTCP INET6: 1\n"), Some(40123));
        assert_eq!(port("TCP INET: 401"), None);
        assert_eq!(port(""), None);
    }
}
