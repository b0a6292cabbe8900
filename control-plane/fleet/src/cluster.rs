// SPDX-License-Identifier: Apache-2.0
//! One cluster, as far as it is known.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_policy::{HostId, HostState, KeyHash, Level, Overload, Selection, Serves};
use weir_tables::v1;

use crate::costs::{Costs, Spent};
use crate::figures::Figures;
use crate::holdings::Changes;
use crate::holdings::Holdings;
use crate::host::{Host, Polls};
use crate::ledger::News;
use crate::levels::claims::Claims;
use crate::levels::resumption::Resumption;
use crate::levels::steady::ClusterLevel;
use crate::levels::{self, Counts, HostLevel, Seen, Step};
use crate::node::Row;
use crate::observed::{self, Observed};
use crate::pace;
use crate::page_cores;
use crate::planner::{Move, Place, Planner};
use crate::poll::Source;
use crate::requests::Change;
use crate::rollout::{Rollout, Worse};
use crate::settings::{self, Control};
use crate::tables;

/// A cluster of hosts.
#[derive(Debug)]
pub struct Cluster {
    /// As configured.
    pub config: Arc<settings::Cluster>,
    /// By address.
    pub hosts: BTreeMap<String, Host>,
    /// Keys that hosts have in their caches.
    pub holdings: Holdings,
    /// Costs of requests.
    pub costs: Costs,
    /// Where keys are planned, where that is learned.
    pub planner: Planner,
    /// How polls go that are about the whole cluster, by source.
    pub polls: BTreeMap<Source, Polls>,
    /// Series of hosts that are not in this cluster, in Prometheus' last answers.
    pub unknown_series: u64,
    /// Proxies that report.
    pub proxies: u32,
    /// Those whose Envoy sends requests elsewhere than their filter says, with when they said so last.
    ignoring: BTreeMap<String, Duration>,
    /// The host table is to be built again at once.
    pub changed: bool,
    /// It is to be built again when it has rested: hosts told newer figures.
    pub has_newer_figures: bool,
    /// Figures alone do not ask for a table until then.
    rests_until: Duration,
    /// When it was built.
    pub built: Option<Duration>,
    /// See [`Cluster::note_caches_asked`].
    pub caches_asked: bool,
    /// [`Cluster::panics`], as it was last told.
    pub panicked: bool,
    ids: HashMap<HostId, String>,
    /// Requests that hosts got since the levels last moved, as proxies say.
    claims: Claims,
    stepped: Duration,
    level: ClusterLevel,
    /// When this process began to build its tables.
    began: Duration,
    /// It has another leader's table until its own first one; since then its hosts are known.
    inherited: Option<Duration>,
    /// This process has begun, perhaps anew and in overload: tables wait for what sidecars say is in force.
    resumption: Option<Resumption>,
    /// Of hosts that are still to be found, by address.
    inherited_levels: BTreeMap<String, Level>,
    /// How requests fare that are steered, beside those that are not.
    pub rollout: Rollout,
    /// Why no request is steered, although the policy says that some are.
    pub withdrawn: Option<Worse>,
}

/// A table of another leader's is not followed by one that knows less, unless the hosts do not say anything for
/// so long.
const INHERITED_FOR: Duration = Duration::from_secs(1);

/// A table rests no longer, however large it is.
const LONGEST_REST: Duration = Duration::from_secs(1);

impl Cluster {
    /// A cluster that has not been heard of.
    pub fn new(config: Arc<settings::Cluster>) -> Self {
        let mut cluster = Self {
            holdings: Holdings::default(),
            costs: Costs::default(),
            planner: Planner::default(),
            polls: BTreeMap::new(),
            unknown_series: 0,
            proxies: 0,
            ignoring: BTreeMap::new(),
            config: config.clone(),
            hosts: BTreeMap::new(),
            changed: true,
            has_newer_figures: false,
            rests_until: Duration::ZERO,
            built: None,
            panicked: false,
            ids: HashMap::new(),
            claims: Claims::default(),
            stepped: Duration::ZERO,
            level: ClusterLevel::default(),
            began: Duration::ZERO,
            caches_asked: false,
            inherited: None,
            resumption: None,
            inherited_levels: BTreeMap::new(),
            rollout: Rollout::default(),
            withdrawn: None,
        };
        cluster.configure(config);
        cluster
    }

