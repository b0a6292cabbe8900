// SPDX-License-Identifier: Apache-2.0
//! Cores that a host's own page names, as far as they are believed: anybody may write a number on a page of its own.

use crate::host::Host;

/// A page's word counts up to so many times what the usual host has: machines of a fleet differ by less, and a host
/// that claims more gains no more. As with a governor's word beside the configuration ([`crate::node`]).
const MOST_TIMES: u32 = 4;

/// One host's, in thousandths of a core; 0 where unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCores {
    said: u32,
    counts: u32,
}

impl PageCores {
    /// What counts of it.
    pub fn millicores(self) -> u32 {
        self.counts
    }

    /// A page has been read, with or without cores. True if that is another word than before.
    pub fn says(&mut self, millicores: Option<u32>) -> bool {
        let said = millicores.unwrap_or(0);
        std::mem::replace(&mut self.said, said) != said
    }
}

/// Bounds what counts at each host of a cluster by the median of what is configured or else said, the lower one of two;
/// a host of which neither is known counts as 0. So nothing counts until more than half of the hosts are known: one
/// that claims cores would be sought before those that claim none.
pub fn bound<'a>(hosts: impl Iterator<Item = &'a mut Host>) {
    let mut hosts: Vec<&mut Host> = hosts.collect();
    let known = |host: &&mut Host| match host.config.capacity_millicores {
        0 => host.page_cores.said,
        configured => configured,
    };
    let mut all: Vec<u32> = hosts.iter().map(known).collect();
    let Some(middle) = all.len().checked_sub(1).map(|last| last / 2) else {
        return;
    };
    let (_, usual, _) = all.select_nth_unstable(middle);
    let most = usual.saturating_mul(MOST_TIMES);
    for host in &mut hosts {
        host.page_cores.counts = host.page_cores.said.min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What counts at hosts of which the first number is configured and the second said.
    fn counts(hosts: &[(u32, u32)]) -> Vec<u32> {
        let host = |(configured, said): &(u32, u32)| {
            let mut host = crate::host::tests::host();
            host.config.capacity_millicores = *configured;
            host.page_cores.says(Some(*said));
            host
        };
        let mut hosts: Vec<Host> = hosts.iter().map(host).collect();
        bound(hosts.iter_mut());
        hosts.iter().map(Host::capacity_millicores).collect()
    }

    #[test]
    fn a_page_counts_where_nothing_is_configured_and_a_governor_before_both() {
        assert_eq!(counts(&[(0, 4000)]), [4000]);
        assert_eq!(counts(&[(1000, 4000), (0, 2000)]), [1000, 2000]);
        let mut host = crate::host::tests::host();
        host.page_cores.says(Some(4000));
        bound([&mut host].into_iter());
        host.node.says(3000, 0, std::time::Duration::ZERO);
        assert_eq!(host.capacity_millicores(), 3000);
    }

    #[test]
    fn a_page_counts_up_to_four_times_the_usual_hosts() {
        assert_eq!(counts(&[(0, 4000), (0, 4_096_000)]), [4000, 16_000]);
        let fleet = [(0, 2000), (0, 2000), (4000, 0), (0, 64_000)];
        assert_eq!(counts(&fleet), [2000, 2000, 4000, 8000]);
        assert_eq!(counts(&[(u32::MAX, 0), (0, 1)]), [u32::MAX, 1]);
    }

    #[test]
    fn of_hosts_that_mostly_name_no_cores_none_is_believed_to_have_some() {
        assert_eq!(counts(&[(0, 0), (0, 4000)]), [0, 0]);
        assert_eq!(counts(&[(0, 0), (0, 4000), (0, 4000)]), [0, 4000, 4000]);
        assert_eq!(counts(&[]), [0; 0]);
    }

    #[test]
    fn a_page_without_cores_takes_its_word_back() {
        let mut cores = PageCores::default();
        assert!(cores.says(Some(4000)));
        assert!(!cores.says(Some(4000)));
        assert!(cores.says(None));
        assert!(!cores.says(None));
    }
}
