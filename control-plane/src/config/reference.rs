// SPDX-License-Identifier: Apache-2.0
//! CONFIGURATION.md: every field that is accepted, with its default as `check` has it.

use std::path::Path;

use super::{load, written};

/// All sections but those that exclude others.
const MOST: &str = r#"
xds: { tls: { certificate: cert.pem, key: key.pem, client_ca: cert.pem } }
replicas: { address: "127.0.0.1:18000", ca: cert.pem, certificate: cert.pem, private_key: key.pem }
authorization:
  - { identity: "*", what: [report, capacity, replica], clusters: ["*"], hosts: ["127.0.0.1"] }
memory: { limit: 1GiB }
receipts: { file: receipts.ndjson }
standalone:
  filter: { wasm: /weir_filter.wasm, delivery: path }
  listeners: [ { name: in, address: "127.0.0.1:1", cluster: "<name>" } ]
clusters:
  "<name>":
    hosts: [ { address: "127.0.0.1:9001", metrics_address: "127.0.0.1:9001", cache_address: "127.0.0.1:9001" } ]
    scrape: { tls: {} }
    cache: { tls: {} }
    consul: { service: hosts, datacenter: here }
    prometheus: {}
"#;

/// What excludes `cache` and `consul`.
const LEARNED: &str = r#"
clusters:
  "<name>":
    hosts: [ { address: "127.0.0.1:9001" } ]
    policy: { selection: caching_plan }
    planner: {}
    dns: { name: rules.example, port: 8080 }
"#;

/// What excludes `cache`.
const TOLD: &str = r#"
clusters:
  "<name>":
    hosts: [ { address: "127.0.0.1:9001" } ]
    kv_events: {}
"#;

/// What excludes them all.
const POD: &str = r#"
replicas: { address: "127.0.0.1:18000", lease: { namespace: weir-system } }
policies: { namespaces: [shop] }
clusters:
  "<name>":
    kubernetes: { namespace: shop, service: rules, port: http }
"#;

#[test]
fn reference_of_configuration_is_of_this_code() {
    let folder = tempfile::tempdir().unwrap();
    let pair = rcgen::generate_simple_self_signed(["weir-control".to_owned()]).unwrap();
    let path = folder.path().join("c.yaml");
    for (name, contents) in [
        ("c.yaml", MOST),
        ("learned.yaml", LEARNED),
        ("pod.yaml", POD),
        ("told.yaml", TOLD),
        ("cert.pem", &pair.cert.pem()),
        ("key.pem", &pair.signing_key.serialize_pem()),
    ] {
        std::fs::write(folder.path().join(name), contents).unwrap();
    }
    let read = |path: &Path| {
        let (loaded, seen) = weir_settings::observe(|| load(path));
        loaded.unwrap_or_else(|(error, _)| panic!("{error}"));
        seen
    };
    let mut seen = read(&path);
    for (file, sections) in [
        ("learned.yaml", &[".planner.", ".dns."][..]),
        ("pod.yaml", &[".kubernetes.", ".lease.", "policies."]),
        ("told.yaml", &[".kv_events."]),
    ] {
        let more = read(&folder.path().join(file)).into_iter();
        seen.extend(more.filter(|seen| sections.iter().any(|section| seen.name.contains(section))));
    }
    let head = weir_reference::head(
        "Configuration of weir-control",
        "the parser of weir-control.yaml",
    );
    let notes = "
Every field may be left out unless it is required; unknown fields are refused. Durations are written `500ms`, `1.5s`, `2m` (below `standalone` a whole number with `ms`, `s` or `m`); sizes `4MiB`, `64KiB`, `100B`. Paths are relative to the file that names them. While weir-control runs, a file that changes what needs a restart is refused in whole: nothing of it counts until then. The smallest file: `clusters: { rules: { hosts: [ { address: \"127.0.0.1:9001\" } ] } }`.
";
    let page = head + notes + &weir_reference::fields::<written::File>(&seen);
    let readme = Path::new(env!("CARGO_MANIFEST_DIR"));
    weir_reference::hold(&readme.join("CONFIGURATION.md"), &page);
}
