// SPDX-License-Identifier: Apache-2.0
//! weir-control as a whole process.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::waits::until_there;

pub(crate) struct Program {
    child: Child,
    pub(crate) xds: SocketAddr,
    pub(crate) admin: SocketAddr,
    folder: TempDir,
}

impl Program {
    /// With this configuration, and files beside it.
    pub(crate) fn start(config: &str, files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in files.iter().chain(&[("c.yaml", config)]) {
            std::fs::write(at(name), text).unwrap();
        }
        let log = std::fs::File::create(at("log")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir-control"))
            .arg("--config")
            .arg(at("c.yaml"))
            .arg("--ports-file")
            .arg(at("ports"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let ports = until("ports", || {
            let log = || std::fs::read_to_string(at("log"));
            assert!(child.try_wait().unwrap().is_none(), "{:?}", log());
            std::fs::read(at("ports")).ok()
        });
        let ports: Value = serde_json::from_slice(&ports).unwrap();
        let port = |name: &str| ports[name].as_str().unwrap().parse().unwrap();
        Self {
            child,
            xds: port("xds"),
            admin: port("admin"),
            folder,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap()
    }

    /// The body of a page.
    pub(crate) fn page(&self, path: &str) -> String {
        let answer = page(self.admin, path).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{head}");
        body.to_owned()
    }

    pub(crate) fn tables(&self) -> Value {
        serde_json::from_str(&self.page("/tables")).unwrap()
    }

    /// Bytes of memory that it has at most had so far. Tests compare it with several times what the limits of the
    /// configuration let it hold at once: where the machine is slow, less of what is sent is there at a time.
    pub(crate) fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
        kilobytes.parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks again and again until there is something.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    until_there(what, || look().ok_or("nothing"))
}

pub(crate) const FREE: &str =
    "xds: { listen: \"127.0.0.1:0\" }\nadmin: { listen: \"127.0.0.1:0\" }\n";

/// What is answered at this address, if anything is.
pub(crate) fn page(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let limit = Some(Duration::from_secs(60));
    stream.set_read_timeout(limit).ok()?;
    let question = format!("GET {path} HTTP/1.0\r\nhost: weir\r\n\r\n");
    stream.write_all(question.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
