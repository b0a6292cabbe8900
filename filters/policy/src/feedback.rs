// SPDX-License-Identifier: Apache-2.0
//! What one proxy knows before weir-control does: what it sent where, and what hosts said on their answers.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::account::Score;
use crate::failed_keys::{Blame, FailedKeys};
use crate::hashed::Salted;
use crate::health::{AllEndings, Health};
use crate::host::cores;
use crate::outlook::Outlook;
use crate::overload::breakwater::Credits;
use crate::standing::{Clock, Standing, nanos};
use crate::unread::Unread;
use crate::{Host, HostId, KeyHash, Keys, Load, Work};

/// Assignments remembered per host between two observations of its load. Beyond them a host is so much
/// more loaded than its peers that the exact number does not matter.
const MAX_ASSIGNED_SINCE: usize = 1024;
/// The same of a host that has told nothing, where no ends are awaited: nothing takes them out until it tells something.
const MAX_ASSIGNED_UNTOLD: usize = 32;
/// Keys that are assumed cached somewhere, at most: 10 s of 800 requests a second for different keys, or of 32
/// with 25 keys each.
const MAX_ASSUMED_KEYS: usize = 8192;
/// Hosts that one key is assumed cached at, the newest ones.
const MAX_ASSUMED_HOSTS: usize = 4;
/// A key that is sent to the same host within this part of the lifetime is not put down anew: of a key that is sent a
/// thousand times a second that was most of what was kept, searched for the newest and told to the peers.
const SOON_AGAIN: u32 = 8;
/// The mean number of keys is of so many of the newest requests.
const NEWEST_KEYS: f64 = 256.0;
/// Hosts that left the table with requests still in flight.
const MAX_DEPARTED: usize = 1024;

/// What is known of one host here.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostFeedback {
    /// The newest of table and answers.
    pub(crate) load: Option<Load>,
    /// Requests that were sent and that `load` cannot include yet, oldest first.
    assigned: VecDeque<InFlight>,
    /// How many of them are in flight, and what these are expected to cost.
    outstanding: (u32, Work),
    /// Requests in flight that `load` includes, or may include.
    included: VecDeque<InFlight>,
    /// Of all that are in flight from this VM the [`InFlight::least`], by class: no host can talk it away.
    here: Work,
    /// The most cores that the host ever said it uses.
    most_busy: u32,
    /// Requests that have ended since the load was true, or may have: when they ended and were sent.
    ended: VecDeque<(Duration, Duration)>,
    /// How many of those the load includes.
    gone: u32,
    /// Requests of this VM without an answer so far.
    pub(crate) in_flight: u32,
    /// The same of the proxy's other VMs.
    pub(crate) peers_in_flight: u32,
    /// The host did not take a request; others come first until then.
    pub(crate) suspect_until: Duration,
    pub(crate) health: Health,
    /// The newest that the host gave to this VM.
    pub(crate) credits: Option<Credits>,
    /// Thousandths of a core by the table; 0 where unknown.
    capacity_millicores: u32,
    /// By the table it is as fast as the others, stays, and takes no crossing to another zone.
    is_usual: bool,
    /// Of a host that serves prompts.
    unread: Unread,
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) at: Duration,
    pub(crate) class: u8,
    /// Core time that it is expected to need.
    pub(crate) work: Duration,
    /// Core time that requests need on average: what this one costs by its key is what hosts say of it.
    pub(crate) least: Duration,
    /// It is in flight, and what it is expected to cost counts.
    pub(crate) counts: bool,
}

impl HostFeedback {
    /// What decisions compare of it.
    fn standing(&self) -> Standing {
        let load = self.load.as_ref();
        let sent = self.assigned.len() as u32;
        Standing {
            observed: load.map_or(0, |load| nanos(load.observed)),
            suspect_until: nanos(self.suspect_until.max(self.health.avoided_until())),
            known: load.map_or(0, |load| load.in_progress.saturating_add(sent)),
            in_flight: self.here_and_peers(),
        }
    }

    /// Whether by the table it is as fast as the others, stays, and takes no crossing to another zone.
    pub(crate) fn is_usual(&self) -> bool {
        self.is_usual
    }

    /// Cores at nominal speed, parts of one too; none where unknown.
    pub(crate) fn cores(&self) -> Option<f64> {
        cores(self.capacity_millicores)
    }

