// SPDX-License-Identifier: Apache-2.0
//! WeirPolicies in the real API server: its schema and admission policy, and a weir-control that makes clusters of them.

use std::path::Path;

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster::{Cluster, ENDPOINTS, slice};
use crate::control::hosts;
use crate::inside::{self, Inside};
use crate::waits::until;

const DEFINITION: &str = include_str!("../../../deploy/kubernetes/policies/weirpolicies.json");
const ADMISSION: &str = include_str!("../../../deploy/kubernetes/policies/admission.yaml");
const ROLES: &str = include_str!("../../../deploy/kubernetes/policies/clusterroles.yaml");
const POLICIES: (&str, &str) = (
    include_str!("../../../deploy/kubernetes/overlays/policies/role.yaml"),
    "default",
);

const POOLS: (&str, &str) = (
    include_str!("../../../deploy/kubernetes/overlays/policies/pools.yaml"),
    "default",
);

const ROLE_TO_READ: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: reads, namespace: NAMESPACE }
rules:
  - { apiGroups: [weir.dev], resources: [weirpolicies], verbs: [get, list, watch] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: reads, namespace: NAMESPACE }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: reads }
subjects: [ { kind: ServiceAccount, name: weir-control, namespace: weir-system } ]
"#;

const PLACE: &str = "/apis/weir.dev/v1alpha1/namespaces/default/weirpolicies";

struct World {
    cluster: Cluster,
    /// A kubeconfig, its token, and weir-control.yaml.
    folder: TempDir,
}

impl World {
    async fn start() -> Option<Self> {
        let cluster = Cluster::start().await?;
        cluster.apply_role(ENDPOINTS).await;
        cluster.apply_role(POLICIES).await;
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let path = format!("{definitions}/weirpolicies.weir.dev");
        cluster.apply(&path, DEFINITION).await;
        let admission = "/apis/admissionregistration.k8s.io/v1";
        let kinds = [
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
        ];
        for (document, kind) in ADMISSION.split("\n---\n").zip(kinds) {
            let path = format!("{admission}/{kind}/weirpolicies.weir.dev");
            cluster.apply(&path, document).await;
        }
        let rights = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        for (document, name) in ROLES.split("\n---\n").zip(["edit", "view"]) {
            let path = format!("{rights}/weirpolicies-{name}");
            cluster.apply(&path, document).await;
        }
        let world = Self {
            folder: tempfile::tempdir().unwrap(),
            cluster,
        };
        // The admission policy counts a moment after it was written.
        let twice = spec(json!({ "cache_shards": 3 }));
        until("an admission policy that counts", async || {
            match world.tried(&twice).await {
                Err(said) if said.contains("power of two") => Ok(()),
                said => Err(format!("{said:?}")),
            }
        })
        .await;
        Some(world)
    }

    /// Whether the server would take a policy.
    async fn tried(&self, spec: &Value) -> Result<(), String> {
        let path = format!("{PLACE}?dryRun=All&fieldValidation=Strict");
        let object = policy("tried", spec).to_string();
        let said = self.cluster.ask(Method::POST, &path, &object).await;
        said.map(drop).map_err(|said| said.to_string())
    }

    /// Writes a policy.
    async fn write(&self, name: &str, spec: &Value) {
        let object = policy(name, spec).to_string();
        let path = format!("{PLACE}/{name}");
        self.cluster.apply(&path, &object).await;
    }

    async fn control(&self) -> Inside {
        self.control_of("[default]").await
    }

    async fn control_of(&self, namespaces: &str) -> Inside {
        let token = self.cluster.token("weir-control").await;
        let kubeconfig = self.cluster.kube.kubeconfig_of(Path::new("token"));
        let free = "{ listen: \"127.0.0.1:0\" }";
        let policies = format!("{{ namespaces: {namespaces}, kubeconfig: kubeconfig }}");
        let text = format!("xds: {free}\nadmin: {free}\npolicies: {policies}\n");
        let files = [
            ("token", &token),
            ("kubeconfig", &kubeconfig),
            ("c.yaml", &text),
        ];
        for (name, contents) in files {
            std::fs::write(self.folder.path().join(name), contents).unwrap();
        }
        inside::start(self.folder.path().join("c.yaml")).await
    }

