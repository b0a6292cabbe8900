// SPDX-License-Identifier: Apache-2.0
//! By class, then by the submission of the job, whatever the kind (document 001, section 3.4).

use super::{Actors, Turns, first, ready};
use crate::Kind;

#[derive(Debug)]
pub(super) struct Priority;

impl Turns for Priority {
    fn next(&mut self, actors: &Actors) -> Option<Kind> {
        ready(actors).min_by_key(|kind| first(actors, *kind))
    }
}
