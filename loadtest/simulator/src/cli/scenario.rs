// SPDX-License-Identifier: Apache-2.0
//! What fleet the command line asks for.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;
use weir_control::config::Dagor;
use weir_executor::{Order, Settings, Timing};
use weir_policy::holding::LONGEST_HOLD;
use weir_policy::{Hedging, Holding, Overload, Policy, Selection, dagor, overload::breaker};
use weir_replay::backoff::Backoff;
use weir_replay::units;
use weir_sim::Scenario;
use weir_sim::scenario::{Accept, Fate, Preemption, Timeouts, Trouble};

#[derive(clap::Args)]
pub(super) struct Args {
    /// What is asked for (CSV or NDJSON, as `weir-replay workload` writes it)
    #[arg(long, value_name = "FILE")]
    pub(super) workload: PathBuf,
    /// Every request and its end, as CSV
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    #[arg(long, value_enum, default_value = "dynamic")]
    selection: SelectionName,
    #[arg(long, value_enum, default_value = "none")]
    overload: OverloadName,
    /// With breaker: more queued jobs than this close a host
    #[arg(long, default_value_t = breaker::QUEUED_JOBS)]
    breaker_queued_jobs: u32,
    /// With dagor: a larger mean queuing delay is overload
    #[arg(long, default_value = "20ms", value_parser = units::duration_above_0)]
    dagor_threshold: Duration,
    /// With dagor: share shed by a window of overload and added by another
    #[arg(long, default_value_t = 0.05)]
    dagor_step: f64,
    /// A request that no host admits waits so long at its caller before it is shed
    #[arg(long, default_value = "0s", value_parser = units::duration)]
    hold_eligible: Duration,
    /// One whose key only hosts have that refuse it waits so long for one of them
    #[arg(long, default_value = "0s", value_parser = units::duration)]
    hold_cached: Duration,
    /// A request without an answer for so long is tried at its second host too, if that has idle cores; 0s: never
    #[arg(long, default_value = "0s", value_parser = units::duration)]
    hedge_after: Duration,
    #[arg(long, default_value_t = 14)]
    hosts: usize,
    /// Cores of a host
    #[arg(long, default_value_t = 4)]
    cores: usize,
    /// Of a host
    #[arg(long, default_value_t = 4 << 30)]
    cache_bytes: u64,
    /// Time to the first byte of a fetch
    #[arg(long, default_value = "5ms", value_parser = units::duration_above_0)]
    fetch_base: Duration,
    #[arg(long, default_value_t = 5_000_000_000)]
    fetch_bytes_per_second: u64,
    /// Sidecars that share only what tables and reports share
    #[arg(long, default_value_t = 1)]
    callers: usize,
    /// Between two polls of a host, ±10 %
    #[arg(long, default_value = "1s", value_parser = units::duration_above_0)]
    poll: Duration,
    /// Answers do not carry the host's load
    #[arg(long)]
    no_orca: bool,
    /// One way between caller and host
    #[arg(long, default_value = "250us", value_parser = units::duration_above_0)]
    network: Duration,
    /// A caller without a good answer gives up after so long
    #[arg(long, default_value = "15s", value_parser = units::duration_above_0)]
    deadline: Duration,
    /// A host that takes longer to accept is passed over for the next of the decision's order
    #[arg(long, value_parser = units::duration_above_0)]
    connect_timeout: Option<Duration>,
    /// An attempt without an answer for so long is given up
    #[arg(long, value_parser = units::duration_above_0)]
    read_timeout: Option<Duration>,
    /// A host gives up a job whose first joblet has waited so long
    #[arg(long, value_parser = units::duration_above_0)]
    queue_timeout: Option<Duration>,
    /// Waiting jobs at a host that do not delay its accepting
    #[arg(long, default_value_t = 0)]
    accept_free: u32,
    /// Each that waits beyond delays its accepting by so much
    #[arg(long, default_value = "0s", value_parser = units::duration)]
    accept_per_job: Duration,
    /// Hosts that are taken away every 24 h, with 30 s notice, for 5 to 10 minutes
    #[arg(long, default_value_t = 0)]
    preemptible: usize,
    /// TIME:HOST:lost, TIME:HOST:back or TIME:HOST:FACTOR, which makes jobs last so many times as long
    #[arg(long = "trouble", value_parser = trouble)]
    troubles: Vec<Trouble>,
    /// Of everything that is drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum SelectionName {
    Baseline,
    Random,
    Dynamic,
    Estimate,
    Rendezvous,
}

