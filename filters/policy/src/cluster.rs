// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use rand::Rng;

use crate::account::put_suspects_last;
use crate::admission::AdmissionIndex;
use crate::feedback::{AssumedKeys, Feedback, HostFeedback, InFlight};
use crate::key::scale;
use crate::overload::breakwater::{Credits, Unmet};
use crate::prefix::Prefix;
use crate::selection::{Candidates, Ring};
use crate::standing::{Clock, time};
use crate::{
    Assignment, CacheIndex, CacheShard, Cost, Decision, Host, HostId, HostState, Keys, Level, Load,
    Outcome, Overload, Policy, Reason, Request, Selection, Serves, Table,
};

/// For how long a host that did not take a request comes after the others. One poll of its health at
/// weir-control's default interval says more.
const SUSPECT_FOR: Duration = Duration::from_secs(1);

/// What the end of a request says of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The host works, whatever it thinks of the request.
    Well,
    /// It answered that it cannot.
    Failed,
    /// It answered that it has too much to do: for overload policies, and no fault.
    Refused,
    /// It answered that it cannot, and that is not its fault: another host could not either, or the time was over
    /// that the caller had given.
    Excused,
}

/// One cluster as a proxy (or the simulator, or `explain`) knows it.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    table: Option<Received>,
    pub(crate) admission: AdmissionIndex,
    pub(crate) ring: Ring,
    pub(crate) cache: CacheIndex,
    pub(crate) feedback: Feedback,
    /// Too few hosts were left when the table came: those that drain are chosen as well.
    pub(crate) panics: bool,
    /// The proxy sends requests elsewhere, so levels of hosts that it does not choose hold nobody back.
    unheeded: bool,
    /// Requests that no host admitted.
    unmet: Unmet,
}

#[derive(Clone, Debug)]
struct Received {
    table: Table,
    at: Duration,
}

impl Cluster {
    /// Takes a new table, received at `at` on the clock of `now`.
    pub fn set_table(&mut self, table: Table, at: Duration, now: Duration) {
        let ids = table.ids();
        let old = self.table.as_ref().map(|received| received.table.ids());
        let old = old.unwrap_or_default();
        if old != ids {
            self.feedback.remap(old, ids);
        }
        self.panics = self.is_panic(&table, now);
        for (index, host) in (0u32..).zip(table.hosts()) {
            let takes_crossing = table.is_elsewhere(host) && !table.policy().crossing.is_zero();
            let is_usual = host.is_usual() && !takes_crossing;
            self.feedback.set_host(index, host, is_usual);
            if let Some(load) = &host.load {
                self.feedback.observe(index, load);
            }
            if !self.is_chosen_from(host.state) {
                // What comes back is judged anew.
                self.feedback.recovered(index);
            }
        }
        self.feedback.failed_keys.forget(now);
        match table.policy().estimates() {
            true => self.feedback.look_ahead(),
            false => self.feedback.keep_no_outlooks(),
        }
        self.cache.resize(table.cache_shards());
        let levels = self.levels_now(&table, now);
        if table.policy().selects_by(Selection::Rendezvous) {
            let up = (0u32..).zip(ids).zip(&levels);
            let up = up.filter(|(_, level)| level.is_some());
            self.ring = Ring::new(up.map(|((host, id), _)| (*id, host)));
        } else {
            self.ring = Ring::default();
        }
        self.admission.set_levels(levels);
        self.table = Some(Received { table, at });
    }

    /// Forgets the table and the cache contents; what is in flight still counts.
    pub fn remove_table(&mut self) {
        if let Some(received) = self.table.take() {
            self.feedback.remap(received.table.ids(), &[]);
        }
        self.admission = AdmissionIndex::default();
        self.panics = false;
        self.ring = Ring::default();
        self.cache.resize(0);
    }

    /// Takes a shard of the cache contents; ignored where the table has no such shard.
    pub fn set_cache_shard(&mut self, shard: u32, contents: CacheShard) {
        self.cache.set(shard, contents);
    }

    /// Keeps no cache contents alive that others share, until [`Cluster::wake`].
    pub fn rest(&mut self) {
        self.cache.rest();
    }

