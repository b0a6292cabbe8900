// SPDX-License-Identifier: Apache-2.0
//! The API server, and what an administrator writes there.

use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};
use tempfile::TempDir;
use weir_control::client::{Client, Limits};
use weir_fleet::settings::Server;
use weir_processes::kube::Kube;

use crate::waits::until;

const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const ACCOUNTS: &str = "/api/v1/namespaces/weir-system/serviceaccounts";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/weir-system/leases/weir-control";

/// What users apply: a Role and its binding, and their namespace.
pub(crate) const ENDPOINTS: (&str, &str) = (
    include_str!("../../../deploy/kubernetes/overlays/endpoints/role.yaml"),
    "default",
);
pub(crate) const REPLICAS: (&str, &str) = (
    include_str!("../../../deploy/kubernetes/overlays/replicas/role.yaml"),
    "weir-system",
);

pub(crate) struct Cluster {
    pub(crate) kube: Kube,
    admin: Client,
    token: String,
    _folder: TempDir,
}

impl Cluster {
    /// None, and the test skipped, without its programs. With a namespace and two service accounts.
    pub(crate) async fn start() -> Option<Self> {
        let api_server = weir_needs::provided_or_skip("WEIR_KUBE_APISERVER")?;
        let etcd = weir_needs::provided("WEIR_ETCD").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let kube = Kube::start(&etcd, &api_server, folder.path()).unwrap();
        let written = std::fs::read(kube.kubeconfig()).unwrap();
        let written: Value = serde_json::from_slice(&written).unwrap();
        let of = &written["clusters"][0]["cluster"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let ca = std::fs::read(text(&of["certificate-authority"])).unwrap();
        let admin = Client::new(&Server {
            url: text(&of["server"]),
            ca: Some(ca),
            identity: None,
        });
        let cluster = Self {
            kube,
            admin: admin.unwrap(),
            token: text(&written["users"][0]["user"]["token"]),
            _folder: folder,
        };
        cluster
            .post("/api/v1/namespaces", &named("weir-system"))
            .await;
        for account in ["weir-control", "stranger"] {
            cluster.post(ACCOUNTS, &named(account)).await;
        }
        Some(cluster)
    }

    /// The Role and its binding.
    pub(crate) async fn apply_role(&self, (role, namespace): (&str, &str)) {
        let rights = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
        for (document, kind) in role.split("\n---\n").zip(["roles", "rolebindings"]) {
            self.done(Method::POST, &format!("{rights}/{kind}"), document)
                .await;
        }
    }

    /// What the replicas' Lease says.
    pub(crate) async fn lease(&self) -> Value {
        self.done(Method::GET, LEASE, "").await["spec"].clone()
    }

    /// A token of a service account, as kubelets have it.
    pub(crate) async fn token(&self, account: &str) -> String {
        let path = format!("{ACCOUNTS}/{account}/token");
        let request = json!({ "spec": { "expirationSeconds": 600 } });
        let answer = self.post(&path, &request).await;
        answer["status"]["token"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn create(&self, slice: &Value) {
        self.post(SLICES, slice).await;
    }

    pub(crate) async fn replace(&self, number: usize, slice: &Value) {
        let path = format!("{SLICES}/rules-{number}");
        self.done(Method::PUT, &path, &slice.to_string()).await;
    }

    pub(crate) async fn delete(&self, number: usize) {
        let path = format!("{SLICES}/rules-{number}");
        self.done(Method::DELETE, &path, "").await;
    }

    async fn post(&self, path: &str, object: &Value) -> Value {
        self.done(Method::POST, path, &object.to_string()).await
    }

    /// The object at this path as it is written, by server-side apply; unknown fields are refused.
    pub(crate) async fn apply(&self, path: &str, object: &str) -> Value {
        let joint = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{joint}fieldManager=weir&force=true&fieldValidation=Strict");
        self.done(Method::PATCH, &path, object).await
    }

    /// The API server's answer, once it is a good one: after a start its own namespaces come with a delay.
    pub(crate) async fn done(&self, method: Method, path: &str, body: &str) -> Value {
        until(&format!("{method} {path}"), async || {
            self.ask(method.clone(), path, body).await
        })
        .await
    }

    /// The API server's answer; it takes YAML, of which JSON is a part. What it says against it is the error.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: &str) -> Result<Value, Value> {
        let mut headers = HeaderMap::new();
        let token = HeaderValue::from_str(&format!("Bearer {}", self.token)).unwrap();
        headers.insert(AUTHORIZATION, token);
        let kind = match method {
            Method::PATCH => "application/apply-patch+yaml",
            _ => "application/yaml",
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        let limits = Limits {
            timeout: Duration::from_secs(10),
            max_bytes: 1 << 20,
        };
        let body = body.to_owned().into();
        let answer = self.admin.send(method, path, headers, body, limits);
        let answer = answer.await.map_err(|error| json!(error.to_string()))?;
        let is_good = answer.status.is_success();
        let said = String::from_utf8_lossy(&answer.body).into_owned();
        match is_good {
            true => Ok(serde_json::from_str(&said).unwrap()),
            false => Err(json!(said)),
        }
    }
}

fn named(name: &str) -> Value {
    json!({ "metadata": { "name": name } })
}

/// A slice of the service with one pod, as its controller writes it.
pub(crate) fn slice(number: usize, state: &str) -> Value {
    let conditions = match state {
        "ready" => json!({ "ready": true, "serving": true, "terminating": false }),
        "terminating" => json!({ "ready": false, "serving": true, "terminating": true }),
        _ => json!({ "ready": false, "serving": false, "terminating": false }),
    };
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": format!("rules-{number}"),
            "labels": { "kubernetes.io/service-name": "rules" },
        },
        "addressType": "IPv4",
        "ports": [ { "name": "http", "port": 8080, "protocol": "TCP" } ],
        "endpoints": [ {
            "addresses": [format!("10.1.0.{number}")],
            "conditions": conditions,
            "targetRef": { "kind": "Pod", "namespace": "default", "name": format!("rules-{number}"), "uid": number.to_string() },
            "nodeName": "node-1",
            "zone": "zone-a",
        } ],
    })
}
