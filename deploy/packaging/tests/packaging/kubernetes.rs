// SPDX-License-Identifier: Apache-2.0
//! deploy/kubernetes builds, is what the published schemas allow, and holds configurations that the programs take.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Test;
use crate::certificate;
use crate::needs::{self, CRDS, KUBECTL_VALIDATE, KUSTOMIZE, PROGRAMS};
use crate::yaml;

pub(crate) const TESTS: &[Test] = &[
    (
        "every_overlay_builds_and_is_what_the_schemas_allow",
        &[KUSTOMIZE, KUBECTL_VALIDATE, CRDS],
        every_overlay_is_allowed,
    ),
    (
        "snippets_for_meshes_are_what_the_schemas_allow",
        &[KUBECTL_VALIDATE, CRDS],
        snippets_for_meshes_are_allowed,
    ),
    (
        "a_field_that_no_schema_has_is_refused",
        &[KUSTOMIZE, KUBECTL_VALIDATE, CRDS],
        an_unknown_field_is_refused,
    ),
    (
        "the_programs_take_the_configurations_in_the_overlays",
        &[KUSTOMIZE, PROGRAMS],
        the_programs_take_the_configurations,
    ),
    (
        "what_waits_is_not_started_again_and_what_hangs_is",
        &[],
        liveness_is_not_readiness,
    ),
    (
        "weir_control_runs_as_nobody_with_nothing_that_it_does_not_need",
        &[KUSTOMIZE],
        weir_control_runs_as_nobody,
    ),
];

const OVERLAYS: [&str; 8] = [
    "overlays/standalone",
    "overlays/endpoints",
    "overlays/policies",
    "overlays/replicas",
    "overlays/istio",
    "overlays/monitoring",
    "governor",
    "overlays/governor-cores",
];

pub(crate) fn build(overlay: &str) -> String {
    let folder = needs::root().join("deploy/kubernetes").join(overlay);
    let output = needs::succeed(KUSTOMIZE.command().arg("build").arg(folder));
    String::from_utf8(output.stdout).unwrap()
}

/// What the API server's own validation says against manifests; nothing if they are good.
fn refusal(manifests: &Path) -> Option<String> {
    let output = KUBECTL_VALIDATE
        .command()
        .args(["--version", "1.30", "--local-crds"])
        .arg(CRDS.path())
        .arg(manifests)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (!output.status.success()).then(|| String::from_utf8_lossy(&said).into_owned())
}

#[track_caller]
pub(crate) fn allowed(manifests: &Path) {
    if let Some(refusal) = refusal(manifests) {
        panic!("{refusal}");
    }
}

fn every_overlay_is_allowed() {
    let folder = TempDir::new().unwrap();
    for overlay in OVERLAYS {
        let file = folder.path().join(overlay.replace('/', "-") + ".yaml");
        fs::write(file, build(overlay)).unwrap();
    }
    allowed(folder.path());
}

fn snippets_for_meshes_are_allowed() {
    for folder in ["istio", "envoy-gateway"] {
        allowed(&needs::root().join("envoy-config").join(folder));
    }
}

fn an_unknown_field_is_refused() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("one.yaml");
    let wrong = [
        (
            build("overlays/standalone"),
            "readOnlyRootFilesystem",
            "readOnlyRootFileSystem",
        ),
        (build("overlays/istio"), "portLevelMtls", "portLevelMTLS"),
        (
            build("overlays/monitoring"),
            "podMetricsEndpoints",
            "podMetricEndpoints",
        ),
    ];
    for (text, right, typo) in wrong {
        assert!(text.contains(right));
        fs::write(&file, text.replace(right, typo)).unwrap();
        let said = refusal(&file).unwrap_or_default();
        assert!(said.contains(typo), "{typo} was let through: {said}");
    }
}

/// Of one kind and name.
pub(crate) fn find(documents: &[Value], kind: &str, name: &str) -> Value {
    let found = documents
        .iter()
        .find(|document| {
            let found = document["metadata"]["name"].as_str().unwrap_or_default();
            document["kind"] == kind && found.starts_with(name)
        })
        .unwrap_or_else(|| panic!("no {kind} {name}"));
    found.clone()
}

fn the_programs_take_the_configurations() {
    let cases = [
        ("overlays/standalone", "weir-control", &["--check"][..]),
        ("overlays/endpoints", "weir-control", &["--check"]),
        ("overlays/policies", "weir-control", &["--check"]),
        ("overlays/replicas", "weir-control", &["--check"]),
        ("overlays/istio", "weir-control", &["--check"]),
        ("governor", "weir-governor", &["run", "--check"]),
        (
            "overlays/governor-cores",
            "weir-governor",
            &["run", "--check"],
        ),
    ];
    for (overlay, program, flags) in cases {
        taken(&yaml::documents(&build(overlay)), program, flags);
    }
}

