// SPDX-License-Identifier: Apache-2.0
//! The chart renders what the overlays have, and refuses values that it does not know.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::Test;
use crate::kubernetes::{allowed, build, find, taken};
use crate::needs::{self, CRDS, HELM, KUBECTL_VALIDATE, KUSTOMIZE, PROGRAMS};
use crate::yaml;

pub(crate) const TESTS: &[Test] = &[
    (
        "the_chart_renders_what_the_overlays_have",
        &[HELM, KUSTOMIZE],
        the_same_as_overlays,
    ),
    (
        "helm_finds_nothing_wrong_with_the_chart_and_it_has_the_projects_version",
        &[HELM],
        linted,
    ),
    (
        "unknown_and_wrong_values_of_the_chart_are_refused_by_name",
        &[HELM],
        wrong_values_are_refused,
    ),
    (
        "all_of_the_chart_is_what_the_schemas_allow",
        &[HELM, KUBECTL_VALIDATE, CRDS],
        all_is_allowed,
    ),
    (
        "what_the_chart_gives_by_default_is_not_mixed_with_what_is_given",
        &[HELM],
        defaults_are_replaced,
    ),
    (
        "the_schema_of_the_chart_has_every_section_of_the_governors_reference",
        &[],
        every_section_is_known,
    ),
    (
        "a_pod_of_the_chart_is_made_anew_by_what_needs_a_restart_and_by_nothing_else",
        &[HELM],
        pods_are_replaced,
    ),
    (
        "the_chart_gives_no_rights_beside_a_kubeconfig_and_names_the_release_in_others_namespaces",
        &[HELM],
        rights_are_few_and_named,
    ),
    (
        "names_and_files_in_the_chart_are_text_whatever_they_look_like",
        &[HELM],
        all_is_quoted,
    ),
    (
        "without_its_rules_the_chart_renders_nothing",
        &[HELM],
        rules_are_required,
    ),
    (
        "the_programs_take_the_configurations_in_the_chart",
        &[HELM, PROGRAMS],
        the_programs_take_them,
    ),
];

type Objects = BTreeMap<String, Value>;

const NAMESPACE: &str = "weir-system";

/// Nothing but what is required, as the overlays have it.
fn least() -> Value {
    let hosts = needs::root().join("deploy/kubernetes/control/hosts.yaml");
    json!({ "control": {
        "clusters": { "rules": {
            "policy": { "overload": "dagor" }, "scrape": {}, "hosts_file": "hosts.yaml",
        } },
        "files": { "hosts.yaml": yaml::read(&hosts) },
    } })
}

/// These beside what is required.
fn with(control: Value, more: Value) -> Value {
    let mut values = least();
    let extend = |of: &mut Value, by: Value| {
        let fields = of.as_object_mut().unwrap();
        fields.extend(by.as_object().unwrap().clone());
    };
    extend(&mut values["control"], control);
    extend(&mut values, more);
    values
}

/// Everything that can be chosen.
fn all() -> Value {
    json!({
        "control": {
            "replicas": 2,
            "clusters": {
                "rules": {
                    "policy": { "overload": "dagor" },
                    "kubernetes": { "namespace": "shop", "service": "rules", "port": "http" },
                },
                "build": { "hosts_file": "hosts.yaml" },
            },
            "config": { "publish": { "interval": "500ms" }, "memory": { "limit": "512MiB" } },
            "files": { "hosts.yaml": "- { address: \"10.0.0.11:8080\" }\n" },
            "policies": { "namespaces": ["search", "shop"], "inferencePools": true },
            "podLabels": { "team": "search" },
            "podAnnotations": { "note": "one" },
            "nodeSelector": { "disk": "ssd" },
            "tolerations": [ { "key": "a", "operator": "Exists" } ],
            "affinity": { "nodeAffinity": {} },
            "image": { "digest": format!("sha256:{:064}", 7), "pullPolicy": "Always" },
            "extraVolumes": [ { "name": "filter", "emptyDir": {} } ],
            "extraVolumeMounts": [ { "name": "filter", "mountPath": "/filter" } ],
            "extraEnv": [ { "name": "RUST_LOG", "value": "debug" } ],
        },
        "governor": {
            "enabled": true, "cores": true, "podAnnotations": { "note": "one" },
            "extraVolumes": [ { "name": "mesh", "emptyDir": {} } ],
            "extraVolumeMounts": [ { "name": "mesh", "mountPath": "/mesh" } ],
            "extraEnv": [ { "name": "RUST_LOG", "value": "debug" } ],
        },
        "listenAddress": "[::]",
        "monitoring": { "podMonitors": true, "rules": true, "labels": { "release": "prometheus" } },
        "imagePullSecrets": [ { "name": "registry" } ],
    })
}

