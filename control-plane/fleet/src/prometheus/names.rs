// SPDX-License-Identifier: Apache-2.0
//! Which host the value of a label names.

use std::collections::BTreeMap;

use crate::settings::Host;

/// Hosts by address and by metrics address: Prometheus knows a host by where it reads its page.
#[derive(Clone, Debug)]
pub struct Names<'a>(BTreeMap<&'a str, Named<'a>>);

/// Whom a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<'a> {
    /// The host of this address.
    Host(&'a str),
    /// More than one, these two among them.
    Shared([&'a str; 2]),
}

impl<'a> Names<'a> {
    /// The names of these hosts, each of which comes once.
    pub fn of(hosts: impl IntoIterator<Item = &'a Host>) -> Self {
        let mut names = BTreeMap::new();
        for host in hosts {
            let address = host.address.as_str();
            let own = [address, host.metrics_address.as_str()];
            for name in &own[..if own[0] == own[1] { 1 } else { 2 }] {
                names
                    .entry(*name)
                    .and_modify(|named| {
                        if let Named::Host(first) = *named {
                            *named = Named::Shared([first, address]);
                        }
                    })
                    .or_insert(Named::Host(address));
            }
        }
        Self(names)
    }

    /// Whom a name stands for, if for anybody.
    pub fn get(&self, name: &str) -> Option<Named<'a>> {
        self.0.get(name).copied()
    }

    /// Names that stand for more than one host.
    pub fn shared(&self) -> impl Iterator<Item = (&'a str, [&'a str; 2])> {
        self.0.iter().filter_map(|(name, named)| match named {
            Named::Shared(hosts) => Some((*name, *hosts)),
            Named::Host(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(address: &str, metrics_address: &str) -> Host {
        Host {
            address: address.to_owned(),
            metrics_address: metrics_address.to_owned(),
            cache_address: metrics_address.to_owned(),
            capacity_millicores: 0,
            preempt_at_unix_ms: 0,
            zone: None,
            draining: false,
            written: None,
            instance: None,
        }
    }

    #[test]
    fn a_host_is_known_by_both_its_addresses_and_nobody_by_one_that_two_have() {
        let hosts = [
            host("a", "a"),
            host("b", "m"),
            host("c", "m"),
            host("d", "a"),
        ];
        let names = Names::of(&hosts);
        assert_eq!(names.get("b"), Some(Named::Host("b")));
        assert_eq!(names.get("m"), Some(Named::Shared(["b", "c"])));
        assert_eq!(names.get("a"), Some(Named::Shared(["a", "d"])));
        assert_eq!(names.get("x"), None);
        let shared: Vec<_> = names.shared().collect();
        assert_eq!(shared, [("a", ["a", "d"]), ("m", ["b", "c"])]);
    }
}