/// The program takes what is in its ConfigMap.
#[track_caller]
pub(crate) fn taken(documents: &[Value], program: &str, flags: &[&str]) {
    let folder = TempDir::new().unwrap();
    let map = find(documents, "ConfigMap", program);
    certificate::write(folder.path(), ["tls.crt", "tls.key", "ca.crt"]);
    let place = folder.path().to_str().unwrap();
    for (name, text) in map["data"].as_object().unwrap() {
        let text = text.as_str().unwrap().replace("/etc/weir-tls", place);
        fs::write(folder.path().join(name), text).unwrap();
    }
    needs::succeed(
        Command::new(PROGRAMS.path().join(program))
            .args(flags)
            // As each of several pods has it.
            .env("POD_IP", "10.1.0.7")
            .arg("--config")
            .arg(folder.path().join(format!("{program}.yaml"))),
    );
}

fn liveness_is_not_readiness() {
    let folder = needs::root().join("deploy/kubernetes");
    for (file, kind, name) in [
        ("control/deployment.yaml", "Deployment", "weir-control"),
        ("governor/daemonset.yaml", "DaemonSet", "weir-governor"),
    ] {
        let documents = yaml::documents(&yaml::read(&folder.join(file)));
        let pod = &find(&documents, kind, name)["spec"]["template"]["spec"];
        // Always is the default: the kubelet tries again, ever more seldom.
        assert_eq!(pod["restartPolicy"], Value::Null);
        let container = &pod["containers"][0];
        for (probe, path) in [
            ("startupProbe", "/live"),
            ("livenessProbe", "/live"),
            ("readinessProbe", "/ready"),
        ] {
            let asked = &container[probe]["httpGet"];
            assert_eq!(asked["path"], path, "{probe} of {name}");
            assert_eq!(asked["port"], "admin", "{probe} of {name}");
        }
    }
}

fn weir_control_runs_as_nobody() {
    let endpoints = json!([{
        "apiGroups": ["discovery.k8s.io"],
        "resources": ["endpointslices"],
        "verbs": ["get", "list", "watch"],
    }]);
    let lease = json!([
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": ["weir-control"],
            "verbs": ["get", "update"],
        },
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": ["create"],
        },
    ]);
    let policies = json!([
        { "apiGroups": ["weir.dev"], "resources": ["weirpolicies"], "verbs": ["get", "list", "watch"] },
        { "apiGroups": ["weir.dev"], "resources": ["weirpolicies/status"], "verbs": ["patch"] },
    ]);
    for (overlay, allowed) in [
        ("overlays/standalone", &[][..]),
        ("overlays/endpoints", &[&endpoints]),
        ("overlays/policies", &[&endpoints, &policies]),
        ("overlays/replicas", &[&lease]),
        ("overlays/istio", &[]),
    ] {
        let documents = yaml::documents(&build(overlay));
        let pod = &find(&documents, "Deployment", "weir-control")["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let security = &container["securityContext"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(
            pod["securityContext"]["seccompProfile"]["type"],
            "RuntimeDefault"
        );
        assert_eq!(security["readOnlyRootFilesystem"], true);
        assert_eq!(security["allowPrivilegeEscalation"], false);
        assert_eq!(security["capabilities"]["drop"][0], "ALL");
        assert_eq!(security["capabilities"]["add"], Value::Null);
        // What asks the API server needs one, and may do with it what is written here.
        assert_eq!(
            pod["automountServiceAccountToken"],
            !allowed.is_empty(),
            "{overlay}"
        );
        let rights = documents
            .iter()
            .filter(|document| document["kind"] == "Role");
        let rights: Vec<&Value> = rights.map(|role| &role["rules"]).collect();
        assert_eq!(rights, allowed, "{overlay}");
        assert!(
            documents
                .iter()
                .all(|document| document["kind"] != "ClusterRoleBinding")
        );
        // The ports of the Service and of probes are the container's.
        let ports = container["ports"].as_array().unwrap();
        let named = |name: &Value| ports.iter().any(|port| port["name"] == *name);
        let service = find(&documents, "Service", "weir-control");
        assert!(named(&service["spec"]["ports"][0]["targetPort"]));
        assert!(named(&container["readinessProbe"]["httpGet"]["port"]));
    }
}