fn helm(command: &str, values: &Value) -> (TempDir, Command) {
    let folder = TempDir::new().unwrap();
    // What is JSON is YAML.
    let file = folder.path().join("values.yaml");
    fs::write(&file, values.to_string()).unwrap();
    let mut helm = HELM.command();
    helm.arg(command);
    if command == "template" {
        helm.arg("weir");
    }
    helm.arg(needs::root().join("deploy/kubernetes/chart"))
        .args(["--namespace", NAMESPACE, "--values"])
        .arg(&file)
        // Nothing of the user's is read or written.
        .env("HELM_CACHE_HOME", folder.path())
        .env("HELM_CONFIG_HOME", folder.path())
        .env("HELM_DATA_HOME", folder.path());
    (folder, helm)
}

fn render(values: &Value) -> String {
    let (_folder, mut helm) = helm("template", values);
    String::from_utf8(needs::succeed(&mut helm).stdout).unwrap()
}

/// What an object says, apart from whose it is: Helm and kustomize label what they make, and kustomize puts a sum into
/// the name of a ConfigMap where the chart puts one into an annotation.
fn said(mut object: Value) -> Value {
    let is_map = object["kind"] == "ConfigMap";
    let fields = |of: &mut Value, path: &str, change: &dyn Fn(&mut Map<String, Value>)| {
        let found = of.pointer_mut(path).and_then(Value::as_object_mut);
        found.into_iter().for_each(change);
    };
    fields(&mut object, "/metadata/labels", &|labels| {
        let theirs = ["part-of", "instance", "managed-by", "chart"];
        labels.retain(|name, _| !theirs.iter().any(|it| name.ends_with(&format!("/{it}"))));
    });
    fields(&mut object, "/metadata", &|metadata| {
        metadata.retain(|name, value| name != "labels" || value != &json!({}));
        if is_map {
            metadata.insert("name".into(), json!("weir"));
        }
    });
    fields(&mut object, "/data", &|files| {
        for text in files.values_mut() {
            *text = yaml::documents(text.as_str().unwrap()).remove(0);
        }
    });
    fields(&mut object, "/spec/template/metadata", &|metadata| {
        metadata.remove("annotations");
    });
    let volumes = object.pointer_mut("/spec/template/spec/volumes");
    for volume in volumes
        .into_iter()
        .flat_map(|it| it.as_array_mut().unwrap())
    {
        fields(volume, "/configMap", &|map| {
            map.insert("name".into(), json!("weir"));
        });
    }
    object
}

/// By kind, namespace and name.
fn by_name(text: &str) -> Objects {
    let documents = yaml::documents(text).into_iter().filter(Value::is_object);
    documents
        .map(said)
        .map(|object| {
            let metadata = &object["metadata"];
            let name = [&object["kind"], &metadata["namespace"], &metadata["name"]];
            (json!(name).to_string(), object)
        })
        .collect()
}

/// The overlay's own file.
fn cores() -> Value {
    let file = "deploy/kubernetes/overlays/governor-cores/weir-governor.yaml";
    let mut config = yaml::documents(&yaml::read(&needs::root().join(file))).remove(0);
    // The chart's.
    config.as_object_mut().unwrap().remove("admin");
    json!({ "governor": { "enabled": true, "cores": true, "config": config } })
}

