// SPDX-License-Identifier: Apache-2.0
//! Two classes of HTB at the root of an interface, by iproute2's `tc`.
//!
//! Only in place of the kernel's own default, which comes back by itself: what somebody else has made is left alone,
//! for with its filters and classes it could not be made again.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::root::Root;

const PROGRAM: &str = "tc";
/// Of the discipline and its classes. Somebody else's by chance is one in 65,536.
const HANDLE: &str = "5e1f:";
const OTHERS: &str = "5e1f:10";
/// As in egress.bpf.c.
const JOBS: &str = "5e1f:20";
/// Of the others, in bits a second: more than any link has, for nothing holds them up.
const NO_CEILING: u64 = 1_000_000_000_000;
/// What a class sends before another one's turn: of large links `tc` would take more than the kernel likes.
const QUANTUM: &str = "60000";

/// Those of one interface.
#[derive(Debug)]
pub(super) struct Classes {
    interface: String,
    root: Root,
}

/// What `tc -j qdisc show` says of a discipline.
#[derive(Debug, Deserialize)]
struct Discipline {
    kind: String,
    handle: String,
    #[serde(default)]
    root: bool,
}

impl Classes {
    pub(super) fn of(interface: &str, root: &Root) -> Self {
        Self {
            interface: interface.to_owned(),
            root: root.clone(),
        }
    }

    pub(super) fn interface(&self) -> &str {
        &self.interface
    }

    pub(super) fn root(&self) -> &Root {
        &self.root
    }

    /// The kernel's discipline, where there is no other.
    pub(super) fn default(&self) -> io::Result<String> {
        if !self.is_there() {
            let folder = self.folder();
            let reason = format!("no {}; see ip link", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, reason));
        }
        let Discipline { kind, handle, .. } = self.discipline()?;
        if handle == "0:" {
            return Ok(kind);
        }
        let interface = &self.interface;
        Err(io::Error::other(format!(
            "{interface} has the discipline {kind} {handle}, which somebody has made: remove it (tc qdisc del dev {interface} root), or leave out network"
        )))
    }

    /// In its place, both classes. Where that fails, nothing of them is left.
    pub(super) fn make(&self, ceiling: u64) -> io::Result<()> {
        let make = || {
            self.tc(
                &["qdisc", "add"],
                &["root", "handle", HANDLE, "htb", "default", "10"],
            )?;
            self.class("add", OTHERS, NO_CEILING, "0")?;
            self.class("add", JOBS, ceiling, "1")
        };
        make().map_err(|error| {
            // What was there before it failed.
            let _ = self.remove();
            let hint = "the kernel needs HTB (modprobe sch_htb), and the governor CAP_NET_ADMIN";
            io::Error::new(error.kind(), format!("{error}; {hint}"))
        })
    }

    /// What jobs may send from now on, in bits a second.
    pub(super) fn set(&self, ceiling: u64) -> io::Result<()> {
        self.class("change", JOBS, ceiling, "1")
    }

    fn class(&self, act: &str, class: &str, rate: u64, prio: &str) -> io::Result<()> {
        let burst = burst(rate).to_string();
        let rate = format!("{rate}bit");
        let arguments = [
            "parent", HANDLE, "classid", class, "htb", "rate", &rate, "ceil", &rate, "prio", prio,
            "burst", &burst, "cburst", &burst, "quantum", QUANTUM,
        ];
        self.tc(&["class", act], &arguments).map(drop)
    }

    /// Bytes that others than jobs have sent.
    pub(super) fn others(&self) -> io::Result<u64> {
        let said = self.tc(&["-s", "class", "show"], &[])?;
        sent(&said, OTHERS).ok_or_else(|| {
            let interface = &self.interface;
            io::Error::other(format!("{interface}: the class {OTHERS} is gone"))
        })
    }

    /// Removes them, where they are there: another discipline in their place is somebody else's.
    pub(super) fn remove(&self) -> io::Result<()> {
        if self.is_there() && self.discipline()?.handle == HANDLE {
            self.tc(&["qdisc", "del"], &["root"])?;
        }
        Ok(())
    }

    fn is_there(&self) -> bool {
        self.folder().exists()
    }

    fn folder(&self) -> PathBuf {
        self.root.path("sys/class/net").join(&self.interface)
    }

    fn discipline(&self) -> io::Result<Discipline> {
        let said = self.tc(&["-j", "qdisc", "show"], &[])?;
        at_root(&said).ok_or_else(|| {
            let interface = &self.interface;
            io::Error::other(format!("{PROGRAM} says of {interface}: {said:?}"))
        })
    }

    /// Runs it on this interface; what it says.
    fn tc(&self, act: &[&str], more: &[&str]) -> io::Result<String> {
        let more = ["dev", &self.interface]
            .into_iter()
            .chain(more.iter().copied());
        run(act.iter().copied().chain(more))
    }
}