    /// The conditions of a policy, once `Accepted` and `Programmed` have these reasons.
    async fn says(&self, name: &str, accepted: &str, programmed: &str) -> Value {
        let path = format!("{PLACE}/{name}");
        until(&format!("{name}: {accepted}, {programmed}"), async || {
            let object = self.cluster.done(Method::GET, &path, "").await;
            let said = object["status"]["ancestors"][0]["conditions"].clone();
            let reasons = [&said[0]["reason"], &said[1]["reason"]];
            let is_newest = said[0]["observedGeneration"] == object["metadata"]["generation"];
            match reasons == [accepted, programmed] && is_newest {
                true => Ok(said),
                false => Err(said),
            }
        })
        .await
    }
}

fn spec(more: Value) -> Value {
    let target = json!({ "group": "", "kind": "Service", "name": "rules", "sectionName": "http" });
    let mut spec = json!({ "targetRefs": [target] });
    let fields = spec.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    spec
}

fn policy(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "weir.dev/v1alpha1",
        "kind": "WeirPolicy",
        "metadata": { "name": name, "namespace": "default" },
        "spec": spec,
    })
}

/// The cluster of the policy, once it looks like this; null where there is none.
async fn cluster(control: &Inside, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    until(what, async || {
        let page = control.page("/tables").await;
        let cluster = page["clusters"]["rules.default"].clone();
        match !page.is_null() && is(&cluster) {
            true => Ok(cluster),
            false => Err(page),
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_a_cluster_and_its_status_says_what_came_of_it() {
    let Some(mut world) = World::start().await else {
        return;
    };
    world
        .write("one", &spec(json!({ "policy": { "overload": "dagor" } })))
        .await;
    let control = world.control().await;
    // Known before anything is served.
    cluster(&control, "a cluster", |it| it["overload"] == "dagor").await;
    world.says("one", "Accepted", "NoHosts").await;
    world.cluster.create(&slice(1, "ready")).await;
    world.cluster.create(&slice(2, "ready")).await;
    let two = ["10.1.0.1:8080", "10.1.0.2:8080"];
    let is = |cluster: &Value| !cluster["version"].is_null() && hosts(cluster) == two;
    let found = cluster(&control, "hosts", is).await;
    assert_eq!(found["hosts"][0]["named_by"], "kubernetes");
    let said = world.says("one", "Accepted", "Programmed").await;
    assert_eq!(said[1]["message"], "2 hosts");

    // Another one for the same service waits until the first is gone.
    let none = spec(json!({ "policy": { "overload": "none" } }));
    world.write("two", &none).await;
    let said = world.says("two", "Conflicted", "Pending").await;
    let owner = "WeirPolicy default/one has the cluster rules.default";
    assert_eq!(said[0]["message"], owner);

    // What only weir-control sees is refused in its status, and the cluster stays as it is.
    let bad = json!({ "policy": { "overload": "dagor" }, "scrape": { "path": "metrics" } });
    world.write("one", &spec(bad)).await;
    let said = world.says("one", "Invalid", "Programmed").await;
    let message = said[0]["message"].as_str().unwrap();
    for part in ["spec.scrape.path: ", "what it said before stays in force"] {
        assert!(message.contains(part), "{message}");
    }
    let stays = cluster(&control, "the cluster", is).await;
    assert_eq!(stays["overload"], "dagor");

    // The API server is away: all stays, and a change is taken in when it is there again.
    world.cluster.kube.kill().unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    cluster(&control, "the cluster", is).await;
    world.cluster.kube.again().unwrap();
    let path = format!("{PLACE}/one");
    world.cluster.done(Method::DELETE, &path, "").await;
    cluster(&control, "the other policy", |it| {
        it["overload"] == "none" && is(it)
    })
    .await;
    world.says("two", "Accepted", "Programmed").await;

    let path = format!("{PLACE}/two");
    world.cluster.done(Method::DELETE, &path, "").await;
    cluster(&control, "no cluster", Value::is_null).await;
}

/// Its first letters come before the other's, so that it is asked and written first.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_denies_keeps_no_other_from_its_clusters() {
    let Some(world) = World::start().await else {
        return;
    };
    let cluster = &world.cluster;
    let namespaces = "/api/v1/namespaces";
    for name in ["aaa", "bbb"] {
        let namespace = json!({ "metadata": { "name": name } }).to_string();
        cluster.done(Method::POST, namespaces, &namespace).await;
    }
    // Of this one policies may be read, and no status written.
    let role = ROLE_TO_READ.replace("NAMESPACE", "bbb");
    cluster.apply_role((&role, "bbb")).await;
    let other = json!({ "apiVersion": "weir.dev/v1alpha1", "kind": "WeirPolicy", "metadata": { "name": "one" }, "spec": spec(json!({})) });
    let place = "/apis/weir.dev/v1alpha1/namespaces/bbb/weirpolicies";
    cluster.done(Method::POST, place, &other.to_string()).await;
    world.write("one", &spec(json!({}))).await;
    cluster.create(&slice(1, "ready")).await;
    let control = world.control_of("[aaa, bbb, default]").await;
    self::cluster(&control, "a cluster", |it| hosts(it) == ["10.1.0.1:8080"]).await;
    world.says("one", "Accepted", "Programmed").await;
    let page = control.page("/tables").await;
    assert!(page["clusters"]["rules.bbb"].is_object(), "{page}");
}

/// With a label, as a kubelet tells of it.
async fn pod(cluster: &Cluster, name: &str, ip: &str) {
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": "llama" } },
        "spec": { "containers": [ { "name": "engine", "image": "engine" } ], "automountServiceAccountToken": false },
    });
    cluster.done(Method::POST, pods, &pod.to_string()).await;
    let status = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "status": { "podIP": ip, "podIPs": [ { "ip": ip } ], "conditions": [ { "type": "Ready", "status": "True" } ] },
    });
    let path = format!("{pods}/{name}/status");
    cluster.apply(&path, &status.to_string()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_of_a_pool_has_the_pods_that_it_selects() {
    let Some(mut world) = World::start().await else {
        return;
    };
    let cluster = &world.cluster;
    cluster.apply_role(POOLS).await;
    let crds = weir_needs::provided("WEIR_CRDS").unwrap();
    let group = "inference.networking.k8s.io";
    let definition = std::fs::read_to_string(crds.join(format!("{group}_inferencepools.yaml")));
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let path = format!("{definitions}/inferencepools.{group}");
    cluster.apply(&path, &definition.unwrap()).await;
    let account = json!({ "metadata": { "name": "default" } }).to_string();
    // Its controller does not run here.
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    cluster.done(Method::POST, accounts, &account).await;
    let pool = |label: &str| {
        json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "InferencePool",
            "metadata": { "name": "rules", "namespace": "default" },
            "spec": {
                "selector": { "matchLabels": { "app": label } },
                "targetPorts": [ { "number": 8000 } ],
                "endpointPickerRef": { "name": "picker", "port": { "number": 9002 } },
            },
        })
        .to_string()
    };
    let place = format!("/apis/{group}/v1/namespaces/default/inferencepools/rules");
    let target = json!({ "group": group, "kind": "InferencePool", "name": "rules" });
    let spec = json!({
        "targetRefs": [target], "scrape": { "metrics": { "engine": "vllm" } },
    });
    world.write("llama", &spec).await;
    let control = world.control().await;
    let missing = |it: &Value| {
        let complaints = it["sources"]["kubernetes"]["complaints"].to_string();
        complaints.contains("has no InferencePool rules")
    };
    self::cluster(&control, "no pool", missing).await;
    // What the API server says when it is there again counts, though it is the same.
    let failed = |it: &Value| !it["sources"]["kubernetes"]["error"].is_null();
    world.cluster.kube.kill().unwrap();
    self::cluster(&control, "an error", failed).await;
    world.cluster.kube.again().unwrap();
    self::cluster(&control, "no error", |it| !failed(it) && missing(it)).await;
    let cluster = &world.cluster;
    cluster.apply(&place, &pool("llama")).await;
    pod(cluster, "llama-1", "10.1.0.1").await;
    pod(cluster, "llama-2", "10.1.0.2").await;
    let two = ["10.1.0.1:8000", "10.1.0.2:8000"];
    self::cluster(&control, "pods", |it| hosts(it) == two).await;
    world.says("llama", "Accepted", "Programmed").await;
    let path = "/api/v1/namespaces/default/pods/llama-1";
    let now = json!({ "gracePeriodSeconds": 0 }).to_string();
    cluster.done(Method::DELETE, path, &now).await;
    self::cluster(&control, "one pod", |it| hosts(it) == two[1..]).await;
    // Another selector, which nobody has: the last hosts stay.
    cluster.apply(&place, &pool("other")).await;
    let nobody = |it: &Value| {
        let complaints = it["sources"]["kubernetes"]["complaints"].to_string();
        complaints.contains("no pod is selected") && hosts(it) == two[1..]
    };
    self::cluster(&control, "nobody", nobody).await;
    cluster.apply(&place, &pool("llama")).await;
    pod(cluster, "llama-3", "10.1.0.3").await;
    let now = ["10.1.0.2:8000", "10.1.0.3:8000"];
    self::cluster(&control, "pods again", |it| hosts(it) == now).await;
}