fn the_same_as_overlays() {
    let asked = json!({ "clusters": { "rules": {
        "policy": { "overload": "dagor" },
        "scrape": {},
        "kubernetes": { "namespace": "default", "service": "rules", "port": "http" },
    } } });
    let none = || json!({});
    let governor = json!({ "governor": { "enabled": true } });
    let monitored =
        json!({ "monitoring": { "podMonitors": true }, "governor": { "enabled": true } });
    let policies = json!({ "clusters": {}, "policies": { "namespaces": ["default"] } });
    let cases = [
        ("overlays/standalone", least()),
        ("overlays/endpoints", with(asked, none())),
        ("overlays/policies", with(policies, none())),
        ("overlays/replicas", with(json!({ "replicas": 2 }), none())),
        ("governor", with(none(), governor)),
        ("overlays/governor-cores", with(none(), cores())),
        ("overlays/monitoring", with(none(), monitored)),
    ];
    for (overlay, values) in cases {
        let chart = by_name(&render(&values));
        let mut compared = 0;
        for (name, object) in by_name(&build(overlay)) {
            // Helm's user makes the release's own.
            if object["kind"] == "Namespace" && object["metadata"]["name"] == NAMESPACE {
                continue;
            }
            // Helm installs it before the templates.
            if object["kind"] == "CustomResourceDefinition" {
                let file = needs::root().join("deploy/kubernetes/chart/crds/weirpolicies.json");
                let file: Value = serde_json::from_str(&yaml::read(&file)).unwrap();
                assert_eq!(said(file), object);
                continue;
            }
            // Elsewhere the chart says whose it is.
            let of = |part: &str| name.replace(part, &format!("{part}-{NAMESPACE}"));
            let named = match name.contains("-endpoints") {
                true => of("-endpoints"),
                false => of("-policies"),
            };
            let Some(rendered) = chart.get(&name).or_else(|| chart.get(&named)) else {
                panic!(
                    "{overlay}: the chart has no {name}, only {:?}",
                    chart.keys()
                )
            };
            let mut rendered = rendered.clone();
            for place in ["/metadata/name", "/roleRef/name"] {
                if let (Some(own), Some(theirs)) =
                    (rendered.pointer_mut(place), object.pointer(place))
                    && *own == format!("{}-{NAMESPACE}", theirs.as_str().unwrap())
                {
                    *own = theirs.clone();
                }
            }
            // The chart writes the default, so that it can be chosen.
            if let Some(replicas) = rendered.pointer_mut("/data/weir-control.yaml/replicas/lease") {
                assert_eq!(replicas["duration"].take(), "15s");
                replicas.as_object_mut().unwrap().remove("duration");
            }
            assert_eq!(rendered, object, "{overlay}: {name}");
            compared += 1;
        }
        assert!(compared >= 2, "{overlay}");
    }
    let (chart, overlay) = (render(&least()), build("overlays/standalone"));
    let counts = [chart, overlay].map(|text| by_name(&text).len());
    assert_eq!(counts[0], counts[1] - 1, "all but the namespace");
}

fn linted() {
    for values in [least(), all()] {
        let (_folder, mut helm) = helm("lint", &values);
        needs::succeed(helm.arg("--strict"));
    }
    let chart = yaml::documents(&yaml::read(
        &needs::root().join("deploy/kubernetes/chart/Chart.yaml"),
    ));
    for field in ["version", "appVersion"] {
        assert_eq!(chart[0][field], env!("CARGO_PKG_VERSION"));
    }
}

