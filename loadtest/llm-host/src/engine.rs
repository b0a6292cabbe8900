// SPDX-License-Identifier: Apache-2.0
//! The model of a host: queue, prefill, decode.

mod running;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use weir_executor::{CacheChanges, RecentDelay};

use crate::load::Load;
use crate::prefix_cache::{Change, PrefixCache};
use crate::prompt::BYTES_PER_TOKEN;
use crate::rate::Rate;
use crate::sequence::{Refused, Sequence, SequenceId, Spent};
use crate::timing::Timing;
use running::Running;

/// What a host is.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Sequences in prefill and decode at most.
    pub slots: usize,
    /// Sequences in the queue at most.
    pub max_queued: usize,
    /// Blocks of the cache and of running sequences together.
    pub capacity_blocks: usize,
    /// Tokens of a block.
    pub block_tokens: usize,
    /// How long things take.
    pub timing: Timing,
    /// Changes of keys that are remembered.
    pub change_log: usize,
}

/// A host.
///
/// The rules, all of them:
/// - Sequences wait in one queue and leave it in the order in which they came.
/// - The first begins its prefill when no other sequence is in prefill, a slot is free, and the
///   blocks that it does not find cached, its answer's included, fit beside those of the sequences
///   that run.
/// - Prefill takes time for each token that was not found, or for one where another host has read the prompt; decode for each token of the answer,
///   however many sequences decode beside it.
/// - A prompt's full blocks can be found by others from the end of its prefill on. Those of answers
///   cannot.
#[derive(Debug)]
pub struct Engine {
    settings: Settings,
    cache: PrefixCache,
    last: u64,
    queue: VecDeque<Waiting>,
    running: BTreeMap<SequenceId, Running>,
    /// The one in prefill, and its end.
    prefill: Option<(Duration, SequenceId)>,
    /// Ends of decodes.
    decodes: BTreeSet<(Duration, SequenceId)>,
    delay: RecentDelay,
    answers: Rate,
    /// Prompts that have been read, until the caller advances, and those that it has been told of.
    read: Vec<(SequenceId, Spent)>,
    told: Vec<(SequenceId, Spent)>,
    ended: Vec<(SequenceId, Spent)>,
}

#[derive(Debug)]
struct Waiting {
    id: SequenceId,
    since: Duration,
    sequence: Sequence,
}

impl Engine {
    /// An idle host whose cache is empty. `epoch` tells its cache from an earlier one's.
    #[must_use]
    pub fn new(settings: Settings, epoch: u64) -> Self {
        Self {
            cache: PrefixCache::new(settings.capacity_blocks, settings.change_log, epoch),
            settings,
            last: 0,
            queue: VecDeque::new(),
            running: BTreeMap::new(),
            prefill: None,
            decodes: BTreeSet::new(),
            delay: RecentDelay::default(),
            answers: Rate::default(),
            read: Vec::new(),
            told: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Accepts a sequence.
    ///
    /// # Errors
    /// The queue is full, or the sequence is too long for this host.
    pub fn submit(&mut self, now: Duration, sequence: Sequence) -> Result<SequenceId, Refused> {
        self.catch_up(now);
        let (needed, capacity) = (self.blocks_of(&sequence), self.cache.capacity());
        if needed > capacity {
            return Err(Refused::TooLong { needed, capacity });
        }
        if self.queue.len() >= self.settings.max_queued {
            return Err(Refused::Full(self.queue.len()));
        }
        self.last += 1;
        let id = SequenceId(self.last);
        self.queue.push_back(Waiting {
            id,
            since: now,
            sequence,
        });
        self.begin(now);
        Ok(id)
    }

    /// Nobody waits for a sequence any more: it ends at once. Of a prompt that was not read to its
    /// end nothing is cached.
    pub fn cancel(&mut self, now: Duration, id: SequenceId) {
        self.catch_up(now);
        self.queue.retain(|waiting| waiting.id != id);
        if let Some(running) = self.running.remove(&id) {
            self.prefill.take_if(|(_, reading)| *reading == id);
            self.decodes.retain(|(_, writing)| *writing != id);
            running.leave(&mut self.cache);
        }
        self.begin(now);
    }

    /// The sequences that have ended up to `now` and were not told yet, in order.
    pub fn advance(&mut self, now: Duration) -> Vec<(SequenceId, Spent)> {
        self.catch_up(now);
        self.told = std::mem::take(&mut self.read);
        std::mem::take(&mut self.ended)
    }

    /// The sequences of which the last [`Engine::advance`] was the first after the end of their prefill, in order:
    /// their first token is there. One that was cancelled since its prefill may be among them.
    #[must_use]
    pub fn begun_to_write(&self) -> &[(SequenceId, Spent)] {
        &self.told
    }

    /// When something happens next.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        let prefill = self.prefill.map(|(at, _)| at);
        let decode = self.decodes.first().map(|(at, _)| *at);
        prefill.into_iter().chain(decode).min()
    }

    /// The load now.
    pub fn load(&mut self, now: Duration) -> Load {
        self.catch_up(now);
        let longest = self
            .queue
            .front()
            .map(|first| now.saturating_sub(first.since));
        Load {
            waiting: self.queue.len(),
            running: self.running.len(),
            kv_usage: self.cache.held() as f64 / self.cache.capacity().max(1) as f64,
            cached_blocks: self.cache.len(),
            evictions: self.cache.evictions(),
            queuing_delay: self.delay.mean(now).or(longest),
            answered_per_s: self.answers.per_second(now),
            utilisation: (self.queue.len() + self.running.len()) as f64
                / self.settings.slots.max(1) as f64,
        }
    }

    /// See [`PrefixCache::changes_since`].
    #[must_use]
    pub fn cache_changes(&self, version: u64, epoch: Option<u64>) -> CacheChanges {
        self.cache.changes_since(version, epoch)
    }

    /// See [`PrefixCache::note_changes`].
    pub fn note_changes(&mut self) {
        self.cache.note_changes();
    }

    /// See [`PrefixCache::take_changes`].
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.cache.take_changes()
    }

