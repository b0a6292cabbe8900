// SPDX-License-Identifier: Apache-2.0
//! What is measured of each way, as data.

use std::fmt::Write;
use std::net::SocketAddr;
use std::rc::Rc;

use anyhow::{Context, Result};
use bytes::Bytes;
use serde_json::json;

use crate::bench::epp;
use crate::bench::load::{Protocol, Shot, Work};
use crate::bench::request::way::Way;

/// Ways that are measured side by side, on the same hosts and requests.
pub(super) struct Group {
    /// Its folder.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) ways: &'static [Way],
    pub(super) cases: Vec<Case>,
    /// Threads of each Envoy.
    pub(super) workers: usize,
    /// The way whose throughput with 16 connections is saturation.
    pub(super) half_of: Way,
    pub(super) hosts: usize,
    /// Requests ask for so many keys in turns, each in one host's cache.
    pub(super) keys: usize,
}

pub(super) struct Case {
    pub(super) title: &'static str,
    pub(super) protocol: Protocol,
    pub(super) rate: Rate,
    /// A GET without one.
    pub(super) prompt_bytes: Option<usize>,
    /// Times the plan's slice.
    pub(super) length: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rate {
    Closed,
    HalfOfSaturation,
}

/// A case with it saturates Envoy.
pub(super) const SATURATING: Protocol = Protocol::Http1(16);

pub(super) fn groups() -> [Group; 3] {
    [
        Group {
            name: "headers",
            title: "A request",
            ways: &[
                Way::Plain,
                Way::Rules,
                Way::NoOp,
                Way::NativeNoOp,
                Way::Weir,
                Way::Native,
                Way::NativeOne,
                Way::WeirLoads,
                Way::Dynamic,
                Way::Lua,
                Way::Picker,
                Way::ToldPicker,
            ],
            cases: vec![
                closed("one connection", Protocol::Http1(1), None).lasting(0.5),
                closed("16 connections", SATURATING, None),
                closed("64 connections", Protocol::Http1(64), None).lasting(0.5),
                closed("256 connections", Protocol::Http1(256), None).lasting(0.5),
                closed("HTTP/2, 16 streams", Protocol::Http2(16), None).lasting(0.5),
                // A p99 needs many requests.
                half("half of Weir's saturation", None).lasting(1.5),
            ],
            workers: 1,
            half_of: Way::Weir,
            hosts: 14,
            keys: 1000,
        },
        Group {
            name: "workers",
            title: "A request, Envoys with two workers",
            ways: &[
                Way::Plain,
                Way::Rules,
                Way::NoOp,
                Way::NativeNoOp,
                Way::Weir,
                Way::Native,
            ],
            cases: vec![closed("16 connections", SATURATING, None)],
            workers: 2,
            half_of: Way::Weir,
            hosts: 14,
            keys: 1000,
        },
        Group {
            name: "completions",
            title: "A completion, beside the inference gateway's picker",
            ways: &[
                Way::Plain,
                Way::NoOp,
                Way::Weir,
                Way::Native,
                Way::Dynamic,
                Way::Epp,
            ],
            cases: vec![
                closed("500 B prompts, 16 connections", SATURATING, Some(500)),
                closed("20 KB prompts, 16 connections", SATURATING, Some(20_000)),
                half("500 B prompts, half of EPP's saturation", Some(500)),
            ],
            workers: 1,
            half_of: Way::Epp,
            hosts: epp::MOST_HOSTS,
            keys: 200,
        },
    ]
}

/// What is taken away, from both shells alike: the decision, and what is asked of Envoy for it.
pub(super) fn layers() -> Group {
    Group {
        name: "layers",
        title: "Where a request's price is",
        ways: &[
            Way::NoOp,
            Way::Untold,
            Way::Unasked,
            Way::Weir,
            Way::NativeNoOp,
            Way::NativeUntold,
            Way::NativeUnasked,
            Way::NativeOne,
            Way::Native,
        ],
        cases: vec![closed("16 connections", SATURATING, None)],
        workers: 1,
        half_of: Way::Weir,
        hosts: 14,
        keys: 1000,
    }
}

const fn closed(title: &'static str, protocol: Protocol, prompt_bytes: Option<usize>) -> Case {
    Case {
        title,
        protocol,
        rate: Rate::Closed,
        prompt_bytes,
        length: 1.0,
    }
}

const fn half(title: &'static str, prompt_bytes: Option<usize>) -> Case {
    Case {
        title,
        protocol: Protocol::Http1(32),
        rate: Rate::HalfOfSaturation,
        prompt_bytes,
        length: 1.0,
    }
}

impl Case {
    fn lasting(self, length: f64) -> Self {
        Self { length, ..self }
    }

    /// The requests, the same for every way; who must answer them is not.
    pub(super) fn work(&self, way: Way, hosts: &[SocketAddr], keys: usize) -> Result<Rc<Work>> {
        let path = match (self.prompt_bytes, way) {
            (Some(_), _) => "/v1/completions",
            (None, Way::WeirLoads) => "/with-load",
            (None, _) => "/",
        };
        let shots = (0..keys).map(|number| shot(path, number, self.prompt_bytes, way, hosts));
        Ok(Rc::new(Work::new(shots.collect::<Result<_>>()?)))
    }
}

/// A request for the key with this number.
pub(super) fn shot(
    path: &str,
    number: usize,
    prompt_bytes: Option<usize>,
    way: Way,
    hosts: &[SocketAddr],
) -> Result<Shot> {
    let holder = hosts.get(number % hosts.len());
    let holder = holder.context("there are no hosts")?;
    let (key, user) = (key(number), format!("user-{}", number % 100));
    let headers = [
        ("x-weir-key", &*key),
        ("x-weir-priority", "low"),
        ("x-weir-user", &*user),
    ];
    let body = prompt_bytes.map(|bytes| completion(number, bytes));
    Shot::new(path, &headers, body, way.answered_by(*holder)?)
}

/// As the hosts call them.
pub(super) fn key(number: usize) -> String {
    format!("key-{number}")
}

/// Prompts of different numbers differ from their beginning on.
fn completion(number: usize, bytes: usize) -> Bytes {
    let mut prompt = String::new();
    for line in 0.. {
        if prompt.len() >= bytes {
            break;
        }
        let _ = write!(prompt, "Story {number}, line {line}: once upon a time. ");
    }
    prompt.truncate(bytes);
    let body = json!({"model": "m", "prompt": prompt, "max_tokens": 1});
    body.to_string().into()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn prompts_have_their_size_and_their_own_beginning() {
        let prompt = |number| {
            let body: Value = serde_json::from_slice(&completion(number, 500)).unwrap();
            body["prompt"].as_str().unwrap().to_owned()
        };
        assert_eq!(prompt(1).len(), 500);
        assert_ne!(prompt(1)[..10], prompt(2)[..10]);
    }

    #[test]
    fn every_group_has_what_its_targets_are_held_against() {
        for group in groups().into_iter().chain([layers()]) {
            for way in [Way::NoOp, Way::Weir, group.half_of] {
                assert!(group.ways.contains(&way), "{}", group.name);
            }
            assert!(group.hosts <= group.keys);
        }
    }
}