    /// Begins now, where another leader's table says so, from that one's levels, and with the policy withdrawn as there.
    pub fn begin(&mut self, now: Duration, table: Option<&v1::HostTable>) {
        self.began = now;
        let Some(table) = table else {
            self.resume(now);
            return;
        };
        self.inherited = Some(now);
        // One that steered nobody of itself was not withdrawn, nor is one that has changed since.
        let is_withdrawn = table.withdrawn_percent == Some(self.config.policy.steer_percent)
            && table.policy.as_ref() == Some(&tables::policy(self, 0));
        if self.config.withdraws && is_withdrawn {
            self.withdrawn = Some(Worse::Before);
        }
        let level = |host: &v1::Host| {
            let ranks = host.admission_level.and_then(|ranks| ranks.try_into().ok());
            ranks.map_or(Level::ALL, Level::admitting)
        };
        let levels = table.hosts.iter();
        let levels = levels.map(|host| (host.address.clone(), level(host)));
        self.go_on_from(&levels.collect(), now);
    }

    /// Begins now, and goes on from the levels that sidecars say are in force.
    pub fn resume(&mut self, now: Duration) {
        if self.config.policy.overload == Overload::Dagor {
            self.resumption = Some(Resumption::new(now));
        }
    }

    fn go_on_from(&mut self, levels: &BTreeMap<String, Level>, now: Duration) {
        self.stepped = now;
        // A host that was behind the others had less than the cluster.
        let highest = levels.values().max().copied().unwrap_or(Level::ALL);
        self.level = ClusterLevel::starting_at(highest);
        let steady = self.config.dagor.control == Control::Steady;
        let levels = levels.iter();
        self.inherited_levels = levels
            .filter(|(_, level)| **level < highest || !steady)
            .map(|(address, level)| (address.clone(), *level))
            .collect();
        for (address, host) in &mut self.hosts {
            if let Some(level) = self.inherited_levels.remove(address) {
                host.level = HostLevel::starting_at(level);
            }
        }
    }

    /// Goes on from what sidecars have said by now, unless it is still to be waited for.
    fn settle_resumption(&mut self, now: Duration) {
        if let Some(resumption) = self.resumption.take_if(|known| !known.waits(now)) {
            self.go_on_from(&resumption.levels(), now);
        }
    }

    /// Whether its own first table waits for what sidecars say is in force.
    pub fn resumes(&self) -> bool {
        self.resumption.is_some()
    }

    /// Whether its own first table waits, for that or for figures like those of the one that it has.
    fn waits(&self, now: Duration) -> bool {
        if self.resumes() {
            return true;
        }
        let asked = Source::ALL.into_iter();
        let mut asked = asked.filter(|source| self.config.asks(*source));
        let known = asked.all(|source| self.has_figures_of(source));
        self.inherited
            .is_some_and(|since| now < since + INHERITED_FOR && !known)
    }

    /// Whether the source has told, or failed to tell, all the figures that it has of the hosts.
    fn has_figures_of(&self, source: Source) -> bool {
        match source {
            Source::Scrape => {
                let mut hosts = self.hosts.values();
                hosts.all(|host| host.polls.contains_key(&source))
            }
            Source::Prometheus => self.polls.contains_key(&source),
            // None.
            Source::Cache
            | Source::KvEvents
            | Source::Consul
            | Source::ConsulRoots
            | Source::Dns
            | Source::Kubernetes => true,
        }
    }

    /// Its hosts are still to be found: what it waits for begins when they are.
    fn wait_for_hosts(&mut self, now: Duration) {
        self.inherited = self.inherited.map(|_| now);
        // Of hosts that nobody knows no level was taken in.
        self.resumption = self.resumption.take().map(|_| Resumption::new(now));
    }

