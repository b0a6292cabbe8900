// SPDX-License-Identifier: Apache-2.0
//! The pods of an InferencePool, as endpoints of a service would be written for them. Pure.

use std::collections::BTreeMap;

use serde::Deserialize;
use weir_fleet::poll::{Fault, PollError};
use weir_policy::MAX_HOSTS;

use super::answer::{Conditions, Endpoint, Port, Slice, Target};
use super::read::read;
use crate::config::Kubernetes;
use crate::kube::objects::{Kept, Metadata, or_none};
use crate::sources::discovery::Found;

/// A pod (v1 in Kubernetes' reference of its API), as far as it is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pod {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    /// Its first address; none before it was started.
    #[serde(rename = "podIP")]
    pod_ip: String,
    #[serde(deserialize_with = "or_none")]
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
}

/// By name.
#[derive(Debug, Default)]
pub(super) struct Pods(BTreeMap<String, Pod>);

impl Pods {
    /// A host for each pod and port.
    pub(super) fn read(&self, ports: &[u16], settings: &Kubernetes) -> Found {
        let pods = self.0.values();
        let slices = pods.flat_map(|pod| ports.iter().map(|port| pod.slice(*port)));
        let slices: Vec<Slice> = slices.collect();
        read(slices.iter(), settings)
    }
}

impl Pod {
    /// As Kubernetes' own controller of endpoints writes it.
    fn slice(&self, port: u16) -> Slice {
        let ready = |it: &Condition| it.r#type == "Ready" && it.status == "True";
        let ready = self.status.conditions.iter().any(ready);
        let ends = self.metadata.deletion_timestamp.is_some();
        let has_address = !self.status.pod_ip.is_empty();
        let endpoint = Endpoint {
            addresses: vec![self.status.pod_ip.clone()],
            conditions: Conditions {
                ready: Some(ready && !ends && has_address),
                serving: Some(ready && has_address),
                terminating: Some(ends),
            },
            node_name: self.spec.node_name.clone(),
            target_ref: Some(Target {
                kind: "Pod".to_owned(),
                name: self.metadata.name.clone(),
                uid: self.metadata.uid.clone(),
            }),
            ..Endpoint::default()
        };
        let is_v6 = self.status.pod_ip.contains(':');
        Slice {
            metadata: self.metadata.clone(),
            address_type: if is_v6 { "IPv6" } else { "IPv4" }.to_owned(),
            endpoints: vec![endpoint],
            ports: vec![Port {
                port: Some(port),
                ..Port::default()
            }],
        }
    }
}

impl Kept for Pods {
    type Object = Pod;

    const RIGHT: &'static str = "get, list and watch of pods";

    fn metadata(pod: &Pod) -> &Metadata {
        &pod.metadata
    }

    fn put(&mut self, pod: Pod) -> Result<(), PollError> {
        self.0.insert(pod.metadata.name.clone(), pod);
        match self.0.len() > MAX_HOSTS {
            true => Err(PollError::new(
                Fault::TooLarge,
                format!("more than {MAX_HOSTS} pods"),
            )),
            false => Ok(()),
        }
    }

    fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::{Access, Backend};

    fn pod(name: &str, ip: &str, ready: bool, ends: bool) -> Pod {
        let since = ends.then_some("2026-01-01T00:00:00Z");
        let ready = if ready { "True" } else { "False" };
        let pod = json!({
            "metadata": { "name": name, "uid": name, "deletionTimestamp": since },
            "spec": { "nodeName": "node-1" },
            "status": { "podIP": ip, "conditions": [
                { "type": "Initialized", "status": "True" }, { "type": "Ready", "status": ready },
            ] },
        });
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn a_pod_is_a_host_at_each_port_while_it_is_ready_and_drains_while_it_ends() {
        let mut pods = Pods::default();
        for (name, ip, ready, ends) in [
            ("a", "10.0.0.1", true, false),
            ("b", "10.0.0.2", true, true),
            ("c", "10.0.0.3", false, false),
            ("d", "10.0.0.4", false, true),
            ("e", "", false, false),
            ("f", "fd00::1", true, false),
        ] {
            pods.put(pod(name, ip, ready, ends)).unwrap();
        }
        // Before anything of it is known.
        let fresh = json!({ "metadata": { "name": "g" }, "status": { "conditions": Value::Null } });
        pods.put(serde_json::from_value(fresh).unwrap()).unwrap();
        let settings = Kubernetes {
            namespace: "ml".into(),
            backend: Backend::Pool("llama".into()),
            metrics_port: None,
            access: Access::Pod,
        };
        let found = pods.read(&[8000, 8001], &settings);
        let hosts = found
            .hosts
            .iter()
            .map(|host| (&*host.address, host.draining));
        let hosts: Vec<(&str, bool)> = hosts.collect();
        let expected = [
            ("10.0.0.1:8000", false),
            ("10.0.0.1:8001", false),
            ("10.0.0.2:8000", true),
            ("10.0.0.2:8001", true),
            ("[fd00::1]:8000", false),
            ("[fd00::1]:8001", false),
        ];
        assert_eq!(hosts, expected);
        assert_eq!(found.hosts[0].instance.as_ref().unwrap().node, "node-1");
        assert_eq!(found.complaints, [""; 0]);
        let nobody = Pods::default().read(&[8000], &settings).complaints;
        let said = "InferencePool llama in namespace ml has no endpoint: no pod is selected";
        assert_eq!(nobody, [said]);
    }
}
