// SPDX-License-Identifier: Apache-2.0
//! What the caller says of a request, as far as the caller is believed.

use std::net::SocketAddr;

use weir_policy::{Rank, Request, USERS, user_priority};

use crate::config::{
    ClusterConfig, Config, KEY_HEADER, KeySource, PRIORITY_HEADER, Trust, USER_HEADER, UserSource,
    key_in_path, keys, named,
};
use crate::headers::Headers;
use crate::host::{Host, Map, Number, RequestHost, Text};
use crate::wanted::{OWN_PREFIX, TIME_OUTS};
use crate::{bounce, credits};

/// Proxies say these to each other.
const OF_PROXIES: [&str; 2] = [bounce::MAY_WAIT, credits::DEMAND];

/// What a caller says of a request, as far as it is believed.
pub(crate) struct Said {
    pub(crate) request: Request,
    /// How long it may take was chosen by the caller, trusted or not.
    pub(crate) has_time_out: bool,
    /// The caller said something and is not believed.
    pub(crate) is_disbelieved: bool,
}

/// Reads the request; `names` are keys found in its body, `random` is a uniform number. Headers of a caller who is not
/// trusted are removed, also where they cannot be read (`headers` is none).
pub(crate) fn read(
    config: &Config,
    cluster: &ClusterConfig,
    (headers, names): (Option<&Headers>, &[Vec<u8>]),
    random: u64,
    (vm, host): (&impl Host, &impl RequestHost),
) -> Said {
    let nothing = Headers::default();
    let (is_read, headers) = (headers.is_some(), headers.unwrap_or(&nothing));
    let mut claims = Claims::of(cluster, headers);
    let (has_time_out, has_bound) = (claims.has_time_out, claims.has_bound);
    // To ask is dear, so it is not asked of those who say nothing.
    let is_disbelieved = (claims.anything || !is_read) && !is_trusted(config.trust, host);
    if is_disbelieved {
        let is_there = |name: &str| headers.iter().any(|(known, _)| known == name.as_bytes());
        remove_own(cluster, host, |name| !is_read || is_there(name));
        claims = Claims::default();
    }
    // Not even of those who are believed: this proxy says it to hosts, and knows its requests by it.
    if has_bound || !is_read {
        for name in OF_PROXIES {
            let _ = host.set_header(Map::Request, name, None);
        }
    }
    let salt = cluster.salt.as_ref();
    let written = |key: Option<&[u8]>| keys(key, cluster.key_separator, salt);
    let keys = match &cluster.key {
        KeySource::Header(_) => written(claims.key),
        KeySource::Path(template) => {
            let path = headers.get(":path");
            written(path.and_then(|path| key_in_path(template, path)))
        }
        KeySource::Body(_) => named(names, salt),
    };
    let user = match &cluster.user {
        UserSource::Header(_) => claims.user.map(|user| user_priority(user, vm.hour())),
        UserSource::PeerCertificate => host
            .text(Text::CallerUri, |uri| {
                (!uri.is_empty()).then(|| user_priority(uri, vm.hour()))
            })
            .flatten(),
    };
    // Nobody in particular: every request takes its chance.
    let user = user.unwrap_or((random % u64::from(USERS)) as u8);
    let request = Request {
        keys,
        rank: Rank::new(config.class(claims.priority), user),
    };
    Said {
        request,
        has_time_out,
        is_disbelieved,
    }
}

/// Claims of the caller's headers.
#[derive(Default)]
struct Claims<'a> {
    key: Option<&'a [u8]>,
    priority: Option<&'a [u8]>,
    user: Option<&'a [u8]>,
    /// Whether there is any header to believe or to remove.
    anything: bool,
    /// Whether it says how long it may take.
    has_time_out: bool,
    /// Whether it says for how long it may wait at a host, or how many it wants to have there.
    has_bound: bool,
}

impl<'a> Claims<'a> {
    /// Of each name the first header counts, unless it is empty.
    fn of(cluster: &ClusterConfig, headers: &'a Headers) -> Self {
        let mut claims = Self::default();
        for (name, value) in headers.iter() {
            // Of the request line, and no such name can be configured.
            if name.first() != Some(&b':') && cluster.wanted.may_have(name) {
                claims.add(cluster, name, value);
            }
        }
        for place in [&mut claims.key, &mut claims.priority, &mut claims.user] {
            *place = place.filter(|value| !value.is_empty());
        }
        claims
    }

    /// What this header says, which may be nothing.
    #[inline(never)]
    fn add(&mut self, cluster: &ClusterConfig, name: &'a [u8], value: &'a [u8]) {
        let [key, priority, user] = names(cluster).map(str::as_bytes);
        // One header may be named for more than one thing.
        let (is_key, is_priority, is_user) = (name == key, name == priority, name == user);
        if is_key {
            self.key.get_or_insert(value);
        }
        if is_priority {
            self.priority.get_or_insert(value);
        }
        if is_user {
            self.user.get_or_insert(value);
        }
        let (is_known, is_own) = (is_key | is_priority | is_user, name.starts_with(OWN_PREFIX));
        self.anything |= is_known | is_own;
        self.has_bound |= is_own && !is_known && is_of_proxies(name);
        self.has_time_out |= TIME_OUTS.contains(&name);
    }
}

#[inline(never)]
fn is_of_proxies(name: &[u8]) -> bool {
    OF_PROXIES.iter().any(|known| known.as_bytes() == name)
}

/// The headers of key, priority and user; where these come from elsewhere, those that hosts would read.
fn names(cluster: &ClusterConfig) -> [&str; 3] {
    let (key, user) = (cluster.key.header(), cluster.user.header());
    [key, &cluster.priority_header, user]
}

/// Hosts believe these headers of whoever sends through the proxy. Headers of other names, which some
/// application reads, are not taken from it.
fn remove_own(
    cluster: &ClusterConfig,
    host: &impl RequestHost,
    may_be_there: impl Fn(&str) -> bool,
) {
    let own = [KEY_HEADER, PRIORITY_HEADER, USER_HEADER];
    let configured = names(cluster).into_iter();
    let others =
        configured.filter(|name| name.as_bytes().starts_with(OWN_PREFIX) && !own.contains(name));
    for name in own.into_iter().chain(others) {
        if may_be_there(name) {
            let _ = host.set_header(Map::Request, name, None);
        }
    }
}

pub(crate) fn is_trusted(trust: Trust, host: &impl RequestHost) -> bool {
    match trust {
        Trust::Any => true,
        Trust::None => false,
        Trust::Mtls => host.number(Number::MutualTls) == Some(1),
        Trust::Loopback => host.text(Text::Caller, is_loopback) == Some(true),
    }
}

fn is_loopback(address: &[u8]) -> bool {
    // Nearly all are this one, and to parse any address takes longer than to choose a host.
    if let Some(port) = address.strip_prefix(b"127.0.0.1:")
        && let 1..=5 = port.len()
    {
        let mut digits = port.iter().map(|digit| digit.wrapping_sub(b'0'));
        let port = digits.try_fold(0, |port, digit| {
            (digit < 10).then(|| 10 * port + u32::from(digit))
        });
        return port.is_some_and(|port| (1..=u16::MAX.into()).contains(&port));
    }
    // Envoy may take the address from x-forwarded-for, which any caller can write; then it has no port.
    let address = std::str::from_utf8(address).ok();
    address
        .and_then(|address| address.parse::<SocketAddr>().ok())
        .is_some_and(|address| address.port() != 0 && address.ip().to_canonical().is_loopback())
}

#[cfg(test)]
mod tests;
