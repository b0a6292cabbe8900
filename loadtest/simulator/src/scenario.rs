// SPDX-License-Identifier: Apache-2.0
//! What is simulated, as data.

use std::time::Duration;

use weir_executor::{Settings, Timing};
use weir_fleet::settings::{Dagor, Plan, Planning};
use weir_policy::overload::breakwater;
use weir_policy::{MAX_HOSTS, Policy, Selection};
use weir_replay::backoff::Backoff;

/// One fleet and its callers.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// How many hosts.
    pub hosts: usize,
    /// Each host's cores, cache and order.
    pub host: Settings,
    /// Hosts of a language model instead, EMULATED by weir-llm-host's engine: `host` and `timing` do not
    /// count then, and keys are lists of blocks.
    pub language_model: Option<weir_llm_host::Settings>,
    /// How long fetches take.
    pub timing: Timing,
    /// How hosts take connections.
    pub accept: Accept,
    /// Hosts that the provider takes away.
    pub preemption: Option<Preemption>,
    /// What else happens to hosts.
    pub troubles: Vec<Trouble>,
    /// Sidecars that share only what tables and reports share. All requests of one sender come from one of them.
    pub callers: usize,
    /// The first caller has this share of the senders, the others share the rest; none: all are alike.
    pub heavy_caller: Option<f64>,
    /// Who chooses hosts.
    pub placement: Placement,
    /// How callers choose hosts.
    pub policy: Policy,
    /// Which keys are assigned to which host; callers are told this and not what is cached.
    pub plan: Option<Plan>,
    /// The same as weir-control learns it.
    pub planner: Option<Planning>,
    /// How admission levels move.
    pub dagor: Dagor,
    /// How hosts give credits.
    pub breakwater: breakwater::Params,
    /// Into how many resources cache contents are split. Where tables go out every second or less
    /// often, every shard that changed goes with each of them, and the number has no effect but on
    /// how long the simulation takes.
    pub cache_shards: u32,
    /// Between two polls of a host, ±10 % (weir-control's `scrape.interval` and `cache.interval`).
    pub poll: Duration,
    /// Changes within this time go out as one table (weir-control's `publish.interval`).
    pub publish: Duration,
    /// Between two reports of a caller (the filter's `report_interval`), or longer where weir-control asks for it.
    pub report: Duration,
    /// What polls are told of a host's queue.
    pub signal: Signal,
    /// Whether answers carry the host's load.
    pub orca: bool,
    /// Whether hosts' proxies give requests back that would wait longer than at the next host named.
    pub gives_back: bool,
    /// Whether callers eject hosts that fail more than the others, as Weir's filter does. Without, a host that did not
    /// take a request comes last for a second.
    pub ejects: bool,
    /// One way between any two: caller, host and weir-control.
    pub network: Duration,
    /// Where callers and hosts are.
    pub zones: Zones,
    /// Between the attempts of a request.
    pub backoff: Backoff,
    /// Attempts of a request at most; those that were shed do not count.
    pub attempts: u32,
    /// How long what may take.
    pub timeouts: Timeouts,
    /// Of everything that is drawn.
    pub seed: u64,
}

/// Callers and hosts are in so many zones, each next one in the next zone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Zones {
    /// 0 and 1: all are in one.
    pub count: usize,
    /// From one to another, one way, requests and answers take so much longer.
    pub distance: Duration,
}

impl Zones {
    /// The name of the zone where the caller or the host with this number is.
    #[must_use]
    pub fn name(&self, number: usize) -> String {
        format!("zone-{}", self.of(number))
    }

    /// The zone where the caller or the host with this number is, by number.
    #[must_use]
    pub fn of(&self, number: usize) -> usize {
        number % self.count.max(1)
    }

    /// Whether a caller's request crosses on its way to a host.
    #[must_use]
    pub fn are_apart(&self, caller: usize, host: usize) -> bool {
        self.of(caller) != self.of(host)
    }
}