/// As it says it.
pub(super) fn version() -> io::Result<String> {
    Ok(run(["-V"])?.trim().to_owned())
}

/// What the program says, or why it does not.
fn run<'a>(arguments: impl IntoIterator<Item = &'a str>) -> io::Result<String> {
    let arguments: Vec<&str> = arguments.into_iter().collect();
    let mut command = Command::new(PROGRAM);
    let output = command.args(&arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| {
        let reason = format!("program {PROGRAM}: {error}; it is of the package iproute2");
        io::Error::new(error.kind(), reason)
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.split_whitespace().collect();
    let (arguments, said) = (arguments.join(" "), said.join(" "));
    Err(io::Error::other(format!("{PROGRAM} {arguments}: {said}")))
}

/// What a class may send at once, in bytes: of a millisecond, or the largest packet. Without that each packet of a large
/// link would wait for a timer.
fn burst(rate: u64) -> u64 {
    (rate / 8 / 1000).max(65536)
}

fn at_root(said: &str) -> Option<Discipline> {
    let all: Vec<Discipline> = serde_json::from_str(said).ok()?;
    all.into_iter().find(|discipline| discipline.root)
}

/// Of `tc -s class show`, which has no JSON for HTB's classes in every version.
fn sent(said: &str, class: &str) -> Option<u64> {
    let head = format!("class htb {class} ");
    let mut lines = said.lines().skip_while(|line| !line.starts_with(&head));
    let mut words = lines.nth(1)?.split_whitespace();
    (words.next() == Some("Sent")).then(|| words.next()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_discipline_at_the_root_is_read_and_whose_it_is() {
        // As tc of iproute2 6.1 says it of an interface of several queues.
        let said = r#"[{"kind":"mq","handle":"0:","root":true,"options":{}},
            {"kind":"fq_codel","handle":"0:","parent":":1","options":{"limit":10240}}]"#;
        let found = at_root(said).unwrap();
        assert_eq!((&*found.kind, &*found.handle), ("mq", "0:"));
        let said =
            r#"[{"kind":"htb","handle":"5e1f:","root":true,"refcnt":2,"options":{"r2q":10}}]"#;
        assert_eq!(at_root(said).unwrap().handle, HANDLE);
        assert!(at_root("[]").is_none() && at_root("no").is_none());
    }

    #[test]
    fn what_a_class_has_sent_is_read() {
        // As tc of iproute2 6.1 says it.
        let said = "class htb 5e1f:10 root prio 0 rate 8Mbit ceil 8Mbit burst 1600b cburst 1600b 
 Sent 123456 bytes 12 pkt (dropped 0, overlimits 0 requeues 0) 
 backlog 0b 0p requeues 0
 lended: 0 borrowed: 0 giants: 0
 tokens: 25000 ctokens: 25000

class htb 5e1f:20 root prio 1 rate 64Kbit ceil 64Kbit burst 1600b cburst 1600b 
 Sent 78 bytes 1 pkt (dropped 0, overlimits 0 requeues 0) 
";
        assert_eq!(sent(said, OTHERS), Some(123_456));
        assert_eq!(sent(said, JOBS), Some(78));
        assert_eq!(sent(said, "5e1f:2"), None);
        assert_eq!(sent("class htb 5e1f:10 root", OTHERS), None);
    }

    #[test]
    fn an_interface_that_is_not_there_is_named_and_one_that_has_gone_is_as_found() {
        let folder = tempfile::tempdir().unwrap();
        let classes = Classes::of("eth7", &Root::new(folder.path()));
        let error = classes.default().unwrap_err().to_string();
        assert!(error.contains("sys/class/net/eth7"), "{error}");
        classes.remove().unwrap();
    }
}