    /// Things happen at the instant the model says, however late the caller notices.
    fn catch_up(&mut self, now: Duration) {
        while let Some(at) = self.next_due()
            && at <= now
        {
            match self.prefill.take_if(|(end, _)| *end == at) {
                Some((_, id)) => self.read(at, id),
                None => self.written(at),
            }
            self.begin(at);
        }
    }

    /// Begins the prefill of the first in the queue, if it may.
    fn begin(&mut self, now: Duration) {
        if self.prefill.is_some() || self.running.len() >= self.settings.slots {
            return;
        }
        let Some(first) = self.queue.front() else {
            return;
        };
        let blocks = self.blocks_of(&first.sequence);
        let Some(begun) = Running::begin(&first.sequence, blocks, &mut self.cache) else {
            return;
        };
        let Some(first) = self.queue.pop_front() else {
            return;
        };
        let Settings {
            timing,
            block_tokens,
            ..
        } = &self.settings;
        let hit_tokens = (begun.hit_blocks * block_tokens) as u64;
        let sequence = first.sequence;
        let unread = match sequence.read_by {
            Some(_) => 0,
            None => sequence.prompt.tokens.saturating_sub(hit_tokens),
        };
        let spent = Spent {
            begun: now,
            wait: now.saturating_sub(first.since),
            prefill: timing.prefill(unread),
            decode: timing.decode(sequence.output_tokens),
            hit_blocks: begun.hit_blocks,
            hit_tokens,
        };
        self.delay.record(now, spent.wait);
        self.prefill = Some((now + spent.prefill, first.id));
        let running = begun.with(sequence, spent);
        self.running.insert(first.id, running);
    }

    /// The prompt has been read.
    fn read(&mut self, at: Duration, id: SequenceId) {
        if let Some(running) = self.running.get_mut(&id) {
            let block_bytes = self.settings.block_tokens * BYTES_PER_TOKEN;
            running.read(&mut self.cache, block_bytes);
            self.decodes.insert((at + running.spent().decode, id));
            self.read.push((id, *running.spent()));
        }
    }

    /// The answer that ends now has been written.
    fn written(&mut self, at: Duration) {
        let Some((_, id)) = self.decodes.pop_first().filter(|(end, _)| *end == at) else {
            return;
        };
        if let Some(running) = self.running.remove(&id) {
            self.answers.record(at);
            self.ended.push((id, *running.spent()));
            running.leave(&mut self.cache);
        }
    }

    /// Blocks that a sequence needs in all.
    fn blocks_of(&self, sequence: &Sequence) -> usize {
        let tokens = sequence
            .prompt
            .tokens
            .saturating_add(sequence.output_tokens);
        let blocks = tokens.div_ceil(self.settings.block_tokens.max(1) as u64);
        usize::try_from(blocks)
            .unwrap_or(usize::MAX)
            .max(sequence.prompt.blocks.len())
    }
}