/// Who chooses hosts. The last two are bounds: they see at no cost what no caller can, and hosts take their requests
/// at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Placement {
    /// Each sidecar, from what it knows, by the policy.
    #[default]
    Callers,
    /// Each sidecar, by a policy of Envoy's own; there is no weir-control.
    Stock(Balancer),
    /// One that knows every run time and the state of every host now: each request goes where it
    /// ends first when it comes, hosts that will be gone before that left out. Greedy: what comes
    /// later is not known, so an order of placements that is better still may exist.
    Clairvoyant,
    /// Requests wait in one place by priority and go to a host that has an idle core, rather to one
    /// that has the data.
    CentralQueue,
}

impl Placement {
    /// Whether no caller could place requests so.
    #[must_use]
    pub fn is_bound(self) -> bool {
        matches!(self, Self::Clairvoyant | Self::CentralQueue)
    }
}

/// One of Envoy's own load-balancing policies, MODELLED.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balancer {
    /// The one of two drawn hosts that has fewer of the caller's requests.
    LeastRequest,
    /// Consistent hashing of the key: `ring_hash` and `maglev`.
    Hashing,
    /// The same, where a host that has more than its share of the caller's requests is passed over.
    BoundedHashing,
    /// Client-side weighted round robin, by what hosts say of their utilisation.
    Weighted,
    /// `LeastRequest` in half of the hosts, which the key chooses.
    Subset,
    /// `LeastRequest` in the caller's zone, as far as its part of all hosts is as large as its part of all callers: zone-aware
    /// routing.
    ZoneAware,
}

impl Balancer {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::LeastRequest,
        Self::Hashing,
        Self::BoundedHashing,
        Self::Weighted,
        Self::Subset,
        Self::ZoneAware,
    ];
}

/// How long what may take.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// All attempts of a request; its caller gives up.
    pub deadline: Duration,
    /// Until a host takes a connection; then the next in the decision's order gets the request.
    /// Doubles from host to host (document 001, section 7.4.3).
    pub connect: Option<Duration>,
    /// From the connection to the answer, of one attempt.
    pub read: Option<Duration>,
    /// In the host's queue until the first joblet begins; then the host gives up the job.
    pub queue: Option<Duration>,
}

/// What polls are told of a host's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Jobs that wait, and how long.
    Jobs,
    /// Stalled joblets, which several jobs may wait for, and no queuing delay (document 001, section 9.1.3).
    Joblets,
}

/// How a host takes connections: at once, until jobs wait for a core; then the later the more wait
/// (document 001, section 10.5.1 says that it is so, not by how much).
#[derive(Debug, Clone, Copy)]
pub struct Accept {
    /// Jobs that may wait without effect.
    pub free: u32,
    /// For each that waits beyond.
    pub per_job: Duration,
    /// A host that takes longer than this passes for down until it does not.
    pub healthy: Duration,
}

impl Accept {
    /// Hosts that take every connection at once.
    pub const AT_ONCE: Self = Self {
        free: 0,
        per_job: Duration::ZERO,
        healthy: Duration::MAX,
    };

    /// Until the host with so many waiting jobs takes a connection.
    #[must_use]
    pub fn delay(&self, queued: u32) -> Duration {
        self.per_job
            .saturating_mul(queued.saturating_sub(self.free))
    }
}

/// Hosts that the provider takes away and gives back (document 001, section 3.6).
#[derive(Debug, Clone, Copy)]
pub struct Preemption {
    /// How many hosts, the first ones.
    pub hosts: usize,
    /// Every host has lived so long when it is taken; the first time they are spread over it.
    pub life: Duration,
    /// The host says so before.
    pub notice: Duration,
    /// From and to: how long it is away.
    pub away: (Duration, Duration),
}

/// Something happens to a host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trouble {
    /// When.
    pub at: Duration,
    /// From 0.
    pub host: usize,
    /// What.
    pub what: HostFault,
}

/// What happens to a host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HostFault {
    /// It is gone with all it had, and refuses connections.
    Lost,
    /// It is there again, with an empty cache.
    Back,
    /// Jobs that come from now on take this many times as long.
    Slowed(f64),
}