    /// Takes a new configuration; what is known of hosts that stay is kept.
    pub fn configure(&mut self, config: Arc<settings::Cluster>) {
        let mut old = std::mem::take(&mut self.hosts);
        for host in &config.hosts {
            let kept = match old.remove(&host.address) {
                Some(kept) => kept.configured(host.clone(), &config),
                None => self.new_host(host),
            };
            self.hosts.insert(host.address.clone(), kept);
        }
        page_cores::bound(self.hosts.values_mut());
        self.polls.retain(|source, _| config.asks(*source));
        if config.prometheus.is_none() {
            self.unknown_series = 0;
        }
        for gone in old.into_values() {
            if !config.is_planned() {
                self.holdings.remove(gone.id);
            }
            self.costs.remove(gone.id);
        }
        self.configure_contents(&config);
        self.ids = self
            .hosts
            .values()
            .map(|host| (host.id, host.config.address.clone()))
            .collect();
        if config.policy.overload != Overload::Dagor {
            self.claims = Claims::default();
        }
        if self.config.policy != config.policy || self.config.withdraws && !config.withdraws {
            self.rollout = Rollout::default();
            self.withdrawn = None;
        }
        self.config = config;
        self.changed = true;
    }

    /// Of so many percent of the requests the choice is carried out.
    pub fn steer_percent(&self) -> u32 {
        match self.withdrawn {
            Some(_) => 0,
            None => self.config.policy.steer_percent,
        }
    }

    /// Of so many percent it would be, had the policy not been withdrawn.
    pub fn withdrawn_percent(&self) -> Option<u32> {
        let percent = self.config.policy.steer_percent;
        self.withdrawn.map(|_| percent)
    }

    /// Looks whether requests that are steered fare worse. Says so where that is reason enough to steer none.
    pub fn judge_rollout(&mut self, now: Duration) -> Option<Worse> {
        let worse = self.rollout.judge(now)?;
        if self.withdrawn.is_some() || !self.config.withdraws {
            return None;
        }
        self.withdrawn = Some(worse);
        self.changed = true;
        Some(worse)
    }

    fn new_host(&mut self, host: &settings::Host) -> Host {
        let mut new = Host::new(host.clone());
        if let Some(level) = self.inherited_levels.remove(&host.address) {
            new.level = HostLevel::starting_at(level);
        }
        new
    }

    fn configure_contents(&mut self, config: &settings::Cluster) {
        let other_keys = config.planner.is_some() && self.config.salt != config.salt;
        let begins_anew = other_keys || self.config.planner.is_some() != config.planner.is_some();
        if begins_anew {
            self.planner = Planner::default();
        }
        if config.cache_shards == 0 {
            self.holdings = Holdings::default();
        } else if let Some(plan) = &config.plan {
            let planned_already = self.holdings.shards() == config.cache_shards;
            if !planned_already || self.config.plan.as_ref() != Some(plan) {
                self.holdings = planned(plan, config.cache_shards);
            }
        } else if self.config.plan.is_some() || begins_anew {
            self.holdings = Holdings::new(config.cache_shards);
        } else if self.config.contents_source().is_some()
            && self.config.contents_source() != config.contents_source()
        {
            // A source that is asked no more would be believed for ever.
            self.holdings = Holdings::new(config.cache_shards);
        } else {
            self.holdings.resize(config.cache_shards);
        }
    }

    /// Whether a host of this identity is in it.
    pub fn has(&self, host: HostId) -> bool {
        self.ids.contains_key(&host)
    }

    /// Notes whether every host was asked for its cache contents once, or has had the time to be. Until then nothing
    /// is said of its caches, so that a proxy which resumes after a restart keeps what it knows.
    pub fn note_caches_asked(&mut self, now: Duration) {
        self.caches_asked = self.caches_asked || self.are_caches_asked(now);
    }

    fn are_caches_asked(&self, now: Duration) -> bool {
        let source = self.config.contents_source();
        let asked = |host: &Host| source.is_none_or(|source| host.polls.contains_key(&source));
        // Sidecars have the plan of before: where they send keys by it is learned first.
        let learns = self.config.planner.is_some();
        let all_asked = || !self.is_unknown(now) && self.hosts.values().all(asked);
        !learns && (source.is_none() || all_asked())
            || now >= self.began + self.config.policy.stale_after
    }

