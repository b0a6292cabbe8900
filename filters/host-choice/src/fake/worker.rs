// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;
use std::time::Duration;

use prost::Message;
use weir_policy::{Cluster, HostId};
use weir_tables::discovery::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Resource};
use weir_tables::v1;

use super::{FakeHost, FakeRequest};
use crate::disposition::Action;
use crate::exchange::Exchange;
use crate::handle::VmHandle;
use crate::root::Root;

/// Envoy's name of weir-control's cluster.
pub(crate) const CONTROL: &str = "weir-control";
/// A configuration of one cluster, named `rules` on both sides.
pub(crate) const RULES: &str = r#"{"clusters":{"rules":{}}}"#;

/// A VM with one root context, and the requests that wait in it.
pub(crate) struct Worker {
    pub(crate) host: FakeHost,
    pub(crate) vm: VmHandle<FakeHost>,
    pub(crate) root: Root<FakeHost>,
    /// By context. What is not here is gone without a word.
    pub(crate) contexts: BTreeMap<u32, FakeRequest>,
}

impl Worker {
    /// A VM of this proxy, not ticked yet.
    pub(crate) fn of(host: &FakeHost, json: &str) -> Self {
        let vm = VmHandle::new(host.clone());
        let mut root = Root::new(1);
        let node = || "sidecar-1".to_owned();
        let tick = root.on_configure(host, json.as_bytes(), || vm.clone(), node);
        assert_eq!(tick, Some(Duration::from_millis(50)), "{json}");
        Self {
            host: host.clone(),
            vm,
            root,
            contexts: BTreeMap::new(),
        }
    }

    /// The only VM of a proxy, which has this table.
    pub(crate) fn with(table: &v1::HostTable) -> Self {
        let mut worker = Self::of(&FakeHost::default(), RULES);
        worker.tick(50);
        worker.push(table);
        worker
    }

    /// So many milliseconds pass, and then it ticks.
    pub(crate) fn tick(&mut self, milliseconds: u64) {
        self.host.pass(Duration::from_millis(milliseconds));
        let contexts = &self.contexts;
        self.root.on_tick(|context| contexts.get(&context).cloned());
    }

    /// weir-control sends a table, which is taken.
    pub(crate) fn push(&mut self, table: &v1::HostTable) {
        let answer = self.send(&[weir_harness::resource(table)]);
        assert_eq!(answer.error_detail, None);
    }

    /// weir-control sends resources; returns the answer. A millisecond passes: no two resources come at one time.
    pub(crate) fn send(&mut self, resources: &[Resource]) -> DeltaDiscoveryRequest {
        self.host.pass(Duration::from_millis(1));
        let stream = self.tables().expect("a stream of tables");
        let any = resources.first().and_then(|first| first.resource.as_ref());
        let response = DeltaDiscoveryResponse {
            type_url: any.unwrap().type_url.clone(),
            resources: resources.to_vec(),
            nonce: "nonce-7".into(),
            ..Default::default()
        };
        self.host.take_sent::<DeltaDiscoveryRequest>(stream);
        let message = response.encode_to_vec();
        self.root.on_stream_message(stream, &message);
        self.host.take_sent(stream).pop().expect("an answer")
    }

    /// The open stream of tables.
    pub(crate) fn tables(&self) -> Option<u32> {
        self.host.stream("DeltaAggregatedResources")
    }

    /// A request comes.
    pub(crate) fn ask(
        &mut self,
        context: u32,
        request: &FakeRequest,
    ) -> (Exchange<FakeHost>, Action) {
        self.contexts.insert(context, request.clone());
        let mut exchange = self.root.exchange(context);
        let action = exchange.on_request(request, true).carry_out(request);
        (exchange, action)
    }

    pub(crate) fn in_flight(&self, address: &str) -> u32 {
        let host = HostId::of(address);
        let of = |cluster: &Cluster| cluster.in_flight(host);
        self.vm
            .enter(|vm| vm.cluster("rules").map_or(0, of))
            .unwrap()
    }

    /// What the VM has counted of the cluster, by its own record. Time passes.
    pub(crate) fn record(&mut self) -> v1::ClusterRecord {
        self.tick(100);
        let (bytes, _) = crate::host::Host::shared(&self.host, "weir/1/vm/0").unwrap();
        let record = crate::stored::decode(&bytes).unwrap();
        record.clusters.into_iter().next().unwrap()
    }
}

/// Attempts at all hosts that have begun, and that have ended.
pub(crate) fn counted(record: &v1::ClusterRecord) -> (u64, u64) {
    let begun = record.hosts.iter().map(|host| host.assigned);
    let ended = record.hosts.iter().map(|host| {
        let answered = host.ok + host.client_error + host.server_error;
        answered + host.no_answer
    });
    (begun.sum(), ended.sum())
}

/// Requests that were shed, of all ranks.
pub(crate) fn shed_of(record: &v1::ClusterRecord) -> u64 {
    record.shed.iter().map(|shed| shed.count).sum()
}
