// SPDX-License-Identifier: Apache-2.0
//! All of it at once: the chart's objects in the API server, two weir-control by them, a gateway, a service whose pods are
//! processes, and k6. Pods have addresses that no endpoint may have on a loopback interface of everybody's, so this runs in
//! a network of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use weir_processes::apart;

use crate::chart::{place, render};
use crate::client::Caller;
use crate::cluster::{Cluster, slice};
use crate::config::{bootstrap_of_both, merge, write};
use crate::group::Replica;
use crate::process::{Process, worker_program};
use crate::sidecar::Sidecar;
use crate::tools;
use crate::waits::until;

const NAME: &str =
    "traffic::nothing_fails_while_the_leader_is_killed_a_pod_leaves_and_the_api_server_is_away";

/// Addresses of pods, and a route by which the API server looks for its own.
const PODS: &str = "for n in 1 2 3; do ip address add 10.1.0.$n/32 dev lo; done
ip route add default dev lo
";

/// k6 is done after a fifth of it.
const LONGEST: &str = "300";

/// Requests of forty keys, every one of which is to be answered, with 200. On a machine that is busy with other things k6
/// may not get to send them all.
const SCRIPT: &str = r#"
import http from "k6/http";
import { check } from "k6";
export const options = {
  scenarios: { all: {
    executor: "constant-arrival-rate", rate: 60, timeUnit: "1s", duration: "40s", preAllocatedVUs: 300,
  } },
  thresholds: { checks: ["rate==1"], http_req_failed: ["rate==0"], iterations: ["count>1800"] },
};
export default function () {
  const key = `k${Math.floor(Math.random() * 40)}`;
  const answer = http.get(`http://${__ENV.GATEWAY}/`, { headers: { "x-weir-key": key }, timeout: "20s" });
  check(answer, { "answered": (it) => it.status === 200, "by a named host": (it) => "X-Weir-Host" in it.headers });
}
"#;

fn pod(number: usize) -> SocketAddr {
    format!("10.1.0.{number}:8080").parse().unwrap()
}

/// The chart as users give it values: replicas, hosts that are a service's endpoints, and the gateway's resources.
fn values(folder: &Path) -> PathBuf {
    let values = json!({ "control": {
        "replicas": 2,
        "lease": { "duration": "5s" },
        "tls": { "secretName": "" },
        "clusters": { "rules": {
            "kubernetes": { "namespace": "default", "service": "rules", "port": "http" },
            "scrape": { "interval": "200ms" },
            "cache": { "interval": "200ms" },
        } },
        "config": { "standalone": {
            "filter": { "wasm": tools::filter(), "delivery": "path", "config": { "debug": true } },
            "listeners": [ { "name": "gateway", "address": "127.0.0.1:0", "cluster": "rules" } ],
        } },
    } });
    write(folder, "values.yaml", &values);
    folder.join("values.yaml")
}

/// The configuration that the chart put into the API server, at a place and with the rights that a pod would have.
async fn configuration(cluster: &Cluster, name: &str, folder: &Path) -> Value {
    let path = "/api/v1/namespaces/weir-system/configmaps/weir-control";
    let map = cluster.done(http::Method::GET, path, "").await;
    let text = map["data"]["weir-control.yaml"].as_str().unwrap();
    let mut config: Value = serde_saphyr::from_str(text).unwrap();
    let kubeconfig = folder.join("kubeconfig");
    let here = json!({
        "xds": { "listen": "127.0.0.1:0" },
        "admin": { "listen": "127.0.0.1:0" },
        "replicas": {
            "address": "127.0.0.1:0", "name": name, "lease": { "kubeconfig": kubeconfig },
        },
        "clusters": { "rules": { "kubernetes": { "kubeconfig": kubeconfig } } },
    });
    merge(&mut config, here);
    config
}