    /// Requests of the proxy without an answer so far.
    pub(crate) fn here_and_peers(&self) -> u32 {
        self.in_flight.saturating_add(self.peers_in_flight)
    }

    /// How many requests are in flight that the load cannot include, and what they are expected to cost.
    pub(crate) fn outstanding(&self) -> (u32, &Work) {
        (self.outstanding.0, &self.outstanding.1)
    }

    /// How many requests have ended that the load includes.
    pub(crate) fn gone(&self) -> u32 {
        self.gone
    }

    /// What is in flight from this VM, by class: each request as if it needed what requests do on average.
    pub(crate) fn here(&self) -> &Work {
        &self.here
    }

    /// Whether anything is expected of a request in flight.
    pub(crate) fn expects(&self) -> bool {
        self.outstanding.0 > 0 || !self.included.is_empty()
    }

    /// What was expected of the request that was sent then counts no longer.
    pub(crate) fn settle(&mut self, sent: Duration) {
        let after = match self.assigned.back() {
            // Most are the newest at their host.
            Some(newest) if newest.at <= sent => self.assigned.len(),
            _ => self.assigned.partition_point(|other| other.at <= sent),
        };
        // Of those of one moment the newest first: the older have mostly ended.
        let same = self.assigned.range_mut(..after).rev();
        let mut same = same.take_while(|other| other.at == sent);
        if let Some(request) = same.find(|other| other.counts) {
            request.counts = false;
            self.outstanding.0 = self.outstanding.0.saturating_sub(1);
            self.outstanding.1.take(request.class, request.work);
            self.here.take(request.class, request.least);
        } else if let Some(place) = self.included.iter().position(|other| other.at == sent)
            && let Some(request) = self.included.remove(place)
        {
            self.here.take(request.class, request.least);
        }
    }

    /// The request that was sent then has ended.
    pub(crate) fn ended(&mut self, sent: Duration, now: Duration) {
        self.settle(sent);
        let Some(observed) = self.load.as_ref().map(|load| load.observed) else {
            // A host that tells nothing is known by what is in flight alone.
            let over = self.assigned.iter().take_while(|sent| !sent.counts).count();
            self.assigned.drain(..over);
            return;
        };
        if self.ended.len() == MAX_ASSIGNED_SINCE {
            self.ended.pop_front();
        }
        self.ended.push_back((now, sent));
        if sent <= observed && observed < now {
            self.gone = self.gone.saturating_add(1);
        }
    }

    /// A prompt was sent that takes this long to be read.
    pub(crate) fn sends_prompt(&mut self, work: Duration, now: Duration) {
        self.unread.sent(work, self.here.total(), now);
    }

    /// How long until the host has read the prompts that are there.
    pub(crate) fn unread(&self, mean: Duration, clock: Clock, now: Duration) -> Duration {
        let told = self
            .load
            .as_ref()
            .filter(|load| clock.believes(load.observed));
        let told = told.map(|load| (load, self.outstanding.1.total()));
        self.unread.ahead(told, mean, now)
    }

    pub(crate) fn assigned(&mut self, sent: InFlight) {
        self.in_flight = self.in_flight.saturating_add(1);
        self.health.assigned(sent.at);
        if sent.counts {
            self.here.add(sent.class, sent.least);
        }
        if self
            .load
            .as_ref()
            .is_some_and(|load| sent.at <= load.observed)
        {
            self.include(sent);
            return;
        }
        let most = match self.load {
            None if !sent.counts => MAX_ASSIGNED_UNTOLD,
            _ => MAX_ASSIGNED_SINCE,
        };
        if self.assigned.len() >= most {
            self.forget_sent(1);
        }
        if sent.counts {
            self.outstanding.0 = self.outstanding.0.saturating_add(1);
            self.outstanding.1.add(sent.class, sent.work);
        }
        self.assigned.push_back(sent);
    }

    /// The oldest of what was sent are no longer news beside the load; what of them is in flight is still known.
    fn forget_sent(&mut self, count: usize) {
        for _ in 0..count {
            let Some(sent) = self.assigned.pop_front() else {
                return;
            };
            if sent.counts {
                self.outstanding.0 = self.outstanding.0.saturating_sub(1);
                self.outstanding.1.take(sent.class, sent.work);
            }
            self.include(sent);
        }
    }