    /// Has them again; those that were replaced meanwhile as `newest` has them, by their shard.
    pub fn wake(&mut self, newest: impl Fn(u32) -> Option<CacheShard>) {
        self.cache.wake(newest);
    }

    /// Whether the proxy sends requests where decisions say. Where it does not, levels hold nobody back.
    pub fn set_heeded(&mut self, heeded: bool, now: Duration) {
        if self.unheeded != heeded {
            return;
        }
        self.unheeded = !heeded;
        self.set_levels_again(now);
    }

    /// Whether the proxy sends requests where decisions say, as far as is known.
    pub fn is_heeded(&self) -> bool {
        !self.unheeded
    }

    /// Whether so few hosts were left when the table came that those which drain are chosen as well.
    pub fn panics(&self) -> bool {
        self.panics
    }

    /// The present table.
    pub fn table(&self) -> Option<&Table> {
        self.table.as_ref().map(|received| &received.table)
    }

    /// The level that weir-control gave the host, where it is below all.
    pub fn level_told(&self, host: HostId) -> Option<Level> {
        let table = self.table()?;
        let row = table.host(table.index_of(host)?)?;
        (row.level < Level::ALL).then_some(row.level)
    }

    /// What is known of the hosts' caches.
    pub fn cache(&self) -> &CacheIndex {
        &self.cache
    }

    /// A request was sent to the host. How long it is expected to read for it, where hosts read prompts.
    pub fn assigned(&mut self, host: HostId, request: &Request, now: Duration) -> Duration {
        self.assigned_to(host, request, true, now)
    }

    /// The same, where `reads` says whether the host reads the prompt: else another does that for it.
    pub fn assigned_to(
        &mut self,
        host: HostId,
        request: &Request,
        reads: bool,
        now: Duration,
    ) -> Duration {
        let Some(received) = &self.table else {
            return Duration::ZERO;
        };
        let (lifetime, serves) = (
            received.table.policy().assumed_cached,
            received.table.policy().serves,
        );
        let Some(index) = received.table.index_of(host) else {
            return Duration::ZERO;
        };
        let counts = self.estimates();
        let (work, least) = match (counts, serves) {
            (true, Serves::Jobs) => (
                self.cost(&request.keys).run,
                received.table.expected_cost().run,
            ),
            (true, Serves::Prompts) if reads => {
                let (size, lack) = (
                    request.keys.size(),
                    self.lacks_of(&received.table, &request.keys, index, now),
                );
                let each = self.reading_each(&received.table, size);
                let work = each.saturating_mul(lack as u32);
                self.feedback
                    .change(index, |row| row.sends_prompt(work, now));
                if size > 0 {
                    self.feedback.sent_lacking(lack);
                }
                (work, work)
            }
            (true, Serves::Prompts) | (false, _) => (Duration::ZERO, Duration::ZERO),
        };
        let sent = InFlight {
            at: now,
            class: request.rank.class(),
            work,
            least,
            counts,
        };
        let limits = received.table.policy().overload.counts_in_flight();
        self.feedback.change(index, |row| row.assigned(sent));
        if limits {
            self.set_level_again(index, now);
        }
        if !self.feedback.failed_keys.is_empty() {
            self.feedback.failed_keys.assigned(&request.keys, host, now);
        }
        // The first keys last: without them the others are of no use, and the oldest are forgotten first.
        for key in request.keys.as_slice().iter().rev() {
            let assignment = Assignment {
                key: *key,
                host,
                at: now,
            };
            self.feedback.assumed.insert(assignment, true, lifetime);
        }
        match serves {
            Serves::Jobs => Duration::ZERO,
            Serves::Prompts => work,
        }
    }

