// SPDX-License-Identifier: Apache-2.0
//! What became of requests, read back from the counters.

use std::collections::BTreeMap;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use serde::Serialize;
use weir_fleet::ledger::OUTCOMES;
use weir_policy::CLASSES;

use super::{Answers, Metrics, OfCluster, Requests};

/// Of a cluster, since this process began, as sidecars report. They do not report the reason of a choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Traffic {
    /// Requests that asked for a host, by class.
    pub(crate) offered: BTreeMap<u8, u64>,
    /// Requests answered 429, by class.
    pub(crate) shed: BTreeMap<u8, u64>,
    /// Requests that waited for a host.
    pub(crate) held: u64,
    /// Answers, as [`OUTCOMES`] names them.
    pub(crate) answers: BTreeMap<&'static str, u64>,
}

impl Metrics {
    /// The cluster is gone.
    pub(super) fn forget_traffic(&self, of_cluster: &OfCluster) {
        let cluster = || of_cluster.cluster.clone();
        for class in (0..CLASSES).filter_map(|class| u8::try_from(class).ok()) {
            let cluster = cluster();
            let labels = Requests { cluster, class };
            self.requests.remove(&labels);
            self.shed.remove(&labels);
        }
        for class in OUTCOMES {
            let cluster = cluster();
            self.answers.remove(&Answers { cluster, class });
        }
        self.held.remove(of_cluster);
    }

    /// Of a cluster of this name.
    pub(crate) fn traffic(&self, cluster: &str) -> Traffic {
        let by_class = |family: &Family<Requests, Counter>| {
            let classes = (0..CLASSES).filter_map(|class| u8::try_from(class).ok());
            let counts = classes.filter_map(|class| {
                let cluster = cluster.to_owned();
                let counter = family.get(&Requests { cluster, class })?;
                Some((class, counter.get()))
            });
            counts.collect()
        };
        let of_cluster = OfCluster {
            cluster: cluster.to_owned(),
        };
        let answers = OUTCOMES.into_iter().filter_map(|class| {
            let cluster = cluster.to_owned();
            let counter = self.answers.get(&Answers { cluster, class })?;
            Some((class, counter.get()))
        });
        Traffic {
            offered: by_class(&self.requests),
            shed: by_class(&self.shed),
            held: self
                .held
                .get(&of_cluster)
                .map_or(0, |counter| counter.get()),
            answers: answers.collect(),
        }
    }
}