    /// The load includes this request, as far as it is in flight.
    fn include(&mut self, sent: InFlight) {
        if !sent.counts {
            return;
        }
        if self.included.len() == MAX_ASSIGNED_SINCE
            && let Some(oldest) = self.included.pop_front()
        {
            self.here.take(oldest.class, oldest.least);
        }
        self.included.push_back(sent);
    }

    /// Takes the load if it is newer; says whether it was.
    pub(crate) fn observe(&mut self, load: &Load) -> bool {
        if self
            .load
            .as_ref()
            .is_some_and(|known| known.observed >= load.observed)
        {
            return false;
        }
        let covered = self
            .assigned
            .partition_point(|sent| sent.at <= load.observed);
        self.forget_sent(covered);
        let over = self
            .ended
            .partition_point(|(ended, _)| *ended <= load.observed);
        self.ended.drain(..over);
        let included = |(_, sent): &&(Duration, Duration)| *sent <= load.observed;
        self.gone = self.ended.iter().filter(included).count() as u32;
        self.most_busy = self.most_busy.max(load.busy());
        self.load = Some(load.clone());
        true
    }
}

/// Feedback of the hosts in the table, by table index, and of those that left it with work in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Feedback {
    rows: Vec<HostFeedback>,
    /// Of each row, what decisions compare; brought up to date with it.
    standings: Vec<Standing>,
    /// The same for the request that comes next, where choices go by that; else empty.
    outlooks: Vec<Outlook>,
    departed: HashMap<HostId, HostFeedback>,
    /// Cores that half of the hosts have said they use, at some time.
    usual_cores: u32,
    /// How requests have ended at all hosts.
    endings: AllEndings,
    pub(crate) failed_keys: FailedKeys,
    pub(crate) assumed: AssumedKeys,
    /// Of the newest prompts that have keys: how many, and how much of one its host lacked on average.
    usual_lack: (f64, f64),
}

impl Feedback {
    /// Lays the rows out for a new table: `old` and `new` are the identities by index.
    pub(crate) fn remap(&mut self, old: &[HostId], new: &[HostId]) {
        let rows = std::mem::take(&mut self.rows);
        let mut known: HashMap<HostId, HostFeedback> = old.iter().copied().zip(rows).collect();
        self.rows = new
            .iter()
            .map(|host| {
                known
                    .remove(host)
                    .or_else(|| self.departed.remove(host))
                    .unwrap_or_default()
            })
            .collect();
        self.standings = self.rows.iter().map(HostFeedback::standing).collect();
        self.outlooks.clear();
        known.retain(|_, feedback| feedback.in_flight > 0);
        let room = MAX_DEPARTED.saturating_sub(self.departed.len());
        self.departed.extend(known.into_iter().take(room));
    }

    /// Takes what the table says of the host itself, and whether that makes it one like most.
    pub(crate) fn set_host(&mut self, index: u32, host: &Host, is_usual: bool) {
        let told = (host.capacity_millicores, is_usual);
        let known = self
            .row(index)
            .map(|row| (row.capacity_millicores, row.is_usual));
        if known != Some(told) {
            self.change(index, |row| {
                (row.capacity_millicores, row.is_usual) = told;
            });
        }
    }

    /// Keeps outlooks from now on.
    pub(crate) fn look_ahead(&mut self) {
        let usual_cores = self.usual_cores;
        if self.rows.iter().any(|row| row.capacity_millicores == 0) {
            self.learn_usual_cores();
        }
        if self.usual_cores != usual_cores || self.outlooks.len() != self.rows.len() {
            let outlook = |row| Outlook::of(row, self.usual_cores);
            self.outlooks = self.rows.iter().map(outlook).collect();
        }
    }

    pub(crate) fn keep_no_outlooks(&mut self) {
        self.outlooks.clear();
    }

    /// Learns anew how many cores hosts use: so many as at least half of them said at some time. None of them
    /// moves that far alone.
    fn learn_usual_cores(&mut self) {
        let mut busy: Vec<u32> = self.rows.iter().map(|row| row.most_busy).collect();
        let middle = busy.len().saturating_sub(1) / 2;
        self.usual_cores = match busy.is_empty() {
            true => 0,
            false => *busy.select_nth_unstable(middle).1,
        };
    }

    pub(crate) fn row(&self, index: u32) -> Option<&HostFeedback> {
        self.rows.get(index as usize)
    }