fn wrong_values_are_refused() {
    let cases = [
        (
            json!({}),
            "control.clusters: names no cluster; at least one is needed",
        ),
        (
            json!({ "contol": {} }),
            "at '': additional properties 'contol' not allowed",
        ),
        (
            json!({ "control": { "replica": 2 } }),
            "at '/control': additional properties 'replica' not allowed",
        ),
        (
            json!({ "control": { "replicas": 0 } }),
            "at '/control/replicas': minimum: got 0, want 1",
        ),
        (
            json!({ "control": { "replicas": "two" } }),
            "at '/control/replicas': got string, want integer",
        ),
        (
            json!({ "control": { "config": { "xds": {} } } }),
            "at '/control/config': additional properties 'xds' not allowed",
        ),
        (
            json!({ "control": { "image": { "digest": "latest" } } }),
            "at '/control/image/digest': 'latest' does not match pattern",
        ),
        (
            json!({ "control": { "clusters": { "rules": { "kubernetes": {} } } } }),
            "at '/control/clusters/rules/kubernetes': missing property 'namespace'",
        ),
        (
            json!({ "control": { "policies": { "namespaces": ["Shop"] } } }),
            "at '/control/policies/namespaces/0': 'Shop' does not match pattern",
        ),
        (
            json!({ "control": { "files": { "a/b": "" } } }),
            "at '/control/files': additional properties 'a/b' not allowed",
        ),
        (
            with(json!({ "files": { "weir-control.yaml": "" } }), json!({})),
            "control.files: the chart writes weir-control.yaml",
        ),
        (
            json!({ "governor": { "config": { "admin": {} } } }),
            "at '/governor/config': additional properties 'admin' not allowed",
        ),
        (
            json!({ "governor": { "config": { "policy": { "performance": {}, "powersave": {} } } } }),
            "at '/governor/config/policy': maxProperties: got 2, want 1",
        ),
        (
            json!({ "control": { "podLabels": { "app.kubernetes.io/name": "mine" } } }),
            "at '/control/podLabels/app.kubernetes.io~1name': false schema",
        ),
        (
            json!({ "governor": { "podLabels": { "app.kubernetes.io/name": "mine" } } }),
            "at '/governor/podLabels/app.kubernetes.io~1name': false schema",
        ),
        (
            json!({ "monitoring": { "rules": "yes" } }),
            "at '/monitoring/rules': got string, want boolean",
        ),
    ];
    for (values, expected) in cases {
        let (_folder, mut helm) = helm("template", &values);
        let output = helm.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{values}");
        assert!(said.contains(expected), "{values}: {said}");
    }
}

fn helm_takes(values: &Value) -> bool {
    helm("template", values)
        .1
        .output()
        .unwrap()
        .status
        .success()
}

fn object(values: &Value, kind: &str, name: &str) -> Value {
    find(&yaml::documents(&render(values)), kind, name)
}

fn defaults_are_replaced() {
    let governed = |governor: Value| {
        let mut values = with(json!({}), json!({ "governor": { "enabled": true } }));
        let fields = values["governor"].as_object_mut().unwrap();
        fields.extend(governor.as_object().unwrap().clone());
        values
    };
    let written = |config: Value| {
        let map = object(
            &governed(json!({ "config": config })),
            "ConfigMap",
            "weir-governor",
        );
        let text = map["data"]["weir-governor.yaml"].as_str().unwrap();
        let mut file = yaml::documents(text).remove(0);
        file.as_object_mut().unwrap().remove("admin");
        file
    };
    let default = json!({ "schedutil": {} });
    assert_eq!(written(json!({})), json!({ "policy": default }));
    let tick = json!({ "tick": "10ms" });
    assert_eq!(written(tick)["policy"], default);
    for config in [
        json!({ "policy": { "performance": {} } }),
        json!({ "core_policy": { "blocks": {} }, "service": { "cgroup": "a" } }),
    ] {
        assert_eq!(written(config.clone()), config);
    }
    let listens = |more: Value| {
        let map = object(&with(json!({}), more), "ConfigMap", "weir-control");
        let text = map["data"]["weir-control.yaml"].as_str().unwrap();
        let file = yaml::documents(text).remove(0);
        [&file["xds"], &file["admin"]].map(|it| it["listen"].as_str().unwrap().to_owned())
    };
    let anywhere = ["0.0.0.0:18000", "0.0.0.0:19000"];
    assert_eq!(listens(json!({})), anywhere);
    // As of values that are older than it.
    assert_eq!(listens(json!({ "listenAddress": null })), anywhere);
    let both = json!({ "listenAddress": "[::]" });
    assert_eq!(listens(both), ["[::]:18000", "[::]:19000"]);
    let selector = |values: &Value| {
        let set = object(values, "DaemonSet", "weir-governor");
        set["spec"]["template"]["spec"]["nodeSelector"].clone()
    };
    let ours = json!({ "weir-governor": "true" });
    assert_eq!(selector(&governed(json!({}))), ours);
    let mine = json!({ "disk": "ssd" });
    assert_eq!(selector(&governed(json!({ "nodeSelector": mine }))), mine);
    let callers = |policy: Value| {
        let values = with(json!({ "networkPolicy": policy }), json!({}));
        let policy = object(&values, "NetworkPolicy", "weir-control");
        policy["spec"]["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"].clone()
    };
    assert_eq!(callers(json!({})), json!({ "weir-callers": "true" }));
    assert_eq!(callers(json!({ "callers": mine })), mine);
}

