// SPDX-License-Identifier: Apache-2.0
//! What the Helm chart renders, applied to the real API server by a dry run, with its pods before Pod Security.

use std::process::Command;

use http::Method;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::tools;

/// Of a namespace as users make it.
const RESTRICTED: &str = include_str!("../../../deploy/kubernetes/control/namespace.yaml");

/// What is required.
const LEAST: [&str; 1] = ["control.clusters.rules.hosts[0].address=10.0.0.11:8080"];

/// All of the chart that the API server knows without the resources of others.
const VALUES: [&str; 7] = [
    "control.replicas=2",
    "control.policies.namespaces={default}",
    "control.policies.inferencePools=true",
    "control.clusters.rules.kubernetes.namespace=default",
    "control.clusters.rules.kubernetes.port=http",
    "governor.enabled=true",
    "governor.cores=true",
];

/// By Helm, with these options.
pub(crate) fn render(helm: &std::path::Path, values: &[String]) -> Vec<Value> {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(helm);
    command.args(["template", "weir", "--namespace", "weir-system"]);
    command.arg(tools::root().join("deploy/kubernetes/chart"));
    command.args(values);
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(variable, home.path());
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    documents.into_iter().filter(Value::is_object).collect()
}

/// Where the API server has objects of this one's kind.
pub(crate) fn place(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]);
    let group = match version.contains('/') {
        true => format!("/apis/{version}"),
        false => format!("/api/{version}"),
    };
    let kind = text(&object["kind"]).to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    };
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{group}/namespaces/{namespace}/{plural}"),
        None => format!("{group}/{plural}"),
    }
}

/// The first pod of a Deployment or a DaemonSet.
fn pod(object: &Value) -> Value {
    let mut pod = object["spec"]["template"].clone();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!("one");
    pod["metadata"]["namespace"] = object["metadata"]["namespace"].clone();
    pod
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_takes_all_of_the_chart_and_its_pods() {
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let helm = weir_needs::provided("WEIR_HELM").unwrap();
    cluster
        .apply("/api/v1/namespaces/weir-system", RESTRICTED)
        .await;
    let mut kinds = std::collections::BTreeSet::new();
    for values in [&LEAST[..], &VALUES] {
        let values = values.iter().flat_map(|value| ["--set", value]);
        let values: Vec<String> = values.map(str::to_owned).collect();
        let objects = render(&helm, &values);
        // What the others are in, and whose their pods are.
        let first = ["Namespace", "ServiceAccount"];
        for object in objects
            .iter()
            .filter(|it| first.iter().any(|kind| it["kind"] == *kind))
        {
            let name = object["metadata"]["name"].as_str().unwrap();
            let path = format!("{}/{name}", place(object));
            cluster.apply(&path, &object.to_string()).await;
        }
        for object in &objects {
            let name = object["metadata"]["name"].as_str().unwrap();
            let path = format!("{}/{name}?dryRun=All", place(object));
            cluster.apply(&path, &object.to_string()).await;
            kinds.insert(object["kind"].as_str().unwrap().to_owned());
        }
        for kind in ["Deployment", "DaemonSet"] {
            for object in objects.iter().filter(|it| it["kind"] == kind) {
                let mut pod = pod(object);
                let path = format!("{}?dryRun=All", place(&pod));
                cluster.done(Method::POST, &path, &pod.to_string()).await;
                // That it is looked at.
                pod["metadata"]["namespace"] = json!("weir-system");
                pod["spec"]["hostPID"] = json!(true);
                pod["spec"]["serviceAccountName"] = json!("weir-control");
                let path = format!("{}?dryRun=All", place(&pod));
                let said = cluster.ask(Method::POST, &path, &pod.to_string()).await;
                let said = said.unwrap_err().to_string();
                assert!(said.contains("violates PodSecurity"), "{said}");
            }
        }
    }
    assert_eq!(kinds.len(), 13, "{kinds:?}");
}