    pub(crate) fn standing(&self, index: u32) -> Option<&Standing> {
        self.standings.get(index as usize)
    }

    /// How full the host is, where it is a usual one ([`Outlook::usual`]) that others do not come before.
    #[inline]
    pub(crate) fn usual(&self, index: u32, clock: Clock) -> Option<Score> {
        let standing = self.standing(index)?;
        let is_known = standing.is_believed(clock) && !standing.is_suspect(clock);
        let outlook = self.outlooks.get(index as usize)?;
        outlook.usual.filter(|_| is_known)
    }

    /// What is ahead of a request at the host; none where no outlooks are kept.
    pub(crate) fn outlook(&self, index: u32, clock: Clock) -> Option<Outlook> {
        let standing = self.standing(index)?;
        match standing.is_believed(clock) {
            true => self.outlooks.get(index as usize).copied(),
            false => self.row(index).map(Outlook::untold),
        }
    }

    /// Changes a row; none where there is no such row.
    pub(crate) fn change<T>(
        &mut self,
        index: u32,
        change: impl FnOnce(&mut HostFeedback) -> T,
    ) -> Option<T> {
        let result = self.change_standing(index, change)?;
        if let Some(outlook) = self.outlooks.get_mut(index as usize)
            && let Some(row) = self.rows.get(index as usize)
        {
            *outlook = Outlook::of(row, self.usual_cores);
        }
        Some(result)
    }

    /// The same, where what is ahead at the host stays as it is.
    #[inline]
    fn change_standing<T>(
        &mut self,
        index: u32,
        change: impl FnOnce(&mut HostFeedback) -> T,
    ) -> Option<T> {
        let row = self.rows.get_mut(index as usize)?;
        let result = change(row);
        if let Some(standing) = self.standings.get_mut(index as usize) {
            *standing = row.standing();
        }
        Some(result)
    }

    /// How much of a prompt its host lacks on average, at least one part; before there was one, as much as here.
    pub(crate) fn usual_lack(&self, size: usize) -> f64 {
        match self.usual_lack {
            (0.0, _) => size.max(1) as f64,
            (_, mean) => mean.max(1.0),
        }
    }

    /// A prompt was sent to a host that lacks so much of it.
    pub(crate) fn sent_lacking(&mut self, lack: usize) {
        let (count, mean) = &mut self.usual_lack;
        *count = (*count + 1.0).min(NEWEST_KEYS);
        *mean += (lack as f64 - *mean) / *count;
    }

    /// How many requests have ended at all hosts; a counter that wraps.
    pub(crate) fn ended(&self) -> u32 {
        self.endings.ended()
    }

    /// The host is another one than before, or so it may be: nothing is held against it.
    pub(crate) fn recovered(&mut self, index: u32) {
        if self.row(index).is_some_and(|row| row.health.is_failing()) {
            self.change(index, |row| row.health = Health::default());
        }
    }

    /// A request that was sent to the host then has ended well.
    pub(crate) fn did_well(&mut self, index: u32, sent: Duration) {
        self.endings.count(false);
        self.change_standing(index, |row| {
            row.suspect_until = Duration::ZERO;
            row.health.did_well(sent);
        });
    }

    /// A request for the keys that was sent to the host then has failed: whether it is the first one of its key; none
    /// where that is not held against the host.
    pub(crate) fn blamed(
        &mut self,
        (index, host): (u32, HostId),
        keys: &Keys,
        sent: Duration,
        now: Duration,
    ) -> Option<bool> {
        let on_trial = self.row(index).is_some_and(|row| row.health.is_trial(sent));
        match self.failed_keys.failed(keys, host, now) {
            Blame::Host { is_first } => Some(is_first),
            Blame::HostOnTrial if on_trial => Some(false),
            Blame::HostOnTrial | Blame::Nobody => None,
        }
    }

    /// A request that was sent to the host then has failed, the first of its key or not. The host comes after the
    /// others if it fails more than they do, and is said to; half of all hosts at most, rounded up, and never all.
    pub(crate) fn record_failure(
        &mut self,
        index: u32,
        sent: Duration,
        is_first: bool,
        now: Duration,
    ) -> bool {
        self.endings.count(true);
        let all = self.endings;
        let fails = self.change(index, |row| {
            row.health.record_failure(sent, all, is_first, now)
        });
        if fails != Some(true) {
            return false;
        }
        let hosts = self.rows.len();
        let most = hosts.div_ceil(2).min(hosts.saturating_sub(1));
        let others = (0u32..).zip(&self.rows);
        let failing = others.filter(|(other, row)| *other != index && row.health.is_failing());
        let is_out = failing.count() < most;
        self.change(index, |row| match is_out {
            true => row.health.avoid(now),
            false => row.health.let_off(now),
        });
        is_out
    }

