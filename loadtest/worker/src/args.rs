// SPDX-License-Identifier: Apache-2.0
//! The command line of `weir-worker`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use weir_executor::scheduler::{Formula, QuantumSettings};
use weir_executor::{Eviction, Order, Settings, Timing};
use weir_worker::engine::UNWANTED;
use weir_worker::priorities::Priority;
use weir_worker::server::Leaving;
use weir_worker::server::emulated::Model;
use weir_worker::server::faults::Faults;

/// Cores of an emulated host.
const EMULATED_CORES: usize = 4;
/// What document 003 found best of round robin in its first experiment; in its third it ran 40 ms.
const ROUND_ROBIN_QUANTUM: Duration = Duration::from_millis(20);

/// A rule-processing host: cores, joblets in a queue, and a cache.
///
/// With --store its work is real: POST a job (see the README) and it reads the project's items,
/// applies the rules and answers with the result. With --emulate a job holds a core, asleep, for
/// the time its request says; no CPU is burnt and no data is read.
#[derive(Debug, Parser)]
#[command(name = "weir-worker", version)]
pub(crate) struct Args {
    /// Process rules on the items in this store: a folder, file:///..., s3://bucket/prefix or
    /// gs://bucket/prefix.
    #[arg(long, value_name = "URL", required_unless_present = "emulate")]
    pub(crate) store: Option<String>,
    /// Emulate the work instead.
    #[arg(long, conflicts_with = "store")]
    pub(crate) emulate: bool,
    /// Address to serve on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:9001")]
    pub(crate) listen: SocketAddr,
    /// Write {"listen":"ADDRESS"} to this file once the port is bound.
    #[arg(long, value_name = "FILE")]
    pub(crate) ports_file: Option<PathBuf>,
    /// Cores to use [default: those of the machine; 4 virtual ones with --emulate].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    cores: Option<u16>,
    /// Cache size in bytes; K, M, G (powers of 1000) and Ki, Mi, Gi (of 1024) are understood.
    #[arg(long, default_value = "1Gi", value_parser = parse_bytes)]
    cache_bytes: u64,
    /// What leaves the cache when it is full: oldest (what was stored first), largest or least-used, both after what
    /// was not used for an hour.
    #[arg(long, default_value = "oldest")]
    eviction: Eviction,
    /// A priority name (header x-weir-priority) and its class, 0 (most important) to 31.
    #[arg(long, value_name = "NAME=CLASS", default_values = ["high=0", "low=16"])]
    pub(crate) priority: Vec<Priority>,
    /// Priority of a request that names none of them.
    #[arg(long, value_name = "NAME", default_value = "low")]
    pub(crate) default_priority: String,
    /// Jobs that may wait for a core; more are answered 503.
    #[arg(long, default_value_t = 10_000)]
    max_queued: usize,
    /// Cache changes remembered for GET /cache?since=; older questions get everything.
    #[arg(long, default_value_t = 65_536)]
    change_log: usize,
    /// Answers tell application_utilization and rps_fractional in ORCA's header, for weighted round robin,
    /// instead of what Weir reads.
    #[arg(long)]
    pub(crate) orca_utilisation: bool,
    /// Seconds that jobs may go on after SIGTERM.
    #[arg(long, default_value_t = 30)]
    drain_seconds: u64,
    /// Seconds after SIGTERM for which it serves on, so that its callers hear that it leaves.
    #[arg(long, default_value_t = 3)]
    notice_seconds: u64,