    /// A request that was sent to the host at `sent`, as [`Cluster::assigned`] was told, has ended, however.
    /// Only where the cluster [`Cluster::times_ends`] does it matter what time it is.
    pub fn finished(&mut self, host: HostId, sent: Duration, now: Duration) {
        let estimates = self.estimates();
        let finished = |row: &mut HostFeedback| {
            row.in_flight = row.in_flight.saturating_sub(1);
            row.health.finished(sent);
            match estimates {
                true => row.ended(sent, now),
                // Some were sent while it did.
                false if row.expects() => row.settle(sent),
                false => {}
            }
        };
        match self.index_of(host) {
            Some(index) => {
                self.feedback.change(index, finished);
                if self.counts_in_flight() {
                    self.set_level_again(index, now);
                }
            }
            None => self.feedback.departed_finished(host, finished),
        }
    }

    /// Whether it matters when requests end.
    pub fn times_ends(&self) -> bool {
        self.estimates() || self.counts_in_flight()
    }

    /// Whether levels move with what is sent and ends.
    fn counts_in_flight(&self) -> bool {
        let policy = self.table().map(Table::policy);
        policy.is_some_and(|policy| policy.overload.counts_in_flight())
    }

    /// The host has given so many credits to this VM, with an answer that has come now.
    pub fn credited(&mut self, host: HostId, credits: u32, now: Duration) {
        let Some(index) = self.index_of(host) else {
            return;
        };
        let credits = Credits {
            count: credits,
            at: now,
        };
        self.feedback
            .change(index, |row| row.credits = Some(credits));
        self.set_level_again(index, now);
    }

    /// No host admits a request, and it is not held either.
    pub fn refused(&mut self, now: Duration) {
        self.unmet.refused(now);
    }

    /// How many requests this VM wants to have at the host, with one that has been assigned to it: those in flight there,
    /// and its part of those that no host admitted lately and of the `held` ones. None where hosts give no credits.
    pub fn demand(&self, host: HostId, held: usize, now: Duration) -> Option<u32> {
        let policy = self.table().map(Table::policy);
        policy.filter(|policy| policy.overload == Overload::Breakwater)?;
        let hosts = self.admission.up().len().max(1);
        let unmet = held.saturating_add(self.unmet.lately(now) as usize);
        let part = u32::try_from(unmet.div_ceil(hosts)).unwrap_or(u32::MAX);
        Some(self.in_flight(host).saturating_add(part))
    }

    /// Whether choices go by what is expected of each request, which is kept account of only then.
    pub fn estimates(&self) -> bool {
        let policy = self.table().map(Table::policy);
        policy.is_some_and(Policy::estimates)
    }

    /// Whether weir-control is to be told what requests cost: for estimates, or for a plan that it learns.
    pub fn learns_costs(&self) -> bool {
        let policy = self.table().map(Table::policy);
        let is_planned = |policy: &Policy| policy.selection == Selection::CachingPlan;
        self.estimates() || policy.is_some_and(is_planned)
    }

    /// The host's load came from elsewhere than the table; ignored where something newer is known.
    pub fn observed(&mut self, host: HostId, load: Load, now: Duration) {
        let Some(index) = self.index_of(host) else {
            return;
        };
        if self.feedback.observe(index, &load) {
            self.set_level_again(index, now);
        }
    }

    /// What is known of all hosts has changed, and so may their levels.
    fn set_levels_again(&mut self, now: Duration) {
        if let Some(received) = &self.table {
            let levels = self.levels_now(&received.table, now);
            self.admission.set_levels(levels);
        }
    }

    /// What is known of the host has changed, and so may its level.
    fn set_level_again(&mut self, index: u32, now: Duration) {
        if let Some(received) = &self.table
            && let Some(level) = self.level_now(&received.table, index, now)
        {
            self.admission.set_level(index, level);
        }
    }

    /// The host did not take a request for the keys that was sent at `sent`: others come first for a moment. Says
    /// whether they do so for longer from now on, because it fails and they do not. Not so where the keys fail
    /// elsewhere too; none are named where they cannot be at fault.
    pub fn failed(&mut self, host: HostId, keys: &Keys, sent: Duration, now: Duration) -> bool {
        let Some(index) = self.index_of(host) else {
            return false;
        };
        let Some(is_first) = self.feedback.blamed((index, host), keys, sent, now) else {
            return false;
        };
        self.suspected(host, now);
        self.feedback.record_failure(index, sent, is_first, now)
    }