/// What weir-control says of the same spec.
fn taken(spec: &Value) -> bool {
    let spec = spec.to_string();
    weir_control::policies::read("default/tried", spec.as_bytes()).is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_refuses_what_weir_control_would_refuse() {
    let Some(world) = World::start().await else {
        return;
    };
    let planned = json!({ "selection": "caching_plan" });
    let good = [
        json!({}),
        json!({ "policy": planned, "planner": { "moved_per_minute": 0.5 } }),
        json!({ "policy": { "mode": "10%", "crossing": "5ms", "hot_cold_quantile": 0.5 } }),
        json!({ "policy": { "selection": "dynamic", "crossing": "0s", "withdraw": false } }),
        json!({ "policy": { "selection": "dynamic", "beside": "estimate", "crossing": "1s" } }),
        json!({ "dagor": { "target": "500ms", "low": "499ms", "high": "1.5s", "alpha": 0.1 } }),
        json!({ "scrape": { "metrics": { "engine": "vllm" }, "max_bytes": "2MiB", "tls": {} } }),
        json!({ "cache": { "max_keys": 1000 }, "cache_shards": 64, "metrics_port": 9100 }),
        json!({ "policy": { "breaker_queued_jobs": 5, "dynamic_breaker_least_queued_jobs": 5 } }),
    ];
    for spec in good.map(spec) {
        assert_eq!(world.tried(&spec).await, Ok(()), "{spec}");
        assert!(taken(&spec), "{spec}");
    }
    let target = |more: Value| {
        let mut spec = spec(json!({}));
        let targets = spec["targetRefs"].as_array_mut().unwrap();
        match more.is_null() {
            true => targets.push(targets[0].clone()),
            false => targets[0]
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone()),
        }
        spec
    };
    let bad = [
        (spec(json!({ "hosts": [] })), "spec.hosts"),
        (
            spec(json!({ "scrape": { "tls": { "ca": "/etc/passwd" } } })),
            "spec.scrape.tls.ca",
        ),
        (
            spec(json!({ "policy": { "overload": "best" } })),
            "spec.policy.overload",
        ),
        (
            spec(json!({ "policy": { "ranked_hosts": 9 } })),
            "spec.policy.ranked_hosts",
        ),
        (
            spec(json!({ "policy": { "stale_after": "5" } })),
            "spec.policy.stale_after",
        ),
        (
            spec(json!({ "cache": { "max_bytes": "5" } })),
            "spec.cache.max_bytes",
        ),
        (spec(json!({ "metrics_port": 70_000 })), "spec.metrics_port"),
        (spec(json!({ "policy": planned })), "spec.planner"),
        (spec(json!({ "planner": {} })), "spec.planner"),
        (
            spec(json!({ "policy": planned, "planner": {}, "cache": {} })),
            "spec.cache",
        ),
        (
            spec(json!({ "policy": planned, "planner": {}, "cache_shards": 0 })),
            "spec.cache_shards",
        ),
        (spec(json!({ "cache_shards": 12 })), "spec.cache_shards"),
        (
            spec(json!({ "policy": { "beside": "estimate" } })),
            "spec.policy.beside",
        ),
        (
            spec(json!({ "policy": { "selection": "random", "crossing": "1ms" } })),
            "spec.policy.crossing",
        ),
        (
            spec(json!({ "policy": { "mode": "101%" } })),
            "spec.policy.mode",
        ),
        (
            spec(json!({ "policy": { "dynamic_breaker_least_queued_jobs": 101 } })),
            "spec.policy.dynamic_breaker_least_queued_jobs",
        ),
        (spec(json!({ "dagor": { "low": "2s" } })), "spec.dagor.low"),
        (
            spec(json!({ "dagor": { "target": "1s", "high": "1000ms" } })),
            "spec.dagor.high",
        ),
        (
            target(json!({ "kind": "InferencePool" })),
            "spec.targetRefs",
        ),
        (
            target(json!({ "kind": "Gateway" })),
            "spec.targetRefs[0].kind",
        ),
        (
            target(json!({ "name": "my.service" })),
            "spec.targetRefs[0].name",
        ),
        (
            target(json!({ "sectionName": "Http" })),
            "spec.targetRefs[0].sectionName",
        ),
        (
            target(json!({ "group": "apps" })),
            "spec.targetRefs[0].group",
        ),
        (target(Value::Null), "spec.targetRefs"),
    ];
    for (spec, field) in bad {
        let said = world.tried(&spec).await.unwrap_err();
        assert!(said.contains(field), "{spec}: {said}");
        assert!(!taken(&spec), "{spec}");
    }
}