    /// Bytes that its cache contents count, with what is known of their keys' costs.
    pub fn contents_bytes(&self) -> usize {
        self.holdings.bytes() + self.costs.bytes() + self.planner.bytes()
    }

    /// Forgets the cache contents: sidecars are told that nobody has anything.
    pub fn drop_contents(&mut self) {
        self.holdings = Holdings::new(self.config.cache_shards);
        self.costs.forget_keys();
        self.planner = Planner::default();
    }

    /// Cache contents that were dropped are kept again; hosts will be asked for all of them.
    pub fn keep_contents(&mut self) {
        if let Some(plan) = &self.config.plan {
            self.holdings = planned(plan, self.config.cache_shards);
        }
    }

    /// The hosts that refuse connections.
    pub fn dead(&self) -> usize {
        self.hosts.values().filter(|host| host.is_dead()).count()
    }

    /// Fewer hosts than `policy.panic_threshold` seem alive: it is likelier that this process cannot reach the others,
    /// so none is taken out of the choice.
    pub fn health_ignored(&self) -> bool {
        let all = self.hosts.len();
        self.config.policy.panics(all - self.dead(), all)
    }

    /// Fewer hosts than `policy.panic_threshold` are up, or none: proxies choose those that drain as well.
    pub fn panics(&self) -> bool {
        let health_ignored = self.health_ignored();
        let up = |host: &&Host| self.state_of(host, health_ignored) == HostState::Up;
        let (up, all) = (self.hosts.values().filter(up).count(), self.hosts.len());
        all > 0 && (up == 0 || self.config.policy.panics(up, all))
    }

    /// A proxy says whether its Envoy sends requests elsewhere than its filter says. True if that is news.
    pub fn heeds(&mut self, proxy: &str, ignores: bool, now: Duration) -> bool {
        match ignores {
            true => self.ignoring.insert(proxy.to_owned(), now).is_none(),
            false => self.ignoring.remove(proxy).is_some(),
        }
    }

    /// The proxies whose Envoy does.
    pub fn ignoring(&self) -> impl ExactSizeIterator<Item = &str> {
        self.ignoring.keys().map(String::as_str)
    }

    /// Proxies that have not said for so long that choices are ignored are not counted any more.
    pub fn forget_ignoring(&mut self, now: Duration, limit: Duration) {
        self.ignoring
            .retain(|_, said| now.saturating_sub(*said) <= limit);
    }

    /// A host's state, as the table has it.
    pub fn state_of(&self, host: &Host, health_ignored: bool) -> HostState {
        match () {
            () if host.config.draining => HostState::Draining,
            () if host.is_dead() && !health_ignored => HostState::Down,
            () if host.draining => HostState::Draining,
            () => HostState::Up,
        }
    }

    /// A host's level, as the table has it.
    pub fn level_of(&self, host: &Host, now: Duration) -> Level {
        let stale = host
            .age(now)
            .is_none_or(|age| age > self.config.policy.stale_after);
        let control = self.config.dagor.control;
        match (self.config.policy.overload, control) {
            (Overload::Dagor, Control::Steady) if !stale => {
                host.level.get(control).min(self.level.get())
            }
            (Overload::Dagor, _) if !stale => host.level.get(control),
            _ => Level::ALL,
        }
    }

