// SPDX-License-Identifier: Apache-2.0
//! By class, then by the submission of the job, whatever the kind (document 001, section 3.4).

use super::{Actors, Turns, first};
use crate::Kind;
use crate::id::Rank;

#[derive(Debug)]
pub(super) struct Priority;

impl Turns for Priority {
    fn next(&mut self, actors: &Actors) -> Option<Kind> {
        let mut best: Option<(Rank, Kind)> = None;
        for kind in Kind::ALL {
            if let Some(rank) = first(actors, kind)
                && best.is_none_or(|(least, _)| rank < least)
            {
                best = Some((rank, kind));
            }
        }
        best.map(|(_, kind)| kind)
    }
}
