// SPDX-License-Identifier: Apache-2.0
//! What reaches weir-control over the network.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Query;
use envoy_types::pb::envoy::service::discovery::v3 as discovery;
use prost::Message;
use rand::SeedableRng;
use weir_control::admin::{Question, explain as explained};
use weir_control::follow::Mirror;
use weir_control::leader::lock::{Key, consul as key, lease};
use weir_control::policies;
use weir_control::sources::cache::Conversation;
use weir_control::sources::consul;
use weir_control::sources::nodes::{self, Named};
use weir_control::sources::scrape::{self, Window};
use weir_control::xds::session::Session;
use weir_control::xds::types;
use weir_fleet::Update;
use weir_fleet::ledger::{Ledger, Names};
use weir_fleet::poll::{Fault, PollError};
use weir_fleet::prometheus::Figure;
use weir_fleet::snapshot::{Resource, Snapshot};
use weir_policy::MAX_HOSTS;
use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE, v1};

use crate::laws::{accepted, is_a_line, message};
use crate::world::{CLUSTER, HOST, cluster, config, told};

/// Less than some inputs ask for.
const ROOM: usize = 1 << 20;

/// Parts of an input that is several answers, one after another.
fn parts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == 0)
}

pub(crate) fn consul_health(bytes: &[u8]) -> bool {
    let question = weir_control::config::Question {
        service: CLUSTER.to_owned(),
        connect: true,
        datacenter: None,
        filter: None,
        tags: vec!["a".to_owned()],
        weight_millicores: 1000,
    };
    let untagged = weir_control::config::Question {
        tags: Vec::new(),
        ..question.clone()
    };
    let mut any = false;
    for question in [question, untagged] {
        let Some(found) = accepted(consul::read(bytes, &question)) else {
            return false;
        };
        found
            .complaints
            .iter()
            .for_each(|complaint| is_a_line(complaint));
        assert!(found.complaints.len() <= 22 && found.hosts.len() <= MAX_HOSTS);
        let addresses: Vec<&str> = found
            .hosts
            .iter()
            .map(|host| host.address.as_str())
            .collect();
        assert!(addresses.is_sorted_by(|a, b| a < b), "{addresses:?}");
        for host in &found.hosts {
            for address in [&host.address, &host.metrics_address, &host.cache_address] {
                let parsed: SocketAddr = address.parse().expect("an address");
                assert_eq!(parsed.to_string(), *address, "canonical");
            }
        }
        any |= !found.hosts.is_empty();
    }
    any
}

pub(crate) fn consul_roots(bytes: &[u8]) -> bool {
    let Some(domain) = accepted(consul::read_roots(bytes)) else {
        return false;
    };
    assert!(domain.len() <= 210);
    true
}

/// Who leads: what the replicas' key in Consul says.
pub(crate) fn consul_lock(bytes: &[u8]) -> bool {
    leads(accepted(key::read(bytes, "weir/leader")))
}

/// The same of the replicas' Lease in Kubernetes.
pub(crate) fn kubernetes_lease(bytes: &[u8]) -> bool {
    leads(accepted(lease::read(bytes)))
}

/// What owners of services write.
pub(crate) fn weir_policy(bytes: &[u8]) -> bool {
    let Some(clusters) = accepted(policies::read("shop/one", bytes)) else {
        return false;
    };
    assert!((1..=16).contains(&clusters.len()));
    assert!(clusters.iter().all(|name| name.ends_with(".shop")));
    true
}

fn leads(key: Option<Key>) -> bool {
    match key {
        None => false,
        Some(Key::Free) => true,
        Some(Key::Held(holder)) => {
            assert!(holder.index < 1 << 31);
            true
        }
        Some(Key::Strange(why)) => {
            is_a_line(&why);
            false
        }
    }
}

/// The answer to every query of a round.
pub(crate) fn prometheus(bytes: &[u8]) -> bool {
    let answer = accepted(weir_promql::read(bytes));
    let good = answer.is_some();
    let answers = Figure::ALL.map(|figure| {
        let none = || PollError::new(Fault::Failed, "none");
        (figure, answer.clone().ok_or_else(none))
    });
    let view = told(|asked| {
        vec![Update::Queried {
            cluster: CLUSTER.into(),
            asked,
            answers: BTreeMap::from(answers),
        }]
    });
    lines(&view);
    good
}