fn start_pod(number: usize, folder: &Path) -> Process {
    let mut command = Command::new(worker_program());
    let address = pod(number).to_string();
    command.args(["--emulate", "--listen", &address]);
    Process::start(&mut command, &folder.join(format!("pod-{number}.log")))
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_fails_while_the_leader_is_killed_a_pod_leaves_and_the_api_server_is_away() {
    if weir_needs::provided_or_skip("WEIR_KUBE_APISERVER").is_none() {
        return;
    }
    let Some(folder) = apart::folder() else {
        let folder = TempDir::new().unwrap();
        return apart::run(NAME, LONGEST, PODS, folder.path()).unwrap();
    };
    let k6 = weir_needs::provided("WEIR_K6").unwrap();
    let mut cluster = Cluster::start().await.unwrap();
    let helm = weir_needs::provided("WEIR_HELM").unwrap();
    let of_chart = ["--values".to_owned(), values(&folder).display().to_string()];
    for object in render(&helm, &of_chart) {
        let name = object["metadata"]["name"].as_str().unwrap();
        cluster
            .apply(&format!("{}/{name}", place(&object)), &object.to_string())
            .await;
    }
    let token = folder.join("token");
    std::fs::write(&token, cluster.token("weir-control").await).unwrap();
    let kubeconfig = cluster.kube.kubeconfig_of(&token);
    std::fs::write(folder.join("kubeconfig"), kubeconfig).unwrap();

    let mut pods: Vec<Process> = (1..=3).map(|number| start_pod(number, &folder)).collect();
    for number in 1..=3 {
        cluster.create(&slice(number, "ready")).await;
    }
    let a = Replica::with("a", &configuration(&cluster, "a", &folder).await);
    a.leads().await;
    let b = Replica::with("b", &configuration(&cluster, "b", &folder).await);
    b.follows(&a).await;
    let config = bootstrap_of_both([a.xds, b.xds], &[("port_value: 9901", "port_value: 0")]);
    let gateway = Sidecar::start_with(&config, 2).await;
    let address = gateway.listener("gateway").await;
    until("tables", async || {
        let decided = Caller::is_decided_by_tables(address).await;
        decided.then_some(()).ok_or("no table yet")
    })
    .await;

    let script = folder.join("script.js");
    std::fs::write(&script, SCRIPT).unwrap();
    let mut command = Command::new(k6);
    command
        .args([
            "run",
            "--address",
            "",
            "--no-color",
            "--no-usage-report",
            "--quiet",
        ])
        .args(["--env", &format!("GATEWAY={address}")])
        .arg(&script);
    let log = folder.join("k6.log");
    let k6 = std::fs::File::create(&log).unwrap();
    let mut k6 = command
        .stdin(Stdio::null())
        .stdout(k6.try_clone().unwrap())
        .stderr(k6)
        .spawn()
        .unwrap();
    let pause = async || tokio::time::sleep(Duration::from_secs(3)).await;
    pause().await;

    // The leader has no time to say anything.
    a.signal("KILL");
    let killed = a;
    assert_eq!(b.leads().await, 2);
    drop(killed);

    // A pod leaves as Kubernetes lets it: it ends, is asked to, and is gone when it has done what it had.
    cluster.replace(1, &slice(1, "terminating")).await;
    let drains = |page: &Value| page["clusters"]["rules"]["hosts"][0]["state"] == "draining";
    b.until("a host that drains", drains).await;
    pause().await;
    pods[0].signal("TERM");
    cluster.delete(1).await;
    let two = |page: &Value| page["clusters"]["rules"]["hosts"].as_array().map(Vec::len) == Some(2);
    b.until("two hosts", two).await;

    // Nobody answers for a while; then it comes back.
    cluster.kube.kill().unwrap();
    pause().await;
    cluster.kube.again().unwrap();
    pods[0] = start_pod(1, &folder);
    cluster.create(&slice(1, "ready")).await;
    let three =
        |page: &Value| page["clusters"]["rules"]["hosts"].as_array().map(Vec::len) == Some(3);
    b.until("three hosts", three).await;

    assert!(k6.try_wait().unwrap().is_none(), "all of it was under load");
    let ended = tokio::task::spawn_blocking(move || k6.wait())
        .await
        .unwrap();
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(ended.unwrap().success(), "{said}\n{}", b.log());
}