    /// Others come before the host for a moment, and nothing else is held against it.
    pub fn suspected(&mut self, host: HostId, now: Duration) {
        if let Some(index) = self.index_of(host) {
            self.feedback
                .change(index, |row| row.suspect_until = now + SUSPECT_FOR);
        }
    }

    /// The host took a request for the keys that was sent at `sent` and did not answer it in time. Says the same as
    /// [`Cluster::failed`].
    pub fn timed_out(&mut self, host: HostId, keys: &Keys, sent: Duration, now: Duration) -> bool {
        let Some(index) = self.index_of(host) else {
            return false;
        };
        let blamed = self.feedback.blamed((index, host), keys, sent, now);
        blamed.is_some_and(|is_first| self.feedback.record_failure(index, sent, is_first, now))
    }

    /// One request for the keys has failed at both hosts: that is held against neither.
    pub fn failed_at_both(&mut self, hosts: [HostId; 2], keys: &Keys, now: Duration) {
        for host in hosts {
            self.feedback.failed_keys.failed(keys, host, now);
        }
    }

    /// The host answered what was sent for the keys at `sent`, so it takes requests. Only of [`Answer::Failed`] does
    /// it matter what time it is. Says the same as [`Cluster::failed`].
    pub fn answered(
        &mut self,
        host: HostId,
        keys: &Keys,
        sent: Duration,
        answer: Answer,
        now: Duration,
    ) -> bool {
        let Some(index) = self.index_of(host) else {
            return false;
        };
        if answer == Answer::Well {
            self.feedback.did_well(index, sent);
            if !self.feedback.failed_keys.is_empty() {
                self.feedback.failed_keys.did_well(keys, host);
            }
            return false;
        }
        self.feedback
            .change(index, |row| row.suspect_until = Duration::ZERO);
        if answer != Answer::Failed {
            return false;
        }
        let blamed = self.feedback.blamed((index, host), keys, sent, now);
        blamed.is_some_and(|is_first| self.feedback.record_failure(index, sent, is_first, now))
    }

    /// Requests in flight from the proxy's other VMs, all of them.
    pub fn set_peers_in_flight(
        &mut self,
        peers: impl Iterator<Item = (HostId, u32)>,
        now: Duration,
    ) {
        self.feedback.forget_peers();
        for (host, in_flight) in peers {
            if let Some(index) = self.index_of(host) {
                self.feedback.change(index, |row| {
                    row.peers_in_flight = row.peers_in_flight.saturating_add(in_flight);
                });
            }
        }
        if self.counts_in_flight() {
            self.set_levels_again(now);
        }
    }

    /// A key was sent to a host by another VM of the proxy.
    pub fn assigned_by_peer(&mut self, assignment: Assignment) {
        if let Some(received) = &self.table {
            self.feedback
                .assumed
                .insert(assignment, false, received.table.policy().assumed_cached);
        }
    }

    /// Requests of this VM that are in flight at the host.
    pub fn in_flight(&self, host: HostId) -> u32 {
        let row = self
            .index_of(host)
            .and_then(|index| self.feedback.row(index));
        row.or_else(|| self.feedback.departed(host))
            .map_or(0, |feedback| feedback.in_flight)
    }

    /// What a request for the keys is expected to cost; where nobody has seen the last of them, what all do
    /// ([`Cost::UNTOLD`] where no host tells that).
    pub fn cost(&self, keys: &Keys) -> Cost {
        let known = keys.last().and_then(|key| self.cache.cost(key));
        let mean = || self.table().map(Table::expected_cost);
        known.or_else(mean).unwrap_or_default()
    }

    /// How long a part of 1 takes to be read of a prompt of this size. Engines time what they read, which is what they
    /// lacked.
    pub(crate) fn reading_each(&self, table: &Table, size: usize) -> Duration {
        let mean = time(table.expected_cost().fetch);
        Duration::from_nanos((mean / self.feedback.usual_lack(size)) as u64)
    }

    /// How much of what the keys stand for ([`Keys::size`]) the host with this table index is neither known nor assumed
    /// to have.
    pub fn lacks(&self, host: u32, keys: &Keys, now: Duration) -> usize {
        let table = self.table();
        table.map_or(keys.size(), |table| self.lacks_of(table, keys, host, now))
    }