    /// Takes the load if it is newer; says whether it was.
    pub(crate) fn observe(&mut self, index: u32, load: &Load) -> bool {
        let known = self.row(index).and_then(|row| row.load.as_ref());
        let old = known.is_some_and(|known| known.observed >= load.observed);
        !old && self.change(index, |row| row.observe(load)) == Some(true)
    }

    /// Of no host is anything known to be in flight from the proxy's other VMs.
    pub(crate) fn forget_peers(&mut self) {
        for index in 0..self.rows.len() as u32 {
            if self.row(index).is_some_and(|row| row.peers_in_flight > 0) {
                self.change(index, |row| row.peers_in_flight = 0);
            }
        }
    }

    pub(crate) fn departed(&self, host: HostId) -> Option<&HostFeedback> {
        self.departed.get(&host)
    }

    /// One request of a host that is not in the table has ended.
    pub(crate) fn departed_finished(
        &mut self,
        host: HostId,
        finished: impl FnOnce(&mut HostFeedback),
    ) {
        if let Some(feedback) = self.departed.get_mut(&host) {
            finished(feedback);
            if feedback.in_flight == 0 {
                self.departed.remove(&host);
            }
        }
    }
}

/// A key that was sent to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The key.
    pub key: KeyHash,
    /// The host.
    pub host: HostId,
    /// When.
    pub at: Duration,
}

/// Keys assumed cached where they were sent, until that is too long ago: the lifetime, less up to an eighth of it where a
/// key was sent there before.
#[derive(Clone, Debug, Default)]
pub(crate) struct AssumedKeys {
    /// By key, the newest assignments; the oldest is overwritten.
    hosts: HashMap<KeyHash, [Option<Assignment>; MAX_ASSUMED_HOSTS], Salted>,
    /// Every insertion, oldest first, so that forgetting is cheap; whether it was sent from here.
    order: VecDeque<(Assignment, bool)>,
}

impl AssumedKeys {
    /// Remembers the assignment, unless what is known of the key is newer: peers tell theirs late and often.
    /// `own` tells what was sent from here from what a peer reported.
    pub(crate) fn insert(&mut self, assignment: Assignment, own: bool, lifetime: Duration) {
        while let Some((oldest, _)) = self.order.front() {
            let expired = assignment.at.saturating_sub(oldest.at) > lifetime;
            if !expired && self.order.len() < MAX_ASSUMED_KEYS {
                break;
            }
            if let Some((oldest, _)) = self.order.pop_front() {
                self.forget(oldest);
            }
        }
        let hosts = self.hosts.entry(assignment.key).or_default();
        let same = |slot: &Option<Assignment>| slot.is_some_and(|old| old.host == assignment.host);
        let slot = match hosts.iter().position(same) {
            Some(place) => hosts.get_mut(place),
            None => hosts.iter_mut().min_by_key(|slot| slot.map(|old| old.at)),
        };
        let is_news = |old: Assignment| match old.host == assignment.host {
            true => assignment.at.saturating_sub(old.at) > lifetime / SOON_AGAIN,
            false => old.at < assignment.at,
        };
        if let Some(slot) = slot
            && slot.is_none_or(is_news)
        {
            *slot = Some(assignment);
            self.order.push_back((assignment, own));
        }
    }

    /// Drops what the queue entry put in, unless a newer entry has taken its place.
    fn forget(&mut self, entry: Assignment) {
        let Some(hosts) = self.hosts.get_mut(&entry.key) else {
            return;
        };
        for slot in hosts.iter_mut().filter(|slot| **slot == Some(entry)) {
            *slot = None;
        }
        if hosts.iter().all(Option::is_none) {
            self.hosts.remove(&entry.key);
        }
    }

