// SPDX-License-Identifier: Apache-2.0
//! What became of one request, and how it is written down.

use std::io::{self, Write};
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::workload::Request;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Answered 2xx.
    Ok,
    /// The last answer was 429.
    Shed,
    /// The last answer was another error, or none came.
    Failed,
    /// An attempt was under way at the deadline.
    Timeout,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 4] = [Self::Ok, Self::Shed, Self::Failed, Self::Timeout];

    /// Its name in files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Shed => "shed",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
        }
    }

    /// The outcome of this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|outcome| outcome.as_str() == text)
    }
}

/// Where the host had the data from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// Its cache.
    Hit,
    /// A fetch for this request.
    Miss,
    /// A fetch for another request.
    Shared,
}

impl Cache {
    /// Its name in files and headers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Shared => "shared",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let all = [Self::Hit, Self::Miss, Self::Shared];
        all.into_iter().find(|cache| cache.as_str() == text)
    }
}

/// One request and its end. What the answer did not say is `None`.
#[derive(Debug, Clone)]
pub struct Record {
    /// Place in the workload, from 0.
    pub index: usize,
    /// As it stands in the workload.
    pub request: Request,
    /// Which caller sent it.
    pub target: SocketAddr,
    /// From its offset to the first attempt, microseconds: how far the replayer itself was behind.
    pub lag_us: u64,
    /// From its offset to the end of the last attempt, microseconds.
    pub duration_us: u64,
    /// From the sending of the last attempt to its end, microseconds.
    pub attempt_us: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Status of the last answer.
    pub status: Option<u16>,
    /// Attempts made.
    pub attempts: u32,
    /// Attempts answered 429.
    pub shed_attempts: u32,
    /// Host of the last answer.
    pub host: Option<String>,
    /// Why that host, if the filter says.
    pub reason: Option<String>,
    /// Where the data came from.
    pub cache: Option<Cache>,
    /// Wait on the host.
    pub wait_us: Option<u64>,
    /// Fetching on the host.
    pub fetch_us: Option<u64>,
    /// Running on the host.
    pub run_us: Option<u64>,
}

/// The columns of the CSV form and the fields of the NDJSON form.
pub const COLUMNS: &str = "index,t_us,lag_us,duration_us,attempt_us,priority,key,user,target,outcome,status,\
attempts,shed_attempts,host,reason,cache,wait_us,fetch_us,run_us,slowdown";

impl Record {
    /// A record of a request that was not attempted yet.
    #[must_use]
    pub fn new(index: usize, request: Request, target: SocketAddr) -> Self {
        Self {
            index,
            request,
            target,
            lag_us: 0,
            duration_us: 0,
            attempt_us: 0,
            outcome: Outcome::Failed,
            status: None,
            attempts: 0,
            shed_attempts: 0,
            host: None,
            reason: None,
            cache: None,
            wait_us: None,
            fetch_us: None,
            run_us: None,
        }
    }

    /// W / (W + E) of document 001: wait over wait and execution, which is fetch and run. 0 if the
    /// job took no time at all.
    #[must_use]
    pub fn slowdown(&self) -> Option<f64> {
        let wait = self.wait_us? as f64;
        let total = wait + self.fetch_us.unwrap_or(0) as f64 + self.run_us? as f64;
        Some(if total > 0.0 { wait / total } else { 0.0 })
    }

    /// Writes the line of the CSV form.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let cell = |value: Option<u64>| value.map(|v| v.to_string()).unwrap_or_default();
        let Request {
            t_us,
            key,
            priority,
            user,
            ..
        } = &self.request;
        let slowdown = self.slowdown().map(|s| format!("{s:.6}"));
        writeln!(
            out,
            "{},{t_us},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            self.index,
            self.lag_us,
            self.duration_us,
            self.attempt_us,
            plain(priority),
            plain(key),
            plain(user),
            self.target,
            self.outcome.as_str(),
            cell(self.status.map(u64::from)),
            self.attempts,
            self.shed_attempts,
            plain(self.host.as_deref().unwrap_or("")),
            plain(self.reason.as_deref().unwrap_or("")),
            self.cache.map_or("", Cache::as_str),
            cell(self.wait_us),
            cell(self.fetch_us),
            cell(self.run_us),
            slowdown.unwrap_or_default(),
        )
    }

    /// Writes the line of the NDJSON form.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let line = serde_json::json!({
            "index": self.index, "t_us": self.request.t_us, "lag_us": self.lag_us,
            "duration_us": self.duration_us, "attempt_us": self.attempt_us,
            "priority": self.request.priority,
            "key": self.request.key, "user": self.request.user, "target": self.target,
            "outcome": self.outcome, "status": self.status, "attempts": self.attempts,
            "shed_attempts": self.shed_attempts, "host": self.host, "reason": self.reason,
            "cache": self.cache, "wait_us": self.wait_us, "fetch_us": self.fetch_us,
            "run_us": self.run_us, "slowdown": self.slowdown(),
        });
        writeln!(out, "{line}")
    }
}

/// A value that cannot break the plain CSV it is written to.
fn plain(text: &str) -> String {
    text.replace([',', '\n', '\r'], "_")
}
