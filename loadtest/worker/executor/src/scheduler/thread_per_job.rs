// SPDX-License-Identifier: Apache-2.0
//! Every joblet starts as soon as it can, whatever the number of cores: the operating system's
//! scheduler shares them, as with a thread for each actor in document 003 (PNCWF). There is no
//! order to decide, only the oldest first; [`super::Order::slots`] lifts the limit of cores.

use super::{Queue, Turns, first, ready};

#[derive(Debug)]
pub(super) struct ThreadPerJob;

impl Turns for ThreadPerJob {
    fn next(&mut self, actors: &[Queue]) -> Option<usize> {
        ready(actors).min_by_key(|actor| first(actors, *actor).map(|rank| rank.job))
    }
}
