// SPDX-License-Identifier: Apache-2.0
//! A program that is profiled, killed when dropped.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use weir_profile::{Error, Report, Request, profile};

pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }

    /// Waits until it has mapped one of this name.
    #[allow(dead_code, reason = "each test program uses what it needs")]
    pub(crate) fn wait_for_file(&self, name: &str) {
        let maps = format!("/proc/{}/maps", self.0.id());
        for _ in 0..3000 {
            if std::fs::read_to_string(&maps).is_ok_and(|text| text.contains(name)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("waited for {name}");
    }

    pub(crate) fn profile(&self, seconds: u64, agent: Option<PathBuf>) -> Result<Report, Error> {
        let request = Request {
            process: NonZeroU32::new(self.0.id()).expect("a process has a number"),
            time: Duration::from_secs(seconds),
            queries: None,
            agent,
        };
        profile(&request, &mut |_| ())
    }
}