fn every_section_is_known() {
    let reference = yaml::read(&needs::root().join("node-governor/CONFIGURATION.md"));
    let fields = reference
        .lines()
        .filter_map(|line| line.strip_prefix("| `"));
    let sections = fields.filter_map(|field| field.split(['.', '[', '`']).next());
    let mut sections: BTreeSet<&str> = sections.collect();
    assert!(sections.remove("admin"), "the chart's: {sections:?}");
    let schema = yaml::read(&needs::root().join("deploy/kubernetes/chart/values.schema.json"));
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let known = &schema["properties"]["governor"]["properties"]["config"]["properties"];
    let known: BTreeSet<&str> = known.as_object().unwrap().keys().map(|it| &**it).collect();
    assert_eq!(known, sections);
}

fn pods_are_replaced() {
    let pod = |control: Value| {
        let values = with(control, json!({}));
        object(&values, "Deployment", "weir-control")["spec"]["template"].clone()
    };
    let two = |more: Value| {
        let mut control = json!({ "replicas": 2 });
        let fields = control.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        pod(control)
    };
    let before = two(json!({}));
    assert_eq!(
        before,
        two(json!({ "config": { "publish": { "interval": "1s" } } }))
    );
    assert_eq!(before, two(json!({ "lease": { "duration": "15s" } })));
    for more in [
        json!({ "lease": { "duration": "20s" } }),
        json!({ "config": { "discovery": { "max_streams": 100 } } }),
        json!({ "config": { "reports": { "max_proxies": 10 } } }),
        json!({ "config": { "receipts": { "file": "/a" } } }),
        json!({ "policies": { "namespaces": ["shop"] } }),
    ] {
        assert_ne!(before, two(more.clone()), "{more}");
    }
    let takes = |duration: &str| {
        let control = json!({ "replicas": 2, "lease": { "duration": duration } });
        helm_takes(&with(control, json!({})))
    };
    // As weir-control has it.
    for duration in [
        "5s", "9s", "10s", "999s", "1000s", "3599s", "3600s", "1m", "60m",
    ] {
        assert!(takes(duration), "{duration}");
    }
    for duration in [
        "0s", "4s", "3601s", "4000s", "0m", "61m", "3600m", "5500ms", "5", "",
    ] {
        assert!(!takes(duration), "{duration}");
    }
}

fn rights_are_few_and_named() {
    let hosts = |name: &str, more: Value| {
        let mut hosts = json!({ "namespace": name, "service": "rules", "port": "http" });
        let fields = hosts.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        json!({ "kubernetes": hosts })
    };
    let clusters = json!({
        "own": hosts(NAMESPACE, json!({})),
        "shop": hosts("shop", json!({})),
        "far": hosts("far", json!({ "kubeconfig": "far.yaml" })),
    });
    let values = with(json!({ "clusters": clusters }), json!({}));
    for kind in ["Role", "RoleBinding"] {
        let documents = yaml::documents(&render(&values)).into_iter();
        let named = documents.filter(|it| it["kind"] == kind).map(|it| {
            assert!(kind == "Role" || it["roleRef"]["name"] == it["metadata"]["name"]);
            let place = |field: &str| it["metadata"][field].as_str().unwrap().to_owned();
            (place("namespace"), place("name"))
        });
        let expected = [
            ("shop", "weir-control-endpoints-weir-system"),
            (NAMESPACE, "weir-control-endpoints"),
        ];
        let expected = expected.map(|(one, other)| (one.to_owned(), other.to_owned()));
        assert_eq!(named.collect::<Vec<_>>(), expected);
    }
    let pool = json!({ "namespace": "ml", "inference_pool": "llama" });
    let pool = json!({ "clusters": { "llama": { "kubernetes": pool } } });
    let documents = yaml::documents(&render(&with(pool, json!({}))));
    let pools = find(&documents, "Role", "weir-control-pools");
    let file = needs::root().join("deploy/kubernetes/overlays/policies/pools.yaml");
    assert_eq!(
        pools["rules"],
        yaml::documents(&yaml::read(&file))[0]["rules"]
    );
    let far = json!({ "far": hosts("far", json!({ "kubeconfig": "far.yaml" })) });
    let values = with(json!({ "clusters": far }), json!({}));
    let deployment = object(&values, "Deployment", "weir-control");
    let spec = &deployment["spec"]["template"]["spec"];
    assert_eq!(spec["automountServiceAccountToken"], false);
}