    /// Takes in what a proxy reports. Where cache contents are not kept, assignments and costs do not count.
    pub fn report(&mut self, proxy: &str, news: &News, keeps_contents: bool, now: Duration) {
        // Nobody else has levels that move.
        if self.config.policy.overload == Overload::Dagor {
            let id = |address: &str| self.hosts.get(address).map(|host| host.id);
            self.claims.claim(proxy, news, id);
            for (address, counts) in &news.admitted {
                if let Some(host) = self.hosts.get_mut(address) {
                    host.level.claimed(counts.values().sum::<u64>() as f64);
                }
            }
        }
        let proxy = KeyHash::of(proxy.as_bytes()).0;
        if let Some(resumption) = &mut self.resumption {
            resumption.hear(proxy, &news.levels);
        }
        for (address, load, at) in &news.loads {
            if let Some(host) = self.hosts.get_mut(address) {
                let figures = Figures {
                    in_progress: Some(load.in_progress),
                    queued: Some(load.queued.clone()),
                    queuing_delay: load.queuing_delay_us.map(Duration::from_micros),
                    delay_is_late: false,
                    busy_cores: load.busy_cores,
                    work: load.tells_work.then(|| load.work_us.clone()),
                };
                let observed = Observed {
                    figures,
                    at: *at,
                    delay_at: *at,
                    from: observed::From::Report,
                };
                let keep = self.config.policy.stale_after;
                self.has_newer_figures |= host.reported(proxy, observed, keep);
            }
        }
        for (host, change) in &news.under_way {
            self.moved(*host, *change, now);
        }
        if self.config.policy.serves == Serves::Prompts {
            for (address, micros) in &news.reading_us {
                if let Some(host) = self.hosts.get_mut(address) {
                    host.under_way.reads(Duration::from_micros(*micros), now);
                    self.has_newer_figures = true;
                }
            }
        }
        if !keeps_contents {
            return;
        }
        if self.config.policy.selection == Selection::Estimate {
            for spent in &news.spent {
                if self.ids.contains_key(&spent.host) && self.costs.learn(spent, now) {
                    self.holdings.touch(spent.key);
                }
            }
        }
        if let Some(planning) = &self.config.planner {
            let known = |spent: &&Spent| self.ids.contains_key(&spent.host);
            for spent in news.spent.iter().filter(known) {
                if let Some(placed) = self.planner.learn(spent, planning, now) {
                    carry_out(&mut self.holdings, placed);
                }
            }
        }
        if self.config.is_planned() {
            return;
        }
        for (key, host, at) in &news.assignments {
            let until = *at + self.config.policy.assumed_cached;
            if until > now && self.ids.contains_key(host) {
                self.holdings.assume(*host, *key, until);
            }
        }
    }

    /// Callers have more requests under way at a host, or fewer.
    pub fn moved(&mut self, host: HostId, change: Change, now: Duration) {
        let address = self.ids.get(&host);
        if let Some(host) = address.and_then(|address| self.hosts.get_mut(address)) {
            host.under_way.moved(change, now);
            self.has_newer_figures |= self.config.policy.selection == Selection::Estimate;
        }
    }

    /// Moves the levels if their window is over.
    pub fn step_levels(&mut self, now: Duration) {
        let is_unknown = self.is_unknown(now);
        if is_unknown {
            self.wait_for_hosts(now);
        }
        self.settle_resumption(now);
        let config = self.config.clone();
        // Without figures every level would open.
        if config.policy.overload != Overload::Dagor || self.waits(now) || is_unknown {
            self.claims.drop_window();
            return;
        }
        let limit = config.dagor.window_requests as f64;
        let full = self
            .hosts
            .values()
            .any(|host| host.level.requests() >= limit);
        if !full && now.saturating_sub(self.stepped) < config.dagor.window {
            return;
        }
        let step = Step {
            dagor: &config.dagor,
            stale_after: config.policy.stale_after,
            passes_on: config.policy.selection != Selection::Baseline,
            spare: false,
        };
        let up = self.up();
        let (highest, counted) = (self.highest_level(now), self.counted(&up, now));
        let mut hosts: Vec<_> = self
            .hosts
            .values_mut()
            .map(|host| seen(host, &config.dagor, now))
            .collect();
        let steady = config.dagor.control == Control::Steady;
        let all_up = || hosts.iter().filter(|host| up.contains(&host.id));
        if steady && !ClusterLevel::is_due(all_up(), now, &step) {
            return;
        }
        let length = now.saturating_sub(std::mem::replace(&mut self.stepped, now));
        let counted = counted.map(|rate| rate * length.as_secs_f64());
        let mut confirmed = self.claims.confirm(highest, counted, length);
        for host in &mut hosts {
            let sent = confirmed.sent.remove(&host.id).unwrap_or_default();
            let refused = confirmed.refused.remove(&host.id).unwrap_or(0.0);
            host.level.confirm(sent, refused);
        }
        let part = 1.0 / up.len().max(1) as f64;
        let share = confirmed.offered.iter();
        let share: Counts = share.map(|(rank, count)| (*rank, count * part)).collect();
        if steady {
            hosts.retain(|host| up.contains(&host.id));
            let offered = &confirmed.offered;
            self.changed |= self.level.step(offered, &share, &mut hosts, now, &step);
            for host in self.hosts.values_mut() {
                self.changed |= host.level.begin_window(&step);
            }
        } else {
            // By other selections a key stays at its host however full that is, until a level sends it on.
            let leaves_queues = config.policy.selection == Selection::Estimate;
            let spare = |host: &Seen<'_>| up.contains(&host.id) && host.is_spare();
            let step = Step {
                spare: leaves_queues && hosts.iter().any(spare),
                ..step
            };
            for host in hosts {
                let before = host.level.get(config.dagor.control);
                let figures = host.figures.as_ref();
                host.level.step(&share, figures, host.idle, now, &step);
                self.changed |= host.level.get(config.dagor.control) != before;
            }
        }
    }

