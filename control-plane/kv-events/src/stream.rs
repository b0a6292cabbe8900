// SPDX-License-Identifier: Apache-2.0
//! Whether batches come in order and none is missing.
//!
//! ```text
//!  connected ─ask from the last one again─> replay ─is it the same one?─> live ... live ─a gap─> replay
//!                                             │ no, or it is gone                                  │
//!                                             └──────────── forget, and ask for all ──────────────┘
//! ```
//! An engine counts its batches from 0 when it starts, and keeps the last of them. A connection that comes back may
//! be to another engine than before, one that has counted further than the old one. So the last batch that was taken is asked
//! for again, and has to be the same.

use xxhash_rust::xxh64::xxh64;

/// What is known of a host's batches.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// The last batch that was taken, and the hash of what was in it.
    last: Option<(u64, u64)>,
    /// The last one that came live on this connection.
    live: Option<u64>,
    /// The engine was asked on this connection for what it has kept.
    is_checked: bool,
    replay: Option<Replay>,
    /// Nothing has been taken yet, and this one may be the first.
    may_begin_anywhere: bool,
}

#[derive(Clone, Copy, Debug)]
struct Replay {
    /// The last one has come again, and is the same.
    is_same: bool,
    /// A batch has come that was not known.
    has_new: bool,
}

/// What is to be done with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Apply it.
    Take,
    /// It was applied before.
    Known,
    /// Batches before it are missing: ask for them.
    Missing,
    /// What was taken before is not of this engine, or batches are lost: forget all, then apply this one.
    Forget(Why),
    /// The same, but ask for all that the engine has kept and apply that.
    Again(Why),
}

/// Why what was known of a host does not count any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// The engine has been started anew.
    Restarted,
    /// Batches are missing for good.
    Lost,
}

impl Why {
    /// Its name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Restarted => "restarted",
            Self::Lost => "lost",
        }
    }
}

impl Stream {
    /// A connection begins. What came live before did not come on this one.
    pub fn connected(&mut self) {
        self.live = None;
        self.is_checked = false;
        self.replay = None;
    }

    /// A replay begins; the number from which on batches are to be asked for.
    pub fn ask(&mut self) -> u64 {
        let is_same = self.last.is_none();
        self.replay = Some(Replay {
            is_same,
            has_new: false,
        });
        self.last.map_or(0, |(last, _)| last)
    }

    /// Whether the replay that is under way has brought something new.
    pub fn has_new(&self) -> bool {
        self.replay.is_some_and(|replay| replay.has_new)
    }

    /// A batch of the replay. [`Verdict::Missing`] where some before it did not come, but others did: these are
    /// there no more only if they do not come the next time either.
    pub fn replayed(&mut self, number: u64, payload: &[u8]) -> Verdict {
        let is_same = self.replay.is_some_and(|replay| replay.is_same);
        let Some((last, print)) = self.last else {
            // The first that the engine has kept.
            self.note_new();
            return self.take(number, payload);
        };
        if !is_same {
            let verdict = match number == last {
                true if print == hash(payload) => Verdict::Known,
                true => Verdict::Again(Why::Restarted),
                false => Verdict::Again(Why::Lost),
            };
            match verdict {
                Verdict::Known => {
                    self.replay = Some(Replay {
                        is_same: true,
                        has_new: false,
                    });
                }
                _ => self.forget(),
            }
            return verdict;
        }
        match number {
            _ if number <= last => Verdict::Known,
            _ if number == last.saturating_add(1) => {
                self.note_new();
                self.take(number, payload)
            }
            _ if self.has_new() => Verdict::Missing,
            _ => {
                self.note_new();
                self.forget_and_take(Why::Lost, number, payload)
            }
        }
    }

    /// The replay is over. [`Verdict::Again`] where the engine does not have what it said before; else
    /// [`Verdict::Known`].
    pub fn replay_ended(&mut self) -> Verdict {
        let is_same = self.replay.take().is_some_and(|replay| replay.is_same);
        if !is_same {
            self.forget();
            return Verdict::Again(Why::Restarted);
        }
        self.is_checked = true;
        self.may_begin_anywhere = false;
        Verdict::Known
    }

    /// There is nobody to ask, or no answer: what comes next has to fit, or all before it is lost.
    pub fn no_replay(&mut self) {
        self.replay = None;
        self.may_begin_anywhere = true;
    }

    /// A batch that comes live.
    pub fn live(&mut self, number: u64, payload: &[u8]) -> Verdict {
        let before = self.live.replace(number);
        if before.is_some_and(|before| number <= before) {
            // On one connection numbers only grow, unless the engine has begun again behind something in between.
            return match self.may_begin_anywhere {
                true => self.forget_and_take(Why::Restarted, number, payload),
                false => {
                    self.forget();
                    Verdict::Again(Why::Restarted)
                }
            };
        }
        let next = match self.last {
            Some((last, _)) => last.saturating_add(1),
            // It has kept nothing, so it has not said anything yet.
            None if self.is_checked => 0,
            None if self.may_begin_anywhere => number,
            None => return Verdict::Missing,
        };
        match number {
            _ if number == next => self.take(number, payload),
            _ if number < next && self.is_checked => Verdict::Known,
            _ if !self.may_begin_anywhere => Verdict::Missing,
            _ if number < next => self.forget_and_take(Why::Restarted, number, payload),
            _ => self.forget_and_take(Why::Lost, number, payload),
        }
    }

    /// The batch that came live before the engine was asked for what is missing, now that it has answered or has not.
    pub fn settle(&mut self, number: u64, payload: &[u8]) -> Verdict {
        match self.last {
            Some((last, _)) if number <= last && self.is_checked => Verdict::Known,
            Some((last, _)) if number == last.saturating_add(1) => self.take(number, payload),
            Some((last, _)) if number <= last => {
                self.forget_and_take(Why::Restarted, number, payload)
            }
            Some(_) => self.forget_and_take(Why::Lost, number, payload),
            None => self.take(number, payload),
        }
    }

    /// Whether a batch with this number does not follow what was taken.
    pub fn lacks_some_before(&self, number: u64) -> bool {
        let last = self.last.map(|(last, _)| last);
        last.is_some_and(|last| number > last.saturating_add(1))
    }

    fn note_new(&mut self) {
        if let Some(replay) = &mut self.replay {
            replay.has_new = true;
        }
    }

    fn forget(&mut self) {
        self.last = None;
        self.replay = None;
        self.is_checked = false;
    }

    fn forget_and_take(&mut self, why: Why, number: u64, payload: &[u8]) -> Verdict {
        self.take(number, payload);
        Verdict::Forget(why)
    }

    fn take(&mut self, number: u64, payload: &[u8]) -> Verdict {
        self.last = Some((number, hash(payload)));
        Verdict::Take
    }
}

fn hash(payload: &[u8]) -> u64 {
    xxh64(payload, 0)
}
