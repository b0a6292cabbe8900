// SPDX-License-Identifier: Apache-2.0
//! weir-control while it serves; killed on drop.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use weir_processes::http::{self, Answer};
use weir_processes::process::Started;

use super::waits::until_there;
use super::with_config;

const NAME: &str = "weir-control";
const END: Duration = Duration::from_secs(30);
/// A host that nobody listens for.
const CLUSTERS: &str = "clusters: { r: { hosts: [ { address: 127.0.0.1:9 } ] } }\n";

pub(crate) struct Serving {
    process: Started,
    ports: Value,
    /// What it has said so far is there.
    log: PathBuf,
}

impl Serving {
    /// By a program that takes its flags, and with more in its configuration than a cluster.
    pub(crate) fn start(program: Command, folder: &Path, more: &str) -> Self {
        Self::start_with(program, folder, &format!("{CLUSTERS}{more}"))
    }

    /// The same with the whole of its configuration but its ports.
    pub(crate) fn start_with(program: Command, folder: &Path, rest: &str) -> Self {
        let (path, ports) = (folder.join("c.yaml"), folder.join("ports.json"));
        let free = "{ listen: \"127.0.0.1:0\" }";
        let text = format!("xds: {free}\nadmin: {free}\n{rest}");
        std::fs::write(&path, text).unwrap();
        let mut command = with_config(program, &path);
        command.arg("--ports-file").arg(&ports);
        let mut process = Started::new(NAME, command, folder).unwrap();
        let text = until_there("ports", || {
            process.must_live().unwrap();
            std::fs::read(&ports)
        });
        Self {
            process,
            ports: serde_json::from_slice(&text).unwrap(),
            log: folder.join(format!("{NAME}.log")),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// `xds` or `admin`.
    pub(crate) fn port(&self, name: &str) -> &str {
        self.ports[name].as_str().unwrap()
    }

    /// The answer of an admin page.
    pub(crate) fn page(&self, path: &str) -> Answer {
        http::ask(self.port("admin").parse().unwrap(), path).unwrap()
    }

    /// It ends well when it is told to. Returns all that it has said.
    pub(crate) fn end(self) -> String {
        assert_eq!(self.process.end(END).unwrap().code(), Some(0));
        std::fs::read_to_string(self.log).unwrap()
    }
}