    #[inline]
    fn lacks_of(&self, table: &Table, keys: &Keys, index: u32, now: Duration) -> usize {
        let held = Prefix::of((self, table), keys.as_slice(), index, now);
        let held = held.map_or(0, |prefix| prefix.keys);
        keys.size().saturating_sub(keys.share(held as usize))
    }

    /// How many requests were answered, well or badly, or failed; a counter that wraps.
    pub fn ended(&self) -> u32 {
        self.feedback.ended()
    }

    /// The same at the host; none where it is not in the table.
    pub fn ended_at(&self, host: HostId) -> Option<u32> {
        let row = self.feedback.row(self.index_of(host)?)?;
        Some(row.health.ended())
    }

    /// The identity of the host with this table index.
    pub fn id(&self, host: u32) -> Option<HostId> {
        self.table()?.ids().get(host as usize).copied()
    }

    /// The newest load known of the host with this table index.
    pub fn load(&self, host: u32) -> Option<&Load> {
        self.feedback.row(host)?.load.as_ref()
    }

    /// Jobs that are probably running or queued at the host with this table index.
    pub fn in_progress(&self, host: u32, now: Duration) -> Option<u32> {
        let stale_after = self.table()?.policy().stale_after;
        let clock = Clock::new(now, stale_after);
        Some(self.feedback.standing(host)?.in_progress(clock))
    }

    /// The level in force for the host with this table index; none where it is not chosen from.
    pub fn level(&self, host: u32) -> Option<Level> {
        self.admission.level(host)
    }

