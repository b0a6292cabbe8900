// SPDX-License-Identifier: Apache-2.0
//! A registry of images.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use weir_packaging::{Image, layout};

use crate::needs::{self, CRANE};

/// One on a free port of loopback, gone with the value.
pub(crate) struct Registry {
    process: Child,
    address: String,
}

impl Registry {
    pub(crate) fn start() -> Self {
        let mut process = CRANE
            .command()
            .args(["registry", "serve", "--address", "127.0.0.1:0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It says where it listens once it does, and nothing else until it is asked for something.
        let mut said = String::new();
        let mut log = BufReader::new(process.stderr.take().unwrap());
        while !said.contains("serving on port") {
            said.clear();
            assert!(log.read_line(&mut said).unwrap() > 0, "no registry");
        }
        // Its log goes on; nobody else reads it.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        let port = said.trim().rsplit(' ').next().unwrap();
        Self {
            address: format!("127.0.0.1:{port}"),
            process,
        }
    }

    pub(crate) fn push(&self, image: &Image, name: &str, folder: &Path) -> String {
        let layout = folder.join(name);
        layout::write(image, name, &layout).unwrap();
        let reference = format!("{}/weir/{name}:1", self.address);
        needs::succeed(CRANE.command().arg("push").arg(&layout).arg(&reference));
        let said = needs::succeed(CRANE.command().args(["digest", &reference]));
        let said = String::from_utf8(said.stdout).unwrap();
        assert_eq!(said.trim(), image.manifest().digest());
        reference
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
