// SPDX-License-Identifier: Apache-2.0
/// The most hosts that a decision can name.
pub const MAX_RANKED: usize = 8;

/// The chosen hosts as indexes into the table, best first; at least one, at most [`MAX_RANKED`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ranked {
    hosts: [u32; MAX_RANKED],
    len: usize,
}

impl Ranked {
    /// These hosts, of which none is there twice; those beyond [`MAX_RANKED`] are left out.
    pub(crate) fn of(hosts: impl Iterator<Item = u32>) -> Self {
        let mut ranked = Self::default();
        for (place, host) in ranked.hosts.iter_mut().zip(hosts) {
            *place = host;
            ranked.len += 1;
        }
        ranked
    }

    /// The hosts, best first.
    pub fn as_slice(&self) -> &[u32] {
        self.hosts.get(..self.len).unwrap_or_default()
    }

    /// The best host.
    pub fn first(&self) -> Option<u32> {
        self.as_slice().first().copied()
    }

    /// Appends a host; ignored where it is named already or there is no room.
    pub(crate) fn push(&mut self, host: u32) {
        if self.as_slice().contains(&host) {
            return;
        }
        if let Some(place) = self.hosts.get_mut(self.len) {
            *place = host;
            self.len += 1;
        }
    }

    /// Appends a host while fewer than `limit` are named; ignored where it is named already.
    pub(crate) fn push_up_to(&mut self, limit: usize, host: u32) {
        if self.len < limit {
            self.push(host);
        }
    }

    /// Puts a host that is not named before the others; where there is no room the last is left out.
    pub(crate) fn put_first(&mut self, host: u32) {
        if let Some(named) = self.hosts.get_mut(..self.len) {
            named.rotate_right(1);
            if let Some(first) = named.first_mut() {
                *first = host;
            }
        }
    }

    /// Moves the hosts that `is_last` names behind the others, keeping the order of both.
    pub(crate) fn demote(self, is_last: impl Fn(u32) -> bool) -> Self {
        let mut demoted = Self::default();
        for last in [false, true] {
            for host in self.as_slice() {
                if is_last(*host) == last {
                    demoted.push(*host);
                }
            }
        }
        demoted
    }
}