/// What is said of sources, and on pages.
fn lines(view: &weir_fleet::view::View) {
    let clusters = view.clusters.values();
    let sources = clusters.flat_map(|cluster| {
        let hosts = cluster.hosts.iter().flat_map(|host| host.sources.values());
        cluster.sources.values().chain(hosts)
    });
    for trouble in sources.flat_map(|source| source.trouble()) {
        is_a_line(&trouble);
    }
}

/// Pages of one host, one after another.
pub(crate) fn scrape(bytes: &[u8]) -> bool {
    let cluster = cluster();
    let names = cluster.scrape.as_ref().expect("a section");
    let (mut window, mut whole) = (Window::default(), false);
    let view = told(|asked| {
        let pages = parts(bytes).filter_map(|page| std::str::from_utf8(page).ok());
        let read = pages.map(|page| {
            let page = scrape::read(page, names);
            whole |= page.complaints.is_empty();
            let scraped = scrape::scraped(page, &mut window, asked);
            scraped
                .complaints
                .iter()
                .for_each(|complaint| is_a_line(complaint));
            let queued = scraped.figures.queued.as_ref();
            assert!(queued.is_none_or(|queued| queued.len() <= 32));
            Update::Scraped {
                cluster: CLUSTER.into(),
                host: HOST.into(),
                asked,
                result: Ok(scraped),
            }
        });
        read.collect()
    });
    lines(&view);
    whole
}

/// Answers of one host, one after another.
pub(crate) fn cache_page(bytes: &[u8]) -> bool {
    let cluster = cluster();
    let limits = cluster.cache.as_ref().expect("a section");
    let (mut conversation, mut good) = (Conversation::default(), false);
    let view = told(|_| {
        let answers = parts(bytes).map(|body| {
            let question = conversation.question(&limits.poll.path);
            assert!(question.len() < 100);
            let result = conversation.answer(body, limits);
            match &result {
                Ok(changes) => {
                    let most = bytes.len() / 3;
                    assert!(changes.added.len() + changes.removed.len() <= most);
                    good = true;
                }
                Err(refusal) => is_a_line(refusal),
            }
            Update::Cached {
                cluster: CLUSTER.into(),
                host: HOST.into(),
                drops: 0,
                result,
            }
        });
        answers.collect()
    });
    lines(&view);
    good
}

/// What a sidecar says that it did; it says so twice. What is kept of it is no more than there is: counters of two
/// hosts and their cluster for each record, and of what is not counted each reason is known.
pub(crate) fn report(bytes: &[u8]) -> bool {
    let Some(report) = message::<v1::Report>(bytes) else {
        return false;
    };
    let any = !report.records.is_empty();
    let view = told(|_| {
        vec![
            Update::Reported(report.clone().into()),
            Update::Reported(report.clone().into()),
        ]
    });
    assert!(view.reports_refused.len() <= 1, "there is one proxy");
    let config = config();
    let mut ledger = Ledger::default();
    let second = Duration::from_secs(1);
    let offered = [second, 2 * second].map(|now| {
        let folded = ledger.fold(&report, &Two, now, &config.reports);
        assert!(folded.news.keys().all(|name| name == CLUSTER));
        let news = folded.news.values();
        news.map(|news| news.offered.len()).sum::<usize>()
    });
    assert_eq!(
        offered,
        [0, 0],
        "counting begins, and what is said again is no news"
    );
    let ranks = 4096;
    let most = report.records.len() * (ranks + 2 * (8 + ranks));
    assert!(ledger.rows() <= most, "{} rows", ledger.rows());
    any
}

/// The hosts that there are.
struct Two;

impl Names for Two {
    fn has_cluster(&self, name: &str) -> bool {
        name == CLUSTER
    }

    fn has_hosts(&self, cluster: &str) -> bool {
        self.has_cluster(cluster)
    }

    fn has_host(&self, cluster: &str, address: &str) -> bool {
        self.has_cluster(cluster) && cluster_hosts().contains(&address)
    }
}

fn cluster_hosts() -> [&'static str; 2] {
    [HOST, "127.0.0.1:9002"]
}

