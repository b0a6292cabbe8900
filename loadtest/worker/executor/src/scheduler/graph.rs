// SPDX-License-Identifier: Apache-2.0
//! Which actor sends events to which.

/// Actors by number; the first is the source, and events go from lower numbers to higher ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph(Vec<Vec<usize>>);

impl Graph {
    /// Actors with the numbers of those that each sends to. One that sends to none has an edge out of the graph.
    ///
    /// # Panics
    /// If an edge goes to a lower number, to the actor itself, or to none there is.
    #[must_use]
    pub fn new(mut edges: Vec<Vec<usize>>) -> Self {
        let actors = edges.len();
        for (actor, to) in edges.iter_mut().enumerate() {
            let forward = |to: &usize| (actor + 1..actors).contains(to);
            assert!(to.iter().all(forward), "an edge of actor {actor}: {to:?}");
            if to.is_empty() {
                to.push(actors);
            }
        }
        Self(edges)
    }

    /// So many actors in a row.
    #[must_use]
    pub fn chain(actors: usize) -> Self {
        let to = |actor| (actor + 1..actors).take(1).collect();
        Self::new((0..actors).map(to).collect())
    }

    /// The number of actors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no actors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where an actor's edges go; [`Graph::len`] is out of the graph.
    #[must_use]
    pub fn edges(&self, actor: usize) -> &[usize] {
        &self.0[actor]
    }
}
