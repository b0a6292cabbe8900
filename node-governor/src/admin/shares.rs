// SPDX-License-Identifier: Apache-2.0
//! What `/state` says of the service's cores and the jobs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::book::shares::{JobBook, PeerBook, SharesBook, reason_name, state_name};

/// Who has what, and how far the jobs are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SharesView {
    /// The service's, as `0-1`; empty where it lives on another node.
    pub cores: String,
    /// How many these are.
    pub count: usize,
    /// Of each service beside it, by its name.
    #[serde(default)]
    pub others: BTreeMap<String, String>,
    /// Why it has them.
    pub why: String,
    /// Times that they changed.
    pub moves: u64,
    /// Cores that it uses; null while that is not known.
    pub cpu: Option<f64>,
    /// What its latency shall stay under; null where the policy has no target.
    pub target_ms: Option<f64>,
    /// The mesh refuses requests or is about to.
    pub pressed: bool,
    /// The mesh refuses requests; null where it says nothing.
    pub refuses: Option<bool>,
    /// For how long requests wait there; null while that is not known.
    pub delay_ms: Option<f64>,
    /// Reported to the mesh; null where nothing is.
    pub capacity_cores: Option<f64>,
    /// Writes of cores, freezing and thawing that failed.
    pub write_errors: u64,
    /// Of the jobs; those that have failed too.
    pub ended: usize,
    /// Of these.
    pub failed: usize,
    /// Of the CPU time that all jobs take, 0 to 1; null unless it is known of every one.
    pub share: Option<f64>,
    /// In their order.
    pub jobs: Vec<JobView>,
    /// Governors of other nodes that are asked for jobs there.
    #[serde(default)]
    pub peers: Vec<PeerView>,
}

/// The governor of another node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PeerView {
    /// Name of its node.
    pub node: String,
    /// Its last answer was a good one.
    pub answers: bool,
    /// Its jobs that jobs here wait for, and whether each has ended; null while that is not known.
    pub jobs: BTreeMap<String, Option<bool>>,
}

/// One job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobView {
    /// As configured.
    pub name: String,
    /// `short`, `medium` or `long`.
    pub queue: String,
    /// `waiting`, `running`, `paused`, `finished` or `failed`.
    pub state: String,
    /// Where it runs; empty while it does not.
    pub cores: String,
    /// It was started with so many, or will be.
    pub threads: u32,
    /// Time in which it ran.
    pub ran_s: f64,
    /// Time in which it was frozen.
    pub paused_s: f64,
    /// Times that it was.
    pub pauses: u64,
    /// CPU time that it has used; null while that is not known.
    pub cpu_s: Option<f64>,
    /// Of the CPU time that it takes, 0 to 1; null where that is not known.
    pub share: Option<f64>,
    /// How it ended: an exit code, or 128 and the signal.
    pub code: Option<i32>,
    /// What went wrong.
    pub trouble: Option<String>,
}

impl SharesView {
    pub(super) fn new(book: &SharesBook) -> Self {
        let progress = book.progress();
        let delay = book.row.and_then(|row| row.delay);
        Self {
            cores: book.service.to_string(),
            count: book.service.len(),
            others: book
                .others
                .iter()
                .map(|(name, cores)| (name.clone(), cores.to_string()))
                .collect(),
            why: reason_name(book.reason).to_owned(),
            moves: book.moves,
            cpu: book.cpu,
            target_ms: book.target.map(|target| target.as_secs_f64() * 1e3),
            pressed: book.pressed,
            refuses: book.row.map(|row| row.refuses),
            delay_ms: delay.map(|delay| delay.as_secs_f64() * 1e3),
            capacity_cores: book
                .capacity_millicores
                .map(|thousandths| f64::from(thousandths) / 1e3),
            write_errors: book.write_errors,
            ended: progress.ended,
            failed: progress.failed,
            share: progress.share,
            jobs: book.jobs.iter().map(JobView::new).collect(),
            peers: book.peers.iter().map(PeerView::new).collect(),
        }
    }
}

impl PeerView {
    fn new(peer: &PeerBook) -> Self {
        Self {
            node: peer.node.clone(),
            answers: peer.answers,
            jobs: peer.jobs.iter().cloned().collect(),
        }
    }
}

impl JobView {
    fn new(job: &JobBook) -> Self {
        Self {
            name: job.name.clone(),
            queue: job.queue.to_owned(),
            state: state_name(job.state).to_owned(),
            cores: job.cores.to_string(),
            threads: job.threads,
            ran_s: job.ran.as_secs_f64(),
            paused_s: job.paused.as_secs_f64(),
            pauses: job.pauses,
            cpu_s: job.cpu.map(|cpu| cpu.as_secs_f64()),
            share: job.share(),
            code: job.code,
            trouble: job.trouble.clone(),
        }
    }
}
