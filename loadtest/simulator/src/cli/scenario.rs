// SPDX-License-Identifier: Apache-2.0
//! The fleet that the command line asks for.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;
use weir_executor::{Eviction, Order, Settings, Timing};
use weir_fleet::settings::{Control, Dagor, Planning};
use weir_policy::holding::LONGEST_HOLD;
use weir_policy::overload::{breaker, breakwater, dynamic_breaker};
use weir_policy::{Hedging, Holding, Overload, Policy, Selection, Serves, dagor, steady};
use weir_replay::backoff::Backoff;
use weir_replay::mooncake::BLOCK_TOKENS;
use weir_replay::units;
use weir_sim::Scenario;
use weir_sim::scenario::{
    Accept, Balancer, HostFault, Placement, Preemption, Signal, Timeouts, Trouble, Zones,
};

#[derive(clap::Args)]
#[group(id = "fleet")]
pub(super) struct Args {
    /// Who chooses hosts; with any but callers, selection and overload do not matter
    #[arg(long, value_enum, default_value = "callers")]
    placement: PlacementName,
    #[arg(long, value_enum, default_value = "estimate")]
    selection: SelectionName,
    /// With estimate: what delays a request at a host, jobs there or, with --language-model, prompts that it has to read
    #[arg(long, value_enum, default_value = "jobs")]
    serves: ServesName,
    /// With hot-cold: a host with more jobs in progress than this quantile of all hosts' is hot
    #[arg(long, default_value_t = 0.841)]
    hot_cold_quantile: f64,
    #[arg(long, value_enum, default_value = "none")]
    overload: OverloadName,
    /// With both breakers: more queued jobs than this close a host
    #[arg(long, default_value_t = breaker::QUEUED_JOBS)]
    breaker_queued_jobs: u32,
    /// With dynamic-breaker: a longer mean wait makes it fewer
    #[arg(long, default_value = "1s", value_parser = units::duration_above_0)]
    dynamic_breaker_wait: Duration,
    /// With dagor: by which rule levels move
    #[arg(long, value_enum, default_value = "steady")]
    dagor_control: ControlName,
    /// With dagor, steady: the wait that levels head for; the band is a quarter to three times as long
    #[arg(long, default_value = "2s", value_parser = units::duration_above_0)]
    dagor_target: Duration,
    /// With dagor, paper: a larger mean queuing delay is overload
    #[arg(long, default_value = "20ms", value_parser = units::duration_above_0)]
    dagor_threshold: Duration,
    /// With dagor, paper and stalled-jobs: share shed by a window of overload and added by another
    #[arg(long, default_value_t = 0.05)]
    dagor_step: f64,
    /// With breakwater: the queuing delay that hosts head for; at more than twice as much they refuse
    #[arg(long, default_value = "1s", value_parser = units::duration_above_0)]
    breakwater_target: Duration,
    /// A request that no host admits waits so long at its caller before it is shed
    #[arg(long, default_value = "0s", value_parser = units::duration)]
    hold_eligible: Duration,
    /// One whose key only hosts have that refuse it waits so long for one of them
    #[arg(long, default_value = "0s", value_parser = units::duration)]
    hold_cached: Duration,
    /// A request without an answer for so long is tried at its second host too, if that has idle cores; 0s: never
    #[arg(long, default_value = "0s", value_parser = units::duration)]
    hedge_after: Duration,
    /// Percent of the second host's cores that must be idle for that; 0: at any load
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(0..=100))]
    hedge_idle_percent: u32,
    #[arg(long, default_value_t = 14)]
    hosts: usize,
    /// Cores of a host
    #[arg(long, default_value_t = 4)]
    cores: usize,
    /// Of a host
    #[arg(long, default_value_t = 4 << 30)]
    cache_bytes: u64,
    /// What leaves a host's cache when it is full: oldest (what was stored first), largest or least-used
    #[arg(long, default_value = "oldest")]
    eviction: Eviction,
    /// Resources that cache contents are split into: a power of two up to 1024
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(0..=1024))]
    cache_shards: u32,
    /// Time to the first byte of a fetch
    #[arg(long, default_value = "5ms", value_parser = units::duration_above_0)]
    fetch_base: Duration,
    #[arg(long, default_value_t = 5_000_000_000)]
    fetch_bytes_per_second: u64,
    /// Hosts of a language model, EMULATED by weir-llm-host's engine with its defaults; keys are lists of
    /// blocks (`weir-replay workload mooncake --prefix-keys`). Cores, cache and fetches do not count then
    #[arg(long)]
    pub(super) language_model: bool,
    /// With --language-model: blocks that fit into the memory of a host
    #[arg(long, default_value_t = 2500)]
    model_blocks: usize,
    /// With --language-model: tokens of a prompt that a host reads in a second
    #[arg(long, default_value_t = 8000)]
    prefill_tokens_per_second: u32,
    /// With --language-model: time for each token of an answer
    #[arg(long, default_value = "25ms", value_parser = units::duration_above_0)]
    decode_per_token: Duration,
    /// Sidecars that share only what tables and reports share
    #[arg(long, default_value_t = 1)]
    callers: usize,
    /// The first caller has this share of the senders [default: all callers are alike]
    #[arg(long, value_name = "SHARE", value_parser = units::share)]
    heavy_caller: Option<f64>,
    /// Between two polls of a host, ±10 %
    #[arg(long, default_value = "1s", value_parser = units::duration_above_0)]
    poll: Duration,
    /// Between two tables of weir-control, if hosts told newer figures
    #[arg(long, default_value = "20ms", value_parser = units::duration_above_0)]
    publish: Duration,
    /// Between two reports of a caller; longer, as weir-control asks for, where there are more than 100
    #[arg(long, default_value = "100ms", value_parser = units::duration_above_0)]
    report: Duration,
    /// Hosts give requests back that would wait there longer than at the next host named
    #[arg(long)]
    give_back: bool,
    /// With `--selection caching_plan`: weir-control learns the plan, in place of one made with hindsight
    #[arg(long)]
    learn_plan: bool,
    /// Answers do not carry the host's load
    #[arg(long)]
    no_orca: bool,
    /// One way between any two: caller, host and weir-control
    #[arg(long, default_value = "250us", value_parser = units::duration_above_0)]
    network: Duration,
    /// Callers and hosts are in so many zones, each next one in the next zone
    #[arg(long, default_value_t = 1)]
    pub(super) zones: usize,
    /// From one zone to another, one way, requests and answers take so much longer
    #[arg(long, default_value = "0s", value_parser = units::duration)]
    zone_distance: Duration,
    /// With estimate: a request goes to another zone only where it is done by so much sooner
    #[arg(long, default_value = "0s", value_parser = units::duration)]
    crossing: Duration,
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
enum PlacementName {
    /// Sidecars, by the policy
    Callers,
    /// Sidecars, by Envoy's own policies, MODELLED: fewer requests of two drawn hosts
    LeastRequest,
    /// Ring hash or Maglev
    Hashing,
    /// The same with a hash_balance_factor of 125
    BoundedHashing,
    /// Client-side weighted round robin
    Weighted,
    /// Least request in half of the hosts, which the key chooses
    Subset,
    /// Least request in the caller's zone, by zone-aware routing
    ZoneAware,
    /// A bound: where it ends first, all run times and the present state of all hosts known
    Clairvoyant,
    /// A bound: one queue, from which idle cores take the most important request
    CentralQueue,
}

