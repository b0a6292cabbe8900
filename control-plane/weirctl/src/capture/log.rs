// SPDX-License-Identifier: Apache-2.0
//! The logs of all callers, in the order in which requests came.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use weir_filter::orca::Spent;
use weir_policy::KeyHash;

use super::entry::Entry;

/// Of requests, as all of them are held in memory: about 400 MB.
const MOST: usize = 5_000_000;
/// Of bytes.
const LONGEST_LINE: u64 = 64 * 1024;

#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) seen: Vec<Seen>,
    pub(super) keys: Names,
    pub(super) hosts: Names,
    pub(super) users: Names,
    /// How many there are.
    pub(super) logs: usize,
}

/// A request.
#[derive(Debug)]
pub(super) struct Seen {
    /// Microseconds since 1970.
    pub(super) came: u64,
    pub(super) key: Option<u32>,
    pub(super) user: Option<u32>,
    /// Which of the logs.
    pub(super) log: u16,
    pub(super) important: bool,
    pub(super) duration_ms: u32,
    /// At the host that answered well.
    pub(super) visit: Option<Visit>,
    /// As that host says.
    pub(super) cost: Option<Spent>,
}

/// Microseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    pub(super) host: u32,
    pub(super) arrived: u64,
    pub(super) ended: u64,
}

/// Each once, by number.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl Names {
    fn number(&mut self, name: String) -> u32 {
        let next = self.names.len() as u32;
        *self.numbers.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next
        })
    }

    pub(super) fn name(&self, number: u32) -> &str {
        &self.names[number as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
}

impl Log {
    pub(super) fn read(files: &[PathBuf], keep_names: bool) -> Result<Self> {
        ensure!(files.len() <= usize::from(u16::MAX), "too many logs");
        let mut log = Self::default();
        for file in files {
            log.add(file, keep_names)?;
            log.logs += 1;
        }
        log.seen.sort_by_key(|seen| seen.came);
        Ok(log)
    }

    fn add(&mut self, file: &Path, keep_names: bool) -> Result<()> {
        let name = file.display();
        let mut input = BufReader::new(File::open(file).with_context(|| name.to_string())?);
        let mut line = String::new();
        for number in 1.. {
            line.clear();
            let read = (&mut input).take(LONGEST_LINE).read_line(&mut line);
            if read.with_context(|| format!("{name}:{number}"))? == 0 {
                break;
            }
            if line.len() as u64 == LONGEST_LINE {
                bail!("{name}:{number}: the line is longer than {LONGEST_LINE} bytes");
            }
            if line.trim().is_empty() {
                continue;
            }
            ensure!(
                self.seen.len() < MOST,
                "{name}:{number}: more than {MOST} requests: take a shorter part of the logs"
            );
            let entry =
                Entry::parse(&line).map_err(|error| anyhow::anyhow!("{name}:{number}: {error}"))?;
            let seen = self.seen(entry, keep_names);
            self.seen.push(seen);
        }
        Ok(())
    }

    fn seen(&mut self, entry: Entry, keep_names: bool) -> Seen {
        let important = entry.is_important();
        let came = u64::try_from(entry.start_time.as_microsecond()).unwrap_or(0);
        let answered = matches!(entry.response_code, 200..=399);
        let cost = entry.cost().filter(|_| answered);
        let host = entry.upstream_host.filter(|_| answered);
        let visit =
            host.zip(entry.before_us)
                .zip(entry.upstream_us)
                .map(|((host, before), took)| Visit {
                    host: self.hosts.number(host),
                    arrived: came + before,
                    // Nothing takes no time: an end comes after its arrival.
                    ended: came + before + took.max(1),
                });
        let shown = |name: String| match keep_names {
            true => name,
            false => format!("{:016x}", KeyHash::of(name.as_bytes()).0),
        };
        let filled = |name: Option<String>| name.filter(|name| !name.is_empty()).map(shown);
        Seen {
            came,
            key: filled(entry.key).map(|key| self.keys.number(key)),
            user: filled(entry.user).map(|user| self.users.number(user)),
            cost,
            log: self.logs as u16,
            important,
            duration_ms: entry.duration.try_into().unwrap_or(u32::MAX),
            visit,
        }
    }
}