    /// Plans anew where that is learned, and it is time to.
    pub fn plan(&mut self, now: Duration) {
        let due = |planning: &&settings::Planning| self.planner.is_due(planning, now);
        let Some(planning) = self.config.planner.as_ref().filter(due) else {
            return;
        };
        let up = self.up();
        let hosts = self.hosts.values().filter(|host| up.contains(&host.id));
        let place = |host: &Host| Place {
            host: host.id,
            capacity: f64::from(host.capacity_millicores()),
        };
        let mut places: Vec<_> = hosts.map(place).collect();
        // Where one is not known, none counts, as for the filter.
        if places.iter().any(|place| place.capacity == 0.0) {
            for place in &mut places {
                place.capacity = 1.0;
            }
        }
        for moved in self.planner.plan(&places, planning, now) {
            carry_out(&mut self.holdings, moved);
        }
    }

    /// The hosts that get requests.
    fn up(&self) -> HashSet<HostId> {
        let (health_ignored, panics) = (self.health_ignored(), self.panics());
        let up = |host: &&Host| match self.state_of(host, health_ignored) {
            HostState::Up => true,
            HostState::Draining => panics,
            HostState::Down => false,
        };
        self.hosts.values().filter(up).map(|host| host.id).collect()
    }

    fn highest_level(&self, now: Duration) -> Level {
        let levels = self.hosts.values().map(|host| self.level_of(host, now));
        levels.max().unwrap_or(Level::ALL)
    }

    /// Jobs a second that these hosts counted themselves, where all of them do.
    fn counted(&self, up: &HashSet<HostId>, now: Duration) -> Option<f64> {
        let hosts = self.hosts.values().filter(|host| up.contains(&host.id));
        hosts
            .map(|host| host.level.count(now, self.config.dagor.window))
            .sum()
    }

    /// Governors' words count when their time has come, and no more when they are older than `limit`. The hosts whose
    /// governors have fallen silent now.
    pub fn settle_nodes(&mut self, now: Duration, limit: Duration) -> Vec<String> {
        let mut silent = Vec::new();
        for (address, host) in &mut self.hosts {
            let (lasting, before) = (host.lasting_millicores(), host.node.is_silent());
            self.changed |= host.node.settle(now);
            self.changed |= host.node.forget(lasting, now, limit);
            if host.node.is_silent() && !before {
                silent.push(address.clone());
            }
        }
        silent
    }

    /// A host's row, as the governor of its node is told it. `origin` is where the state's clock began.
    pub fn row_of(&self, host: &Host, now: Duration, origin: Instant) -> Row {
        let observed = host.observed.as_ref();
        // It may be older than the other figures.
        let told = observed.filter(|observed| {
            now.saturating_sub(observed.delay_at) <= self.config.policy.stale_after
        });
        Row {
            level: self.level_of(host, now),
            delay: told.and_then(|observed| observed.figures.queuing_delay),
            observed: observed.map(|observed| origin + observed.at),
        }
    }

