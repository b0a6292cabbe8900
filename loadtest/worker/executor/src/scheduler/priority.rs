// SPDX-License-Identifier: Apache-2.0
//! By class, then by the submission of the job, whatever the kind (document 001, section 3.4).

use super::{Queue, Turns, first, ready};

#[derive(Debug)]
pub(super) struct Priority;

impl Turns for Priority {
    fn next(&mut self, actors: &[Queue]) -> Option<usize> {
        ready(actors).min_by_key(|actor| first(actors, *actor))
    }
}
