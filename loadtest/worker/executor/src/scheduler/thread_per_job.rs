// SPDX-License-Identifier: Apache-2.0
//! Every joblet starts as soon as it can, whatever the number of cores: the operating system's
//! scheduler shares them, as with a thread for each actor in document 003 (PNCWF). There is no
//! order to decide, only the oldest first; [`super::Order::slots`] lifts the limit of cores.

use super::{Actors, Turns, first, ready};
use crate::Kind;

#[derive(Debug)]
pub(super) struct ThreadPerJob;

impl Turns for ThreadPerJob {
    fn next(&mut self, actors: &Actors) -> Option<Kind> {
        ready(actors).min_by_key(|kind| first(actors, *kind).map(|rank| rank.job))
    }
}
