// SPDX-License-Identifier: Apache-2.0
//! QEMU's monitor: a look at the guest's hardware from outside.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

/// A connection by QMP, as `docs/interop/qmp-spec.txt` of QEMU has it: a line of JSON each way.
pub(crate) struct Monitor(BufReader<UnixStream>);

impl Monitor {
    pub(crate) fn new(stream: UnixStream) -> Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut monitor = Self(BufReader::new(stream));
        let greeting = monitor.read()?;
        ensure!(
            greeting.get("QMP").is_some(),
            "`{greeting}` is no greeting of a monitor"
        );
        monitor.ask("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    /// The byte at an I/O port of the guest.
    pub(crate) fn read_port(&mut self, port: u16) -> Result<u8> {
        let command = format!("i /b 0x{port:x}");
        let answer = self.ask("human-monitor-command", json!({ "command-line": command }))?;
        let said = answer.as_str().unwrap_or_default();
        parse_port(said).with_context(|| format!("`{said}` is not the value of a port"))
    }

    fn ask(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let question = json!({ "execute": command, "arguments": arguments });
        writeln!(self.0.get_mut(), "{question}").context("asking QEMU's monitor")?;
        loop {
            let mut said = self.read()?;
            ensure!(
                said.get("error").is_none(),
                "QEMU's monitor refuses {question}: {said}"
            );
            if let Some(answer) = said.get_mut("return") {
                return Ok(answer.take());
            }
            // It is an event, that nobody asked for.
        }
    }

    fn read(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.0
            .read_line(&mut line)
            .context("reading QEMU's monitor")?;
        ensure!(!line.is_empty(), "QEMU has ended");
        serde_json::from_str(&line).with_context(|| format!("QEMU's monitor said `{line}`"))
    }
}

/// Of `portb[0x03ff] = 0x1a` the value.
fn parse_port(said: &str) -> Option<u8> {
    let (_, value) = said.trim().split_once("= 0x")?;
    u8::from_str_radix(value, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn the_value_of_a_port_is_read_past_events() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let qemu = thread::spawn(move || {
            let said = "{\"QMP\": {}}\n{\"return\": {}}\n{\"event\": \"RESUME\"}\n\
                        {\"return\": \"portb[0x03ff] = 0x1a\\r\\n\"}\n";
            there.write_all(said.as_bytes()).unwrap();
            let mut heard = BufReader::new(there).lines();
            heard.nth(1).unwrap().unwrap()
        });
        let mut monitor = Monitor::new(here).unwrap();
        assert_eq!(monitor.read_port(0x3FF).unwrap(), 0x1A);
        assert!(qemu.join().unwrap().contains("i /b 0x3ff"));
    }

    #[test]
    fn an_answer_without_a_value_is_refused() {
        assert_eq!(parse_port("unknown command: 'i'"), None);
    }
}