/// Why a scenario cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Impossible {
    #[error("hosts: a fleet without hosts serves nobody: give at least 1")]
    NoHosts,
    #[error("hosts: {0} are more than the limit of {MAX_HOSTS}")]
    TooManyHosts(usize),
    #[error("cores: a host without cores serves nobody: give at least 1")]
    NoCores,
    #[error("language model: {0}: give at least 1")]
    NoRoom(&'static str),
    #[error("language model: {0}: its hosts do not know it")]
    NotKnown(&'static str),
    #[error("callers: nobody would send anything: give at least 1")]
    NoCallers,
    #[error("heavy caller: a share must be a number from 0 to 1")]
    BadShare,
    #[error("{0}: must be longer than nothing, or modelled time would stand still")]
    NoTime(&'static str),
    #[error("attempts: a request that is never tried never ends well: give at least 1")]
    NoAttempts,
    #[error("preemption: {0} of {1} hosts cannot be taken away")]
    TooManyTaken(usize, usize),
    #[error("preemption: away must be from a shorter to a longer time")]
    AwayReversed,
    #[error("host {0}: there are {1}, from 0")]
    NoSuchHost(usize, usize),
    #[error("host {0}: a slowdown must be a number from 0.001 to 1000")]
    BadSlowdown(usize),
}

impl Scenario {
    /// Whether its policy goes by a plan that nobody has made.
    #[must_use]
    pub fn lacks_plan(&self) -> bool {
        let wanted = self.policy.selection == Selection::CachingPlan;
        wanted && self.plan.is_none() && self.planner.is_none()
    }

    /// How long a request of the caller is on its way to the host, or the answer back.
    #[must_use]
    pub fn way(&self, caller: usize, host: usize) -> Duration {
        match self.zones.are_apart(caller, host) {
            true => self.network + self.zones.distance,
            false => self.network,
        }
    }

    /// Whether it can be.
    ///
    /// # Errors
    /// The first reason why not.
    pub fn check(&self) -> Result<(), Impossible> {
        let refuse = |refused: bool, why: Impossible| if refused { Err(why) } else { Ok(()) };
        refuse(self.hosts == 0, Impossible::NoHosts)?;
        let too_many = Impossible::TooManyHosts(self.hosts);
        refuse(self.hosts > MAX_HOSTS, too_many)?;
        refuse(self.host.cores == 0, Impossible::NoCores)?;
        refuse(self.callers == 0, Impossible::NoCallers)?;
        let bad_share = |share: f64| !(0.0..=1.0).contains(&share);
        refuse(
            self.heavy_caller.is_some_and(bad_share),
            Impossible::BadShare,
        )?;
        refuse(self.attempts == 0, Impossible::NoAttempts)?;
        for (name, time) in [
            ("poll", self.poll),
            ("publish", self.publish),
            ("report", self.report),
            ("backoff", self.backoff.base),
        ] {
            refuse(time.is_zero(), Impossible::NoTime(name))?;
        }
        if let Some(preemption) = &self.preemption {
            let taken = preemption.hosts;
            let too_many = Impossible::TooManyTaken(taken, self.hosts);
            refuse(taken > self.hosts, too_many)?;
            let (from, to) = preemption.away;
            refuse(from > to, Impossible::AwayReversed)?;
            refuse(preemption.life.is_zero(), Impossible::NoTime("life"))?;
        }
        if let Some(model) = &self.language_model {
            refuse(model.slots == 0, Impossible::NoRoom("slots"))?;
            refuse(model.capacity_blocks == 0, Impossible::NoRoom("blocks"))?;
            let slowed = |t: &Trouble| matches!(t.what, HostFault::Slowed(_));
            let any_slowed = self.troubles.iter().any(slowed);
            refuse(any_slowed, Impossible::NotKnown("a slowdown"))?;
            let bound = self.placement.is_bound();
            refuse(
                bound,
                Impossible::NotKnown("a placement by others than callers"),
            )?;
            let queue = self.timeouts.queue.is_some();
            refuse(queue, Impossible::NotKnown("a time-out of the queue"))?;
        }
        for trouble in &self.troubles {
            let unknown = Impossible::NoSuchHost(trouble.host, self.hosts);
            refuse(trouble.host >= self.hosts, unknown)?;
            if let HostFault::Slowed(factor) = trouble.what {
                let bad = !(0.001..=1000.0).contains(&factor);
                refuse(bad, Impossible::BadSlowdown(trouble.host))?;
            }
        }
        Ok(())
    }
}