    /// The order in which joblets get cores.
    #[arg(long, value_enum, default_value_t, help_heading = "Order")]
    order: OrderName,
    /// Core time of a turn (round-robin, default 20000) or the basic quantum (quantum, default 500).
    #[arg(long, help_heading = "Order", value_parser = clap::value_parser!(u64).range(1..))]
    quantum_us: Option<u64>,
    /// Priorities of SharedOperators, Operators and OutputFeed; smaller is more important (quantum)
    /// [default: 10,10,5].
    #[arg(long, help_heading = "Order", value_parser = parse_three, value_name = "P,P,P")]
    quantum_priorities: Option<[u32; 3]>,
    /// Allowance of a kind with priority p: (CEILING - p) basic quanta, BOOST times that where p is
    /// below BOUNDARY (quantum) [default: 40,20,4, an assumption: see the executor's README].
    #[arg(
        long,
        help_heading = "Order",
        value_parser = parse_three,
        value_name = "CEILING,BOUNDARY,BOOST"
    )]
    quantum_formula: Option<[u32; 3]>,
    /// A FeedSource runs after so many other joblets (quantum) [default: 5].
    #[arg(long, help_heading = "Order")]
    source_interval: Option<u32>,

    /// Run steps that cannot matter for the answer, too.
    #[arg(long, help_heading = "Rules")]
    pub(crate) no_optimise: bool,
    /// Look for new data of a project when the last look is so many seconds old.
    #[arg(long, default_value_t = 10, help_heading = "Rules")]
    pub(crate) recheck_seconds: u64,
    /// Seconds that a joblet may go on when everybody who wanted its result has left.
    #[arg(long, default_value_t = UNWANTED.as_secs(), help_heading = "Rules")]
    pub(crate) unwanted_seconds: u64,
    /// Largest request, in bytes.
    #[arg(long, default_value = "4Mi", value_parser = parse_bytes, help_heading = "Rules")]
    pub(crate) max_body_bytes: u64,
    /// Largest feed, as stored, decoded or made by rules, in bytes.
    #[arg(long, default_value = "4Gi", value_parser = parse_bytes, help_heading = "Rules")]
    pub(crate) max_feed_bytes: u64,
    /// Largest answer, in bytes. A slow client's answer is held in memory up to this size.
    #[arg(long, default_value = "1Gi", value_parser = parse_bytes, help_heading = "Rules")]
    pub(crate) max_answer_bytes: u64,
    /// Write a line of JSON for every joblet that has ended.
    #[arg(long, value_name = "FILE", help_heading = "Rules")]
    pub(crate) joblet_log: Option<PathBuf>,

    /// Emulated time to the first byte of a fetch, in microseconds.
    #[arg(long, default_value_t = 5_000, help_heading = "Emulation")]
    fetch_base_us: u64,
    /// Emulated bandwidth of one fetch in bytes per second; same suffixes as --cache-bytes.
    #[arg(long, default_value = "1G", value_parser = parse_bytes, help_heading = "Emulation")]
    fetch_bytes_per_second: u64,
    /// Emulated run time of a request without x-emulate-run-us, in microseconds.
    #[arg(long, default_value_t = 1_000, help_heading = "Emulation")]
    default_run_us: u64,
    /// For tests of faults: note in FOLDER/ADDRESS.executions each job with a header x-emulate-id as it
    /// begins and ends, answer every job 500 while FOLDER/ADDRESS.failing is there, and run jobs N times as
    /// long while FOLDER/ADDRESS.slowness has the number N. ADDRESS is that of --listen.
    #[arg(
        long,
        value_name = "FOLDER",
        requires = "emulate",
        help_heading = "Emulation"
    )]
    pub(crate) faults: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum OrderName {
    /// The most important job first, then the oldest.
    #[default]
    Priority,
    /// As priority, and what runs makes room at the next batch for what is more important.
    Suspending,
    /// Each kind of joblet in turn, for --quantum-us of core time.
    RoundRobin,
    /// Kinds by priority while their allowance lasts, sources at intervals (QBS).
    Quantum,
    /// The kind through which answers leave at the highest rate.
    RateBased,
    /// All at once; the operating system shares the cores.
    ThreadPerJob,
}

impl Args {
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            cores: self.cores(),
            cache_bytes: self.cache_bytes,
            max_queued: self.max_queued,
            change_log: self.change_log,
            order: self.order(),
            eviction: self.eviction,
        }
    }

    /// Joblets that may have begun at the same time, a thread each.
    pub(crate) fn joblets_at_once(&self) -> usize {
        match self.order {
            OrderName::ThreadPerJob => self.cores().saturating_add(self.max_queued),
            // As many stand at most as there are cores.
            OrderName::Suspending => 2 * self.cores(),
            _ => self.cores(),
        }
    }

    pub(crate) fn model(&self, faults: Option<Arc<Faults>>) -> Model {
        Model {
            timing: Timing {
                fetch_base: Duration::from_micros(self.fetch_base_us),
                fetch_bytes_per_second: self.fetch_bytes_per_second,
            },
            default_run: Duration::from_micros(self.default_run_us),
            faults,
        }
    }

    pub(crate) fn leaving(&self) -> Leaving {
        Leaving {
            notice: Duration::from_secs(self.notice_seconds),
            drain: Duration::from_secs(self.drain_seconds),
        }
    }

    fn cores(&self) -> usize {
        match self.cores {
            Some(cores) => usize::from(cores),
            None if self.emulate => EMULATED_CORES,
            None => available_parallelism().map_or(1, NonZeroUsize::get),
        }
    }

    fn order(&self) -> Order {
        let quantum = self.quantum_us.map(Duration::from_micros);
        match self.order {
            OrderName::Priority => Order::Priority,
            OrderName::Suspending => Order::Suspending,
            OrderName::RoundRobin => Order::RoundRobin {
                quantum: quantum.unwrap_or(ROUND_ROBIN_QUANTUM),
            },
            OrderName::Quantum => Order::Quantum(self.quantum_settings(quantum)),
            OrderName::RateBased => Order::RateBased,
            OrderName::ThreadPerJob => Order::ThreadPerJob,
        }
    }

    fn quantum_settings(&self, basic: Option<Duration>) -> QuantumSettings {
        let default = QuantumSettings::default();
        let formula = |[ceiling, boundary, boost]: [u32; 3]| Formula {
            ceiling,
            boundary,
            boost,
        };
        QuantumSettings {
            basic: basic.unwrap_or(default.basic),
            priorities: self
                .quantum_priorities
                .map_or(default.priorities, Vec::from),
            source_interval: self.source_interval.unwrap_or(default.source_interval),
            formula: self.quantum_formula.map_or(default.formula, formula),
        }
    }
}

fn parse_three(text: &str) -> Result<[u32; 3], String> {
    let number = |part: &str| {
        part.parse()
            .map_err(|_| format!("{part:?} is not a number"))
    };
    let numbers: Vec<u32> = text.split(',').map(number).collect::<Result<_, _>>()?;
    numbers
        .try_into()
        .map_err(|_| "expected three numbers with commas between".to_owned())
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor: u64 = match &text[digits.len()..] {
        "" => 1,
        "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        suffix => return Err(format!("unknown suffix {suffix:?}")),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("{digits:?} is not a whole number"))?;
    number.checked_mul(factor).ok_or("too large".to_owned())
}
