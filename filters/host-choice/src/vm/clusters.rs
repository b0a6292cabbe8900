// SPDX-License-Identifier: Apache-2.0
//! The clusters of one VM, by weir-control's name.

use std::rc::Rc;

use super::cluster::ClusterState;

/// Sorted by name. A request looks for its cluster half a dozen times, mostly with the very name that is here: such a one
/// is found by its place in memory.
#[derive(Default)]
pub(super) struct Clusters(Vec<(Rc<str>, ClusterState)>);

impl Clusters {
    #[inline]
    fn place(&self, name: &str) -> Result<usize, usize> {
        let same = |(known, _): &(Rc<str>, ClusterState)| std::ptr::eq(&**known, name);
        match self.0.iter().position(same) {
            Some(place) => Ok(place),
            None => self.search(name),
        }
    }

    #[inline(never)]
    fn search(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name))
    }

    #[inline]
    pub(super) fn get(&self, name: &str) -> Option<&ClusterState> {
        let (_, state) = self.0.get(self.place(name).ok()?)?;
        Some(state)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut ClusterState> {
        let place = self.place(name).ok()?;
        let (_, state) = self.0.get_mut(place)?;
        Some(state)
    }

    /// The cluster, which may be a new one.
    pub(super) fn add(&mut self, name: &Rc<str>) -> Option<&mut ClusterState> {
        let place = self.place(name).unwrap_or_else(|place| {
            let new = (Rc::clone(name), ClusterState::default());
            self.0.insert(place, new);
            place
        });
        let (_, state) = self.0.get_mut(place)?;
        Some(state)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Rc<str>, &ClusterState)> {
        self.0.iter().map(|(name, state)| (name, state))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Rc<str>, &mut ClusterState)> {
        self.0.iter_mut().map(|(name, state)| (&*name, state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_found_by_its_name_wherever_that_is_written() {
        let mut clusters = Clusters::default();
        let names: [Rc<str>; 3] = ["rules", "a", "search"].map(Rc::from);
        for (roots, name) in (1..).zip(&names) {
            clusters.add(name).unwrap().roots = roots;
        }
        clusters.add(&Rc::from("a")).unwrap().roots += 10;
        let roots = |name| clusters.get(name).map(|state| state.roots);
        let found = ["rules", "a", "search", "ruled"].map(roots);
        assert_eq!(found, [Some(1), Some(12), Some(3), None]);
        assert_eq!(roots(&names[1]), Some(12));
        let sorted: Vec<_> = clusters.iter().map(|(name, _)| &**name).collect();
        assert_eq!(sorted, ["a", "rules", "search"]);
    }
}