    /// The newest assignments of this VM, newest first.
    pub fn recent_assignments(&self) -> impl Iterator<Item = Assignment> + '_ {
        AssumedKeys::recent(&self.feedback.assumed)
    }

    /// Whether no table has come for longer than load figures are believed.
    pub fn is_stale(&self, now: Duration) -> bool {
        self.table.as_ref().is_none_or(|received| {
            now.saturating_sub(received.at) > received.table.policy().stale_after
        })
    }

    /// How old the table is; none where there is none.
    pub fn table_age(&self, now: Duration) -> Option<Duration> {
        let received = self.table.as_ref()?;
        Some(now.saturating_sub(received.at))
    }

    /// Whether a request that is done by goes to a host in another zone than the caller's.
    pub fn crosses(&self, decision: &Decision) -> bool {
        let Some(table) = self.table().filter(|table| table.has_home()) else {
            return false;
        };
        let first = match &decision.outcome {
            Outcome::Send(ranked) => ranked.first(),
            _ => None,
        };
        let first = first.and_then(|host| table.host(host));
        first.is_some_and(|host| table.is_elsewhere(host))
    }

    /// What to do with a request.
    pub fn decide(&self, request: &Request, now: Duration, rng: &mut impl Rng) -> Decision {
        let policy = self.table().map(Table::policy);
        let selection = policy.map_or(Selection::Estimate, |policy| policy.selection);
        self.decide_by(selection, request, now, rng)
    }

    /// The same by any selection. Not inlined, so that there is one of it.
    #[inline(never)]
    pub(crate) fn decide_by(
        &self,
        selection: Selection,
        request: &Request,
        now: Duration,
        rng: &mut impl Rng,
    ) -> Decision {
        let Some(Received { table, .. }) = &self.table else {
            return Decision {
                outcome: Outcome::Fallback,
                reason: Reason::NoTable,
            };
        };
        let stale = self.is_stale(now);
        if self.admission.up().is_empty() {
            return Decision {
                outcome: Outcome::Fallback,
                reason: match stale {
                    true => Reason::StaleTable,
                    false => Reason::NoHost,
                },
            };
        }
        let eligible = self.eligible(request, stale);
        if eligible.is_empty() {
            let retry_after = jittered(table.policy().retry_after, rng);
            return Decision {
                outcome: Outcome::Shed { retry_after },
                reason: Reason::Overloaded,
            };
        }
        let candidates = Candidates::new(self, table, (eligible, request), now);
        let (ranked, mut reason) = selection.select(&candidates, rng);
        let is_suspect = |host| candidates.is_suspect(host);
        let instead = |ranked| candidates.unsuspected(ranked);
        let ranked = put_suspects_last(ranked, is_suspect, instead);
        if self.panics {
            reason = Reason::Panic;
        }
        Decision {
            outcome: Outcome::Send(ranked),
            reason,
        }
    }

    /// Hosts that the request may get. Levels of a table that nobody renews relax: nothing is refused because
    /// weir-control is gone.
    pub(crate) fn eligible(&self, request: &Request, stale: bool) -> &[u32] {
        match stale {
            true => self.admission.up(),
            false => self.admission.admitting(request.rank),
        }
    }

    /// Whether others come before the host with this table index.
    pub(crate) fn is_suspect(&self, host: u32, clock: Clock) -> bool {
        let standing = self.feedback.standing(host);
        standing.is_some_and(|standing| standing.is_suspect(clock))
    }

    /// Whether others come before the host with this table index for the most important requests.
    pub(crate) fn is_doubted(&self, host: u32, now: Duration) -> bool {
        let row = self.feedback.row(host);
        row.is_some_and(|row| row.health.doubted_until() > now)
    }

    /// Whether the request is better sent to another host than the one with this table index, because its key failed
    /// there.
    pub(crate) fn turns_away(&self, host: u32, request: &Request, now: Duration) -> bool {
        let failed = &self.feedback.failed_keys;
        let is_important = request.rank.class() == 0;
        !failed.is_empty()
            && self
                .id(host)
                .is_some_and(|host| failed.turns_away(&request.keys, host, is_important, now))
    }

    fn index_of(&self, host: HostId) -> Option<u32> {
        self.table()?.index_of(host)
    }

    /// Whether fewer hosts are left than the policy's threshold: up, and neither failing nor refusing. Where no
    /// host is up it is so whatever the threshold: hosts that drain answer still.
    fn is_panic(&self, table: &Table, now: Duration) -> bool {
        let clock = Clock::new(now, table.policy().stale_after);
        let hosts = (0u32..).zip(table.hosts());
        let up = hosts.filter(|(_, host)| host.state == HostState::Up);
        let is_left = |(index, _): &(u32, &Host)| {
            !self.is_suspect(*index, clock) && !self.is_doubted(*index, now)
        };
        let (up, left) = up.fold((0, 0), |(up, left), host| {
            (up + 1, left + usize::from(is_left(&host)))
        });
        let all = table.hosts().len();
        all > 0 && (up == 0 || table.policy().panics(left, all))
    }

    fn is_chosen_from(&self, state: HostState) -> bool {
        match state {
            HostState::Up => true,
            HostState::Draining => self.panics,
            HostState::Down => false,
        }
    }

    fn levels_now(&self, table: &Table, now: Duration) -> Vec<Option<Level>> {
        let hosts = 0..table.hosts().len() as u32;
        hosts.map(|host| self.level_now(table, host, now)).collect()
    }

    /// The level that the overload policy gives the host; none where it is not chosen from. Not inlined, so that there
    /// is one of it.
    #[inline(never)]
    fn level_now(&self, table: &Table, index: u32, now: Duration) -> Option<Level> {
        let host = table
            .host(index)
            .filter(|host| self.is_chosen_from(host.state))?;
        if self.unheeded {
            return Some(Level::ALL);
        }
        let (policy, known) = (table.policy(), self.feedback.row(index)?);
        let stale_after = policy.stale_after;
        let outlook = || self.feedback.outlook(index, Clock::new(now, stale_after));
        let level = policy
            .overload
            .level(host, known, outlook, now, stale_after);
        Some(level)
    }
}

/// Half to one and a half times `mean`, so that those shed together do not come back together.
fn jittered(mean: Duration, rng: &mut impl Rng) -> Duration {
    let span = u32::try_from(mean.as_millis()).unwrap_or(u32::MAX);
    mean / 2 + Duration::from_millis(scale(rng.next_u32(), span as usize) as u64)
}