    /// The table is built and on its way. Newer figures wait until its bytes are within those of a second, and it within
    /// the tables that all proxies may get, but never for long.
    pub fn was_built(&mut self, now: Duration, bytes: usize, bytes_per_second: usize) {
        (self.changed, self.has_newer_figures, self.built) = (false, false, Some(now));
        let rest = Duration::from_millis(bytes as u64 * 1000 / bytes_per_second.max(1) as u64);
        let rest = rest.max(pace::rest(self.proxies as usize));
        self.rests_until = now + rest.min(LONGEST_REST);
        if self.inherited.take().is_some() {
            self.inherited_levels.clear();
        }
        for host in self.hosts.values_mut() {
            let newest = host.newest(&self.config.policy, now);
            host.pushed_from = newest.map(|observed| observed.from);
            host.node.tell(host.capacity_millicores());
        }
    }

    /// Whether its hosts are still to be found. Until then nothing is said of them: proxies keep what they have.
    /// Those that are written are told alone only when discovery has had its time: after a start of this
    /// process they would get what is everybody's.
    pub fn is_unknown(&self, now: Duration) -> bool {
        let found = |host: &Host| host.config.instance.is_some();
        if self.hosts.is_empty() {
            // An empty list has to be meant.
            return self.config.registry.is_some() || !self.config.shrink_after.is_zero();
        }
        self.config.registry.is_some()
            && !self.hosts.values().any(found)
            && now < self.began + self.config.policy.stale_after
    }

    /// Whether the table that is pushed is too old for one who does not know its age, and none can be built.
    pub fn has_outlived_its_table(&self, now: Duration) -> bool {
        let since = self.built.unwrap_or(self.began);
        self.is_unknown(now) && now.saturating_sub(since) > self.config.policy.stale_after
    }

    /// Whether the table is to be built: something changed, or its ages are about to mislead.
    pub fn is_due(&self, now: Duration) -> bool {
        let republish = self.config.policy.stale_after / 3;
        !self.is_unknown(now) && self.is_old(now, republish) && !self.waits(now)
    }

    fn is_old(&self, now: Duration, republish: Duration) -> bool {
        self.changed
            || self.has_newer_figures && now >= self.rests_until
            || self
                .built
                .is_none_or(|built| now.saturating_sub(built) >= republish)
    }
}

/// A host as its level sees it at the end of a window.
fn seen<'a>(host: &'a mut Host, dagor: &settings::Dagor, now: Duration) -> Seen<'a> {
    let figures = host.level.believed(now, dagor.window);
    let millicores = host.capacity_millicores();
    let idle = |figures| levels::is_idle(figures, millicores, dagor);
    Seen {
        id: host.id,
        idle: figures.as_ref().is_some_and(idle),
        level: &mut host.level,
        figures,
        millicores,
    }
}

/// A key is held where it is planned.
fn carry_out(holdings: &mut Holdings, moved: Move) {
    for (host, comes) in [(moved.from, false), (moved.to, true)] {
        let Some(host) = host else { continue };
        let keys = |wanted: bool| if wanted { vec![moved.key] } else { Vec::new() };
        let changes = Changes {
            reset: false,
            added: keys(comes),
            removed: keys(!comes),
        };
        // The planner bounds them.
        let _ = holdings.apply(host, &changes, usize::MAX);
    }
}

/// The plan as what hosts say that they hold.
fn planned(plan: &settings::Plan, shards: u32) -> Holdings {
    let mut holdings = Holdings::new(shards);
    for (host, keys) in plan {
        let added = keys.clone();
        let changes = Changes {
            reset: true,
            added,
            removed: Vec::new(),
        };
        // A plan is whoever's who wrote it.
        let _ = holdings.apply(*host, &changes, usize::MAX);
    }
    holdings
}