fn all_is_quoted() {
    let text = "  led by spaces\n\ttabs: {{ no template }}\r\n<é>\n\n";
    let control = json!({
        "files": { "1.0": text, "true": "", "a.yaml": "a: 1\n" },
        "tls": { "secretName": "1e3" },
        "image": { "repository": "12", "tag": "34" },
    });
    let more = json!({
        "governor": { "enabled": true, "namespace": "1e3" },
        "monitoring": { "namespace": "0" },
        "imagePullSecrets": [ { "name": "registry.example" } ],
    });
    let values = with(control, more);
    let (_folder, mut helm) = helm("template", &values);
    helm.args(["--namespace", "123"]);
    let output = String::from_utf8(needs::succeed(&mut helm).stdout).unwrap();
    let documents = yaml::documents(&output);
    let map = find(&documents, "ConfigMap", "weir-control");
    assert_eq!(map["metadata"]["namespace"], "123");
    assert_eq!(map["data"]["1.0"], text);
    assert_eq!(map["data"]["true"], "");
    assert_eq!(map["data"]["a.yaml"], "a: 1\n");
    let spec = &find(&documents, "Deployment", "weir-control")["spec"]["template"]["spec"];
    assert_eq!(spec["volumes"][1]["secret"]["secretName"], "1e3");
    assert_eq!(spec["containers"][0]["image"], "12:34");
    assert_eq!(spec["imagePullSecrets"][0]["name"], "registry.example");
    let label = "kubernetes.io/metadata.name";
    let policy = find(&documents, "NetworkPolicy", "weir-control");
    let from = |rule: usize, place: usize| {
        let from = &policy["spec"]["ingress"][rule]["from"][place];
        from["namespaceSelector"]["matchLabels"][label].clone()
    };
    assert_eq!((from(0, 1), from(1, 0)), (json!("1e3"), json!("0")));
    assert_eq!(
        find(&documents, "Namespace", "1e3")["metadata"]["name"],
        "1e3"
    );
}

fn rules_are_required() {
    let chart = needs::root().join("deploy/kubernetes/chart");
    let copy = TempDir::new().unwrap();
    fs::create_dir(copy.path().join("templates")).unwrap();
    for folder in ["", "templates"] {
        for file in fs::read_dir(chart.join(folder)).unwrap() {
            let file = file.unwrap();
            if file.file_type().unwrap().is_file() {
                let to = copy.path().join(folder).join(file.file_name());
                fs::copy(file.path(), to).unwrap();
            }
        }
    }
    let values = copy.path().join("mine.json");
    let rules = with(json!({}), json!({ "monitoring": { "rules": true } }));
    fs::write(&values, rules.to_string()).unwrap();
    let mut helm = HELM.command();
    helm.args(["template", "weir"]).arg(copy.path());
    helm.arg("--values").arg(&values);
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        helm.env(variable, copy.path());
    }
    let output = helm.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(
        said.contains("files/rules.yml: is not in the chart"),
        "{said}"
    );
}

fn all_is_allowed() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("defaults.yaml"), render(&least())).unwrap();
    fs::write(folder.path().join("all.yaml"), render(&all())).unwrap();
    allowed(folder.path());
}

fn the_programs_take_them() {
    let mut plain = all();
    plain["control"]["tls"] = json!({ "secretName": "" });
    for values in [least(), all(), plain, with(json!({}), cores())] {
        let documents = yaml::documents(&render(&values));
        taken(&documents, "weir-control", &["--check"]);
        if values["governor"]["enabled"] == true {
            taken(&documents, "weir-governor", &["run", "--check"]);
        }
        if values["monitoring"]["rules"] == true {
            let rules = find(&documents, "PrometheusRule", "weir");
            let file = yaml::read(&needs::root().join("deploy/prometheus/rules/weir.yml"));
            assert_eq!(rules["spec"], yaml::documents(&file)[0]);
        }
    }
}