    /// Hosts that the key was sent to at most `lifetime` ago.
    pub(crate) fn hosts(
        &self,
        key: KeyHash,
        now: Duration,
        lifetime: Duration,
    ) -> impl Iterator<Item = HostId> + '_ {
        let recent = move |assignment: &&Assignment| now.saturating_sub(assignment.at) <= lifetime;
        let hosts = self
            .hosts
            .get(&key)
            .map(|hosts| hosts.as_slice())
            .unwrap_or_default();
        hosts
            .iter()
            .flatten()
            .filter(recent)
            .map(|assignment| assignment.host)
    }

    /// The newest assignments made here, newest first, of a key and host only the newest.
    pub(crate) fn recent(&self) -> impl Iterator<Item = Assignment> + '_ {
        let counts = |assignment: &Assignment| {
            let hosts = self.hosts.get(&assignment.key);
            hosts.is_some_and(|hosts| hosts.contains(&Some(*assignment)))
        };
        let own = self.order.iter().rev().filter(|(_, own)| *own);
        own.map(|(assignment, _)| *assignment).filter(counts)
    }

    #[cfg(test)]
    fn keys(&self) -> usize {
        self.hosts.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::standing::Clock;
    use crate::{HostState, Level};

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn load(observed: u64, in_progress: u32) -> Load {
        Load {
            observed: seconds(observed),
            in_progress,
            ..Load::default()
        }
    }

    /// A host of so many cores, in three speeds.
    fn told(number: u32) -> Host {
        Host {
            address: "10.0.0.1:80".into(),
            state: HostState::Up,
            load: None,
            level: Level::ALL,
            capacity_millicores: number * 1000,
            speed_permille: number % 3 * 500,
            preempt_at: None,
            zone: 0,
        }
    }

    fn sent(second: u64) -> InFlight {
        InFlight {
            at: seconds(second),
            class: 3,
            work: seconds(1),
            least: seconds(1),
            counts: true,
        }
    }

    fn in_progress(host: &HostFeedback, now: u64) -> u32 {
        let clock = Clock::new(seconds(now), seconds(5));
        host.standing().in_progress(clock)
    }

    #[test]
    fn of_a_host_that_tells_nothing_few_are_kept_where_no_ends_are_awaited() {
        let mut host = HostFeedback::default();
        for second in 0..1000 {
            let counts = false;
            host.assigned(InFlight {
                counts,
                ..sent(second)
            });
            host.in_flight -= 1;
        }
        assert!(host.assigned.len() <= MAX_ASSIGNED_UNTOLD);
        host.observe(&load(998, 4));
        assert_eq!(in_progress(&host, 999), 5, "one was sent since");
    }

    #[test]
    fn what_was_sent_after_the_observation_is_added_to_it() {
        let mut host = HostFeedback::default();
        host.observe(&load(10, 4));
        host.assigned(sent(9));
        host.assigned(sent(11));
        host.assigned(sent(12));
        assert_eq!(in_progress(&host, 12), 6);
        assert!(host.observe(&load(12, 1)));
        assert_eq!(in_progress(&host, 12), 3, "three are in flight from here");
        assert!(
            !host.observe(&load(11, 9)),
            "an older observation is ignored"
        );
    }

    #[test]
    fn a_stale_load_counts_for_nothing_but_what_is_in_flight_does() {
        let mut host = HostFeedback::default();
        host.observe(&load(0, 50));
        host.assigned(sent(8));
        assert_eq!(in_progress(&host, 9), 1);
    }

    #[test]
    fn requests_in_flight_survive_a_host_leaving_and_coming_back() {
        let (a, b) = (HostId(1), HostId(2));
        let mut feedback = Feedback::default();
        feedback.remap(&[], &[a, b]);
        feedback.change(1, |row| row.assigned(sent(1))).unwrap();
        feedback.remap(&[a, b], &[a]);
        assert_eq!(feedback.departed(b).unwrap().in_flight, 1);
        feedback.remap(&[a], &[a, b]);
        assert_eq!(feedback.row(1).unwrap().in_flight, 1);
        feedback.remap(&[a, b], &[a]);
        feedback.departed_finished(b, |row| row.in_flight = 0);
        assert!(feedback.departed(b).is_none());
    }

    /// Each fails what the others do at that time, so that each would come last for itself.
    #[test]
    fn of_hosts_that_fail_one_after_the_other_half_come_last_and_never_all() {
        for hosts in 1..8u32 {
            let ids: Vec<_> = (0..hosts).map(|host| HostId(host.into())).collect();
            let mut feedback = Feedback::default();
            feedback.remap(&[], &ids);
            let now = seconds(10);
            for failing in 0..hosts {
                for _ in 0..100 {
                    (0..hosts).for_each(|host| feedback.did_well(host, now));
                }
                for _ in 0..50 {
                    feedback.record_failure(failing, now, true, now);
                }
            }
            let out = feedback.rows.iter().filter(|row| row.health.is_failing());
            let most = hosts.div_ceil(2).min(hosts - 1);
            assert_eq!(out.count() as u32, most, "of {hosts}");
        }
    }

    #[test]
    fn a_key_that_is_sent_again_and_again_leaves_room_for_others() {
        let (lifetime, rare) = (seconds(10), KeyHash(0));
        let mut assumed = AssumedKeys::default();
        let mut send = |key, at| {
            let host = HostId(1);
            assumed.insert(Assignment { key, host, at }, true, lifetime);
        };
        send(rare, seconds(1));
        for micros in 0..2 * MAX_ASSUMED_KEYS as u64 {
            send(KeyHash(1), seconds(1) + Duration::from_micros(micros));
        }
        for key in [rare, KeyHash(1)] {
            assert_eq!(
                assumed.hosts(key, seconds(2), lifetime).count(),
                1,
                "{key:?}"
            );
        }
        assert_eq!(assumed.order.len(), 2);
    }

    proptest! {
        #[test]
        fn outlooks_are_those_of_the_rows_whatever_happens(
            events in prop::collection::vec((0u32..3, 0u8..6, 0u32..40, 0u64..4), 0..60),
        ) {
            let ids: Vec<_> = (0..3).map(HostId).collect();
            let mut feedback = Feedback::default();
            feedback.remap(&[], &ids);
            feedback.look_ahead();
            let mut now = seconds(1);
            for (host, event, number, pause) in events {
                now += seconds(pause);
                match event {
                    0 => _ = feedback.change(host, |row| row.assigned(InFlight { at: now, ..sent(0) })),
                    1 => _ = feedback.change(host, |row| row.ended(now, now)),
                    2 => _ = feedback.observe(host, &load(now.as_secs(), number)),
                    3 => {
                        let told = told(number);
                        feedback.set_host(host, &told, told.is_usual());
                    }
                    4 => feedback.forget_peers(),
                    _ => _ = feedback.change(host, |row| row.peers_in_flight = number),
                }
                if event == 2 {
                    feedback.look_ahead();
                }
                for (row, outlook) in feedback.rows.iter().zip(&feedback.outlooks) {
                    let anew = Outlook::of(row, feedback.usual_cores);
                    prop_assert_eq!(format!("{outlook:?}"), format!("{anew:?}"));
                }
            }
        }

        #[test]
        fn assumed_keys_are_those_sent_within_the_lifetime_and_never_many(
            sent in prop::collection::vec((0u64..6, 0u64..8, 0u64..4), 0..200),
        ) {
            let lifetime = seconds(10);
            let mut assumed = AssumedKeys::default();
            let mut log: Vec<Assignment> = Vec::new();
            let mut now = seconds(0);
            for (key, host, pause) in sent {
                now += seconds(pause);
                let assignment = Assignment { key: KeyHash(key), host: HostId(host), at: now };
                assumed.insert(assignment, true, lifetime);
                log.push(assignment);
            }
            for key in (0..6).map(KeyHash) {
                let sent_within = |time: Duration| {
                    let sent = log.iter().filter(|old| old.key == key && now - old.at <= time);
                    sent.map(|old| old.host).collect::<BTreeSet<_>>()
                };
                let found: Vec<_> = assumed.hosts(key, now, lifetime).collect();
                let all = found.iter().copied().collect::<BTreeSet<_>>();
                prop_assert_eq!(all.len(), found.len(), "none twice");
                prop_assert!(all.is_subset(&sent_within(lifetime)));
                let surely = sent_within(lifetime - lifetime / SOON_AGAIN);
                prop_assert!(found.len() >= surely.len().min(MAX_ASSUMED_HOSTS));
                // Of more hosts one makes way that was put down first.
                if sent_within(now).len() <= MAX_ASSUMED_HOSTS {
                    prop_assert!(all.is_superset(&surely), "{all:?} {surely:?}");
                }
            }
            prop_assert!(assumed.keys() <= MAX_ASSUMED_KEYS && assumed.order.len() <= MAX_ASSUMED_KEYS);
        }
    }
}