#[derive(Clone, Copy, ValueEnum)]
enum SelectionName {
    Baseline,
    Random,
    Dynamic,
    Estimate,
    Rendezvous,
    HotCold,
    /// Each key at one host, by the core time that the whole workload spends on it
    CachingPlan,
}

#[derive(Clone, Copy, ValueEnum)]
enum OverloadName {
    None,
    Breaker,
    DynamicBreaker,
    Dagor,
    Breakwater,
    Slots,
}

#[derive(Clone, Copy, ValueEnum)]
enum ServesName {
    Jobs,
    Prompts,
}

#[derive(Clone, Copy, ValueEnum)]
enum ControlName {
    Steady,
    Paper,
    StalledJobs,
}

impl Args {
    /// The fleet that is simulated.
    pub(super) fn scenario(&self) -> Result<Scenario> {
        self.check_ranges()?;
        let scenario = Scenario {
            hosts: self.hosts,
            host: Settings {
                cores: self.cores,
                cache_bytes: self.cache_bytes,
                max_queued: 10_000,
                change_log: 65_536,
                order: Order::Priority,
                eviction: self.eviction,
            },
            language_model: self.language_model.then(|| self.model()),
            timing: Timing {
                fetch_base: self.fetch_base,
                fetch_bytes_per_second: self.fetch_bytes_per_second,
            },
            callers: self.callers,
            heavy_caller: self.heavy_caller,
            placement: self.placement(),
            policy: self.policy(),
            plan: None,
            planner: self.learn_plan.then(Planning::default),
            dagor: self.dagor(),
            breakwater: breakwater::Params {
                target: self.breakwater_target,
                ..breakwater::Params::default()
            },
            // weir-control's own defaults, here and below.
            cache_shards: self.cache_shards,
            poll: self.poll,
            publish: self.publish,
            report: self.report,
            signal: Signal::Jobs,
            orca: !self.no_orca,
            gives_back: self.give_back,
            ejects: true,
            network: self.network,
            zones: Zones {
                count: self.zones,
                distance: self.zone_distance,
            },
            backoff: Backoff {
                base: Duration::from_millis(100),
                cap: Duration::from_secs(10),
            },
            attempts: u32::MAX,
            accept: Accept {
                free: self.accept_free,
                per_job: self.accept_per_job,
                healthy: Duration::MAX,
            },
            preemption: self.preemption(),
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

    /// The ranges that no type of a flag has.
    fn check_ranges(&self) -> Result<()> {
        if self.prefill_tokens_per_second == 0 {
            bail!("--prefill-tokens-per-second: a host that reads nothing serves nobody");
        }
        if !(0.001..=0.5).contains(&self.dagor_step) {
            bail!("--dagor-step: {} is not in 0.001 to 0.5", self.dagor_step);
        }
        if !self.crossing.is_zero() && !matches!(self.selection, SelectionName::Estimate) {
            bail!("--crossing: only --selection estimate goes by zones");
        }
        for (flag, hold) in [
            ("--hold-eligible", self.hold_eligible),
            ("--hold-cached", self.hold_cached),
        ] {
            if hold > LONGEST_HOLD {
                bail!("{flag}: {hold:?} is over {LONGEST_HOLD:?}");
            }
        }
        if self.cache_shards != 0 && !self.cache_shards.is_power_of_two() {
            bail!(
                "--cache-shards: {} is not 0 or a power of two",
                self.cache_shards
            );
        }
        if !(0.0..=1.0).contains(&self.hot_cold_quantile) {
            bail!(
                "--hot-cold-quantile: {} is not in 0 to 1",
                self.hot_cold_quantile
            );
        }
        Ok(())
    }

    fn placement(&self) -> Placement {
        match self.placement {
            PlacementName::Callers => Placement::Callers,
            PlacementName::LeastRequest => Placement::Stock(Balancer::LeastRequest),
            PlacementName::Hashing => Placement::Stock(Balancer::Hashing),
            PlacementName::BoundedHashing => Placement::Stock(Balancer::BoundedHashing),
            PlacementName::Weighted => Placement::Stock(Balancer::Weighted),
            PlacementName::Subset => Placement::Stock(Balancer::Subset),
            PlacementName::ZoneAware => Placement::Stock(Balancer::ZoneAware),
            PlacementName::Clairvoyant => Placement::Clairvoyant,
            PlacementName::CentralQueue => Placement::CentralQueue,
        }
    }

    fn policy(&self) -> Policy {
        Policy {
            selection: self.selection(),
            overload: self.overload(),
            serves: match self.serves {
                ServesName::Jobs => Serves::Jobs,
                ServesName::Prompts => Serves::Prompts,
            },
            holding: Holding {
                for_eligible: self.hold_eligible,
                for_cached: self.hold_cached,
                ..Holding::default()
            },
            hedging: Hedging {
                after: self.hedge_after,
                idle_percent: self.hedge_idle_percent,
                ..Hedging::default()
            },
            crossing: self.crossing,
            ..Policy::default()
        }
    }

    fn dagor(&self) -> Dagor {
        Dagor {
            control: match self.dagor_control {
                ControlName::Steady => Control::Steady,
                ControlName::Paper => Control::Paper,
                ControlName::StalledJobs => Control::StalledJobs,
            },
            steady: steady::Params::aiming_at(self.dagor_target),
            params: dagor::Params {
                threshold: self.dagor_threshold,
                alpha: self.dagor_step,
                beta: self.dagor_step,
                ..dagor::Params::default()
            },
            ..Dagor::default()
        }
    }

    fn preemption(&self) -> Option<Preemption> {
        (self.preemptible > 0).then_some(Preemption {
            hosts: self.preemptible,
            // Document 001, sections 3.6 and 9.2.
            life: Duration::from_secs(24 * 3600),
            notice: Duration::from_secs(30),
            away: (Duration::from_secs(300), Duration::from_secs(600)),
        })
    }

    /// weir-llm-host's defaults but for what was asked for.
    fn model(&self) -> weir_llm_host::Settings {
        let decode_ms = self.decode_per_token.as_secs_f64() * 1e3;
        weir_llm_host::Settings {
            slots: 256,
            max_queued: 10_000,
            capacity_blocks: self.model_blocks,
            block_tokens: BLOCK_TOKENS,
            timing: weir_llm_host::Timing::new(
                self.prefill_tokens_per_second.into(),
                decode_ms,
                1.0,
            ),
            change_log: 65_536,
        }
    }

    fn selection(&self) -> Selection {
        match self.selection {
            SelectionName::Baseline => Selection::Baseline,
            SelectionName::Random => Selection::Random,
            SelectionName::Dynamic => Selection::Dynamic,
            SelectionName::Estimate => Selection::Estimate,
            SelectionName::Rendezvous => Selection::Rendezvous,
            SelectionName::HotCold => Selection::HotCold {
                permille: (self.hot_cold_quantile * 1000.0).round() as u16,
            },
            SelectionName::CachingPlan => Selection::CachingPlan,
        }
    }

    fn overload(&self) -> Overload {
        match self.overload {
            OverloadName::None => Overload::None,
            OverloadName::Breaker => Overload::Breaker {
                queued_jobs: self.breaker_queued_jobs,
            },
            OverloadName::DynamicBreaker => Overload::DynamicBreaker(dynamic_breaker::Params {
                queued_jobs: self.breaker_queued_jobs,
                wait: self.dynamic_breaker_wait,
                ..dynamic_breaker::Params::default()
            }),
            OverloadName::Dagor => Overload::Dagor,
            OverloadName::Breakwater => Overload::Breakwater,
            OverloadName::Slots => Overload::Slots,
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
            "lost" => HostFault::Lost,
            "back" => HostFault::Back,
            factor => HostFault::Slowed(factor.parse().map_err(|_| form())?),
        },
    })
}

#[cfg(test)]
mod tests {
    use clap::Args as _;
    use clap::FromArgMatches as _;

    use super::*;

    fn written(flag: &str, name: &str) -> Args {
        let command = Args::augment_args(clap::Command::new("fleet"));
        let name = name.replace('_', "-");
        let matches = command.try_get_matches_from(["fleet", flag, &name]);
        Args::from_arg_matches(&matches.unwrap()).unwrap()
    }

    #[test]
    fn every_policy_has_its_name_and_its_defaults() {
        for selection in Selection::ALL {
            let args = written("--selection", selection.as_str());
            assert_eq!(args.selection(), selection);
        }
        for overload in Overload::ALL {
            let args = written("--overload", overload.as_str());
            assert_eq!(args.overload(), overload);
        }
    }
}