#[derive(Clone, Copy, ValueEnum)]
enum OverloadName {
    None,
    Breaker,
    Dagor,
}

impl Args {
    /// What is simulated.
    pub(super) fn scenario(&self) -> Result<Scenario> {
        if !(0.001..=0.5).contains(&self.dagor_step) {
            bail!("--dagor-step: {} is not in 0.001 to 0.5", self.dagor_step);
        }
        for (flag, hold) in [
            ("--hold-eligible", self.hold_eligible),
            ("--hold-cached", self.hold_cached),
        ] {
            if hold > LONGEST_HOLD {
                bail!("{flag}: {hold:?} is over {LONGEST_HOLD:?}");
            }
        }
        let scenario = Scenario {
            hosts: self.hosts,
            host: Settings {
                cores: self.cores,
                cache_bytes: self.cache_bytes,
                max_queued: 10_000,
                change_log: 65_536,
                order: Order::Priority,
            },
            timing: Timing {
                fetch_base: self.fetch_base,
                fetch_bytes_per_second: self.fetch_bytes_per_second,
            },
            callers: self.callers,
            policy: Policy {
                selection: self.selection(),
                overload: self.overload(),
                holding: Holding {
                    for_eligible: self.hold_eligible,
                    for_cached: self.hold_cached,
                    ..Holding::default()
                },
                hedging: Hedging {
                    after: self.hedge_after,
                    ..Hedging::default()
                },
                ..Policy::default()
            },
            dagor: Dagor {
                params: dagor::Params {
                    threshold: self.dagor_threshold,
                    alpha: self.dagor_step,
                    beta: self.dagor_step,
                    ..dagor::Params::default()
                },
                // weir-control's own defaults, here and below.
                window: Duration::from_secs(1),
                window_requests: 2000,
                queued_jobs: 100,
            },
            cache_shards: 16,
            poll: self.poll,
            publish: Duration::from_millis(100),
            report: Duration::from_secs(1),
            orca: !self.no_orca,
            network: self.network,
            backoff: Backoff {
                base: Duration::from_millis(100),
                cap: Duration::from_secs(10),
            },
            attempts: u32::MAX,
            accept: Accept {
                free: self.accept_free,
                per_job: self.accept_per_job,
            },
            preemption: (self.preemptible > 0).then_some(Preemption {
                hosts: self.preemptible,
                // Document 001, sections 3.6 and 9.2.
                life: Duration::from_secs(24 * 3600),
                notice: Duration::from_secs(30),
                away: (Duration::from_secs(300), Duration::from_secs(600)),
            }),
            troubles: self.troubles.clone(),
            timeouts: Timeouts {
                deadline: self.deadline,
                connect: self.connect_timeout,
                read: self.read_timeout,
                queue: self.queue_timeout,
            },
            seed: self.seed,
        };
        scenario.check()?;
        Ok(scenario)
    }

    fn selection(&self) -> Selection {
        match self.selection {
            SelectionName::Baseline => Selection::Baseline,
            SelectionName::Random => Selection::Random,
            SelectionName::Dynamic => Selection::Dynamic,
            SelectionName::Estimate => Selection::Estimate,
            SelectionName::Rendezvous => Selection::Rendezvous,
        }
    }

    fn overload(&self) -> Overload {
        match self.overload {
            OverloadName::None => Overload::None,
            OverloadName::Breaker => Overload::Breaker {
                queued_jobs: self.breaker_queued_jobs,
            },
            OverloadName::Dagor => Overload::Dagor,
        }
    }
}

/// `10m:3:lost`.
fn trouble(text: &str) -> Result<Trouble, String> {
    let form = || format!("{text:?} is not like 10m:3:lost, 15m:3:back or 10m:3:3.0");
    let mut parts = text.splitn(3, ':');
    let mut part = || parts.next().ok_or_else(form);
    let (at, host, what) = (part()?, part()?, part()?);
    Ok(Trouble {
        at: units::duration(at)?,
        host: host.parse().map_err(|_| form())?,
        what: match what {
            "lost" => Fate::Lost,
            "back" => Fate::Back,
            factor => Fate::Slowed(factor.parse().map_err(|_| form())?),
        },
    })
}
