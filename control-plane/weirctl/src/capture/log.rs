// SPDX-License-Identifier: Apache-2.0
//! The logs of all callers, in the order in which requests came.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use weir_filter::orca::Spent;

use super::Asked;
use super::entry::{Entry, Name};

/// Of requests, as all of them are held in memory: about 400 MB.
pub(crate) const MOST: usize = 5_000_000;
/// Of bytes.
const LONGEST_LINE: u64 = 64 * 1024;

#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) seen: Vec<Seen>,
    pub(super) keys: Names,
    pub(super) hosts: Names,
    pub(super) users: Names,
    pub(super) callers: Names,
    /// Of receipts.
    clusters: Names,
}

/// A request.
#[derive(Debug)]
pub(super) struct Seen {
    /// Microseconds since 1970.
    pub(super) came: u64,
    pub(super) key: Option<u32>,
    pub(super) user: Option<u32>,
    pub(super) caller: u32,
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
    pub(super) fn read(asked: &Asked) -> Result<Self> {
        let mut log = Self::default();
        for (number, file) in asked.logs.iter().enumerate() {
            log.add(file, &format!("log-{number}"), asked)?;
        }
        log.seen.sort_by_key(|seen| seen.came);
        Ok(log)
    }

    /// `whose`: the caller of lines that name none.
    fn add(&mut self, file: &Path, whose: &str, asked: &Asked) -> Result<()> {
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
            let entry = Entry::parse(&line).map_err(|error| anyhow!("{name}:{number}: {error}"))?;
            let is_asked = self.is_asked(entry.cluster.as_deref(), asked);
            if is_asked.with_context(|| format!("{name}:{number}"))? {
                let seen = self.seen(entry, whose, asked.keep_names);
                self.seen.push(seen);
            }
        }
        Ok(())
    }

    /// Whether a line of this cluster is to be taken.
    fn is_asked(&mut self, cluster: Option<&str>, asked: &Asked) -> Result<bool> {
        match (cluster, &asked.cluster) {
            (None, None) => return Ok(true),
            (None, Some(_)) => bail!("--cluster chooses among receipts; this is an access log"),
            (Some(cluster), Some(asked)) => return Ok(cluster == asked),
            (Some(cluster), None) => self.clusters.number(cluster.to_owned()),
        };
        ensure!(
            self.clusters.len() == 1,
            "receipts are of {}: say which by --cluster",
            self.clusters.names.join(" and ")
        );
        Ok(true)
    }

    fn seen(&mut self, entry: Entry, whose: &str, keep_names: bool) -> Seen {
        let came = entry.came;
        let answered = matches!(entry.status, 200..=399);
        let visit = entry.took.filter(|_| answered).map(|took| {
            let arrived = came.saturating_add(took.before_us);
            Visit {
                host: self.hosts.number(took.host),
                arrived,
                // Nothing takes no time: an end comes after its arrival.
                ended: arrived.saturating_add(took.us.max(1)),
            }
        });
        let number = |names: &mut Names, name: Option<Name>| {
            name.map(|name| names.number(name.shown(keep_names)))
        };
        Seen {
            came,
            key: number(&mut self.keys, entry.key),
            user: number(&mut self.users, entry.user),
            cost: entry.cost.filter(|_| answered),
            caller: self
                .callers
                .number(entry.caller.unwrap_or_else(|| whose.to_owned())),
            important: entry.important,
            duration_ms: entry.duration_ms,
            visit,
        }
    }
}