/// What a governor says of its node.
pub(crate) fn node_report(bytes: &[u8]) -> bool {
    let Some(report) = message::<v1::NodeReport>(bytes) else {
        return false;
    };
    let named = Named::of(&report).map_err(|status| status.message().to_owned());
    let capacity = nodes::capacity(&report).map_err(|status| status.message().to_owned());
    let (Some(named), Some(millicores)) = (accepted(named), accepted(capacity)) else {
        return false;
    };
    told(|_| {
        vec![Update::Capacity {
            cluster: named.cluster,
            host: named.address,
            millicores,
        }]
    });
    true
}

/// Requests of one stream, each behind its length, to a server that has two resources of each type.
pub(crate) fn discovery_requests(mut bytes: &[u8]) -> bool {
    let resource = |n: u8| Resource {
        version: format!("{n:x}.1").into(),
        body: vec![n; 9].into(),
    };
    let two = || {
        let named = [("rules", 1), ("rules/1/0", 2)];
        Arc::new(BTreeMap::from(
            named.map(|(name, n)| (name.to_owned(), resource(n))),
        ))
    };
    let kinds = [
        HOST_TABLE_TYPE,
        CACHE_SHARD_TYPE,
        types::CLUSTER,
        types::ENDPOINTS,
        types::LISTENER,
        types::ROUTE,
    ];
    let snapshot = Snapshot {
        resources: kinds.into_iter().map(|kind| (kind, two())).collect(),
        ..Snapshot::default()
    };
    let mut session = None;
    let mut good = false;
    while !bytes.is_empty() {
        let Ok(request) = discovery::DeltaDiscoveryRequest::decode_length_delimited(&mut bytes)
        else {
            return good;
        };
        if session.is_none() {
            session = Session::open(&request)
                .inspect_err(|refusal| is_a_line(&refusal.to_string()))
                .ok();
        }
        let Some(session) = &mut session else {
            return good;
        };
        match session.on_request(&request, ROOM) {
            Ok(verdict) => {
                let refusal = verdict.and_then(|verdict| verdict.refusal);
                assert!(refusal.is_none_or(|reason| reason.len() <= 1100));
            }
            Err(refusal) => {
                is_a_line(&refusal.to_string());
                return good;
            }
        }
        good = true;
        // One response of a type is in flight at a time.
        let mut sent = BTreeSet::new();
        while let Some(response) = session.on_snapshot(&snapshot) {
            assert!(sent.insert(response.type_url), "{}", response.type_url);
            let mut encoded = Vec::new();
            response.encode(&mut encoded);
            assert_eq!(encoded.len(), response.encoded_len());
            discovery::DeltaDiscoveryResponse::decode(encoded.as_slice()).expect("a response");
        }
    }
    good
}

/// What a replica's leader pushes: all of it is taken, but for what an older leader built.
pub(crate) fn mirror(bytes: &[u8]) -> bool {
    let Ok(response) = discovery::DeltaDiscoveryResponse::decode(bytes) else {
        return false;
    };
    let mut mirror = Mirror::default();
    let mut good = true;
    for index in [1, 7] {
        if let Some(refusal) = mirror.take(&response, index) {
            is_a_line(&refusal);
            good = false;
        }
        let resources = response.resources.len();
        assert!(mirror.versions(&response.type_url).len() <= resources);
    }
    let known = mirror.versions(&response.type_url);
    let snapshot = mirror.snapshot();
    for name in known.keys() {
        assert!(
            snapshot
                .of_type(&response.type_url)
                .is_some_and(|all| all.contains_key(name))
        );
    }
    good
}

/// The question of an address: what stands behind `/explain?`.
pub(crate) fn explain(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let Ok(uri) = format!("/explain?{text}").parse() else {
        return false;
    };
    let Ok(Query(asked)) = Query::<Vec<(String, String)>>::try_from_uri(&uri) else {
        return false;
    };
    let view = told(|_| Vec::new());
    let rng = rand::rngs::SmallRng::seed_from_u64(1);
    match Question::parse(&asked, &view, 1).and_then(|question| explained(&view, &question, rng)) {
        Ok(explanation) => {
            let page = serde_json::to_string(&explanation).expect("a page");
            assert!(page.len() < 8192 + 8 * text.len(), "{page}");
            true
        }
        Err(problem) => {
            let page = serde_json::to_string(&problem).expect("a page");
            assert!(page.len() < 2048 + 8 * text.len(), "{page}");
            false
        }
    }
}
