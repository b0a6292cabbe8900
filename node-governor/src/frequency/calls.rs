// SPDX-License-Identifier: Apache-2.0
//! What is known of a hot function's calls: how much work they are, and how much of it those that run have done.

mod progress;
pub(super) mod work;

pub(super) use progress::{Call, Progress};
pub(super) use work::{Left, Works};

use super::{Khz, Wrong};
use crate::node::{Node, NodeCore, Range};
use crate::sensed::Sensed;

/// Brings the cores' calls up to now, and tells of each that has ended which function it was of and how much work.
pub(super) fn follow(
    cores: &mut [Progress],
    sensed: &Sensed,
    speed: &Speed,
    mut ended: impl FnMut(usize, f64),
) {
    for finished in &sensed.finished {
        if let Some(core) = cores.get_mut(finished.core) {
            let took = finished.took.as_secs_f64();
            ended(
                finished.function,
                core.ended(finished.function, took, speed),
            );
        }
    }
    for (core, seen) in cores.iter_mut().zip(&sensed.cores) {
        core.advance(sensed.now, seen, speed);
    }
}

/// What a policy is told of calls: the share of a call that no frequency makes faster, and the quantile of their work.
pub(super) fn check(memory: f64, quantile: f64) -> Result<(), Wrong> {
    if !(0.0..1.0).contains(&memory) {
        return Err(Wrong::new("memory", "must be from 0 to less than 1"));
    }
    if !(0.5..1.0).contains(&quantile) {
        return Err(Wrong::new("quantile", "must be from 0.5 to less than 1"));
    }
    Ok(())
}

/// How fast work is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    /// Highest frequency of the node, at which a second's work takes a second.
    pub(super) fastest: Khz,
    /// Share of that second that is the same at every frequency.
    pub(super) memory: f64,
}

impl Speed {
    /// Work a second.
    pub(super) fn at(&self, khz: Khz) -> f64 {
        let slower = f64::from(self.fastest.0) / f64::from(khz.0.max(1));
        1.0 / (self.memory + (1.0 - self.memory) * slower)
    }

    /// Of a node, with the range of its fastest core: work is counted as that core does it.
    pub(super) fn of(node: &Node, memory: f64) -> (Self, Option<Range>) {
        let highest = |core: &NodeCore| core.range.max;
        let fastest = node.cores.iter().map(highest).max().unwrap_or_default();
        let mut ranges = node.cores.iter().map(|core| &core.range);
        let range = ranges.find(|range| range.max == fastest).cloned();
        (Self { fastest, memory }, range)
    }

    /// The lowest frequency at which so much work is done in so many seconds; the highest where none is.
    pub(super) fn needed(&self, work: f64, seconds: f64) -> Khz {
        let scaled = (1.0 - self.memory) * f64::from(self.fastest.0) * work;
        let khz = scaled / (seconds - self.memory * work);
        // Not a number, where there is nothing to do and no time.
        if khz >= 0.0 && khz < f64::from(self.fastest.0) {
            Khz(khz.ceil() as u32)
        } else {
            self.fastest
        }
    }
}
