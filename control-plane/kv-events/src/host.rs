// SPDX-License-Identifier: Apache-2.0
//! One host: its batches in order, and the blocks that it holds by them.

#[cfg(test)]
mod tests;

use crate::stream::{Stream, Verdict, Why};
use crate::tree::{Counts, Naming, Tree};
use crate::wire::{Batch, Event, Malformed};

/// Answers of an engine that contradict what it said before, one after another, before it is not asked again.
const MOST_REPLAYS: u32 = 3;
/// Answers that break off behind something new, before it is not asked again. An engine keeps 10,000 batches, and a
/// socket of ZeroMQ 1,000 messages.
const MOST_PARTS: u32 = 16;

/// What a host holds, and how far that was told.
#[derive(Debug)]
pub struct Host {
    stream: Stream,
    tree: Tree,
    /// A batch that came before others which are missing.
    waiting: Option<(u64, Vec<u8>)>,
    replays: u32,
    parts: u32,
    gaps: Gaps,
    /// Unix time of the newest batch, in seconds, until it is taken.
    newest: Option<f64>,
    malformed: Option<Malformed>,
}

/// How often batches were missing, or did not fit, by what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// The engine still had them.
    pub replayed: u64,
    /// Nobody has them: all was forgotten.
    pub lost: u64,
    /// They were another engine's, which is gone: all was forgotten.
    pub restarted: u64,
    /// A batch could not be read: all was forgotten.
    pub unreadable: u64,
}

impl Gaps {
    /// Each by its name.
    pub fn by_outcome(self) -> [(&'static str, u64); 4] {
        [
            ("replayed", self.replayed),
            (Why::Lost.as_str(), self.lost),
            (Why::Restarted.as_str(), self.restarted),
            ("unreadable", self.unreadable),
        ]
    }
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Go on.
    Go,
    /// Ask the engine for its batches from [`Host::ask`] on; where that is not possible, say so by [`Host::no_replay`].
    Replay,
    /// Leave the replay: the engine is not asked again, and what else it answers is of no use.
    Leave,
}

impl Host {
    /// A host that has not been heard of.
    pub fn new(naming: Naming, max_blocks: usize) -> Self {
        Self {
            stream: Stream::default(),
            tree: Tree::new(naming, max_blocks),
            waiting: None,
            replays: 0,
            parts: 0,
            gaps: Gaps::default(),
            newest: None,
            malformed: None,
        }
    }

    /// Its blocks.
    pub fn tree(&mut self) -> &mut Tree {
        &mut self.tree
    }

    /// Blocks that are known.
    pub fn blocks(&self) -> usize {
        self.tree.blocks()
    }

    /// What happened so far.
    pub fn counts(&self) -> (Counts, Gaps) {
        (self.tree.counts(), self.gaps)
    }

    /// When the engine made the newest batch that was read since this was asked last: Unix time in seconds.
    pub fn take_newest(&mut self) -> Option<f64> {
        self.newest.take()
    }

    /// Why a batch could not be read, once.
    pub fn take_malformed(&mut self) -> Option<Malformed> {
        self.malformed.take()
    }

    /// A connection begins, to the same engine or to another one.
    pub fn connected(&mut self) -> Next {
        self.stream.connected();
        self.waiting = None;
        self.begin_to_ask()
    }

    /// Nothing has come for a while: whether the engine has said something since that was lost is to be looked at.
    pub fn check(&mut self) -> Next {
        self.begin_to_ask()
    }

    /// A replay begins: from which batch on.
    pub fn ask(&mut self) -> u64 {
        self.replays += 1;
        self.stream.ask()
    }

    /// A batch of the replay.
    pub fn replayed(&mut self, number: u64, payload: &[u8]) -> Next {
        match self.stream.replayed(number, payload) {
            Verdict::Missing => self.ask_for_more(),
            verdict => self.follow(verdict, payload),
        }
    }

    /// The replay broke off: it is worth another question where it has brought something new, else it is as if the
    /// engine could not be asked.
    pub fn replay_broke(&mut self) -> Next {
        match self.stream.has_new() {
            true => self.ask_for_more(),
            false => self.leave(),
        }
    }

    /// The replay is over.
    pub fn replay_ended(&mut self) -> Next {
        let has_new = self.stream.has_new();
        let next = match self.stream.replay_ended() {
            Verdict::Again(why) => self.again(why),
            _ => {
                self.begin_to_ask();
                Next::Go
            }
        };
        if next == Next::Go {
            let waiting = self.waiting.as_ref();
            if has_new && waiting.is_some_and(|(number, _)| self.stream.lacks_some_before(*number))
            {
                // Its end may have been lost on the way.
                return self.ask_for_more();
            }
            self.settle();
        }
        next
    }

    /// The engine cannot be asked for what is missing.
    pub fn no_replay(&mut self) {
        self.stream.no_replay();
        self.settle();
    }

    /// A batch that the engine has just made.
    pub fn live(&mut self, number: u64, payload: &[u8]) -> Next {
        let verdict = self.stream.live(number, payload);
        let next = self.follow(verdict, payload);
        if next == Next::Replay {
            self.waiting = Some((number, payload.to_vec()));
        }
        next
    }

    fn settle(&mut self) {
        let Some((number, payload)) = self.waiting.take() else {
            return;
        };
        let verdict = self.stream.settle(number, &payload);
        if matches!(verdict, Verdict::Take | Verdict::Known) {
            self.gaps.replayed += 1;
        }
        self.follow(verdict, &payload);
    }

    fn follow(&mut self, verdict: Verdict, payload: &[u8]) -> Next {
        match verdict {
            Verdict::Take => self.apply(payload),
            Verdict::Known => {}
            Verdict::Missing => return self.begin_to_ask(),
            Verdict::Forget(why) => {
                self.lose(why);
                self.apply(payload);
            }
            Verdict::Again(why) => return self.again(why),
        }
        Next::Go
    }

    fn again(&mut self, why: Why) -> Next {
        self.lose(why);
        match self.replays < MOST_REPLAYS {
            true => Next::Replay,
            false => self.leave(),
        }
    }

    /// What is asked from here on is not held against what was answered before.
    fn begin_to_ask(&mut self) -> Next {
        (self.replays, self.parts) = (0, 0);
        Next::Replay
    }

    fn ask_for_more(&mut self) -> Next {
        (self.replays, self.parts) = (0, self.parts + 1);
        match self.parts < MOST_PARTS {
            true => Next::Replay,
            false => self.leave(),
        }
    }

    fn leave(&mut self) -> Next {
        self.no_replay();
        Next::Leave
    }

    fn lose(&mut self, why: Why) {
        self.tree.forget();
        match why {
            Why::Restarted => self.gaps.restarted += 1,
            Why::Lost => self.gaps.lost += 1,
        }
    }

    fn apply(&mut self, payload: &[u8]) {
        if let Err(malformed) = self.try_apply(payload) {
            // What it said is not known, so nothing that was known is sure.
            self.tree.forget();
            self.gaps.unreadable += 1;
            self.malformed = Some(malformed);
        }
    }

    fn try_apply(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        let mut batch = Batch::read(payload)?;
        while let Some(event) = batch.next_event()? {
            match event {
                Event::Stored(stored) => self.tree.store(stored),
                Event::Removed(removed) => self.tree.remove(removed),
                Event::Cleared => self.tree.clear(),
                Event::Unknown => self.tree.pass_over(),
            }
        }
        self.newest = Some(batch.at);
        Ok(())
    }
}
