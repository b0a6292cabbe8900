// SPDX-License-Identifier: Apache-2.0
//! CONFIGURATION.md: every field that is accepted, with its default, and its range as refusals name it.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::Config;
use super::written::{Written, WrittenCluster};

struct Field {
    name: &'static str,
    /// A value that is refused, or a whole configuration with one; none where every one of the type is taken.
    bad: Option<Value>,
    meaning: &'static str,
}

fn field(name: &'static str, bad: impl Into<Option<Value>>, meaning: &'static str) -> Field {
    let bad = bad.into();
    Field { name, bad, meaning }
}

fn fields() -> Vec<Field> {
    let many: serde_json::Map<_, _> = (0..65).map(|n| (n.to_string(), json!({}))).collect();
    vec![
        field(
            "role",
            json!("server"),
            "`caller` chooses hosts. `attempt` is an upstream filter of the callers' `clusters`, which it needs: it lets hosts give requests back ([bounces](DESIGN.md#bounces)). `host` stands before the application, and gives them back",
        ),
        field(
            "cores",
            json!({ "role": "host", "cores": 0 }),
            "With `role: host`: jobs that the application does at once",
        ),
        field(
            "bodies",
            json!(1),
            "With `role: host`: requests with bodies are given back too, as soon as all of the body is there. **The plugin needs `allow_on_headers_stop_iteration: true`** (Envoy 1.35): without it such requests hang",
        ),
        field(
            "target_delay",
            json!("0s"),
            "With `role: host`: the queuing delay that its credits head for, where callers go by them (policy `breakwater`); their requests are refused at more than twice as much",
        ),
        field(
            "control_cluster",
            json!("é"),
            "Envoy's name of weir-control's cluster. `null`: no tables, Envoy chooses",
        ),
        field(
            "proxy",
            None,
            "Identity towards weir-control, unique in the fleet. `null`: Envoy's node id",
        ),
        field(
            "zone",
            None,
            "The zone that it is in, by the name that weir-control has of it (`hosts.zone`). `null`: the one that Envoy was started with: `node.locality.zone` of its bootstrap, or `--service-zone`; the dynamic module sees the latter only. `\"\"`: none",
        ),
        field(
            "clusters",
            Value::Object(many),
            "By Envoy's name of the cluster that the route chose; `*` is every other. A cluster without a name here is left to Envoy",
        ),
        field(
            "priorities",
            json!({ "high": 32, "low": 1 }),
            "Business class by name, 0 most important. Replaces the default as a whole",
        ),
        field(
            "default_priority",
            json!("none"),
            "Of requests with no or an unknown priority",
        ),
        field(
            "max_priority",
            json!(32),
            "The most important class of this proxy's requests: names of more important ones count as this one",
        ),
        field(
            "trust",
            json!("some"),
            "Believed headers: everybody's; of callers on 127.0.0.0/8 or ::1; of callers with a certificate; nobody's",
        ),
        field(
            "debug",
            json!(1),
            "`true`: answers carry `x-weir-reason` and `x-weir-host`",
        ),
        field(
            "tick",
            json!("9999s"),
            "Time between two looks at shared data: a table is that much older elsewhere than in the owner",
        ),
        field(
            "lease",
            json!("9999s"),
            "A silent owner stays the owner for so long; more than the worst delay of a tick",
        ),
        field(
            "report_interval",
            json!("9999s"),
            "Time between two reports to weir-control while there is news; it may ask for longer. Without news one a second says that the proxy lives",
        ),
        field(
            "cache_limit",
            json!("9999GiB"),
            "Bytes of decoded cache contents in one VM: 12 a key and 4 a holder, 8 a key more where costs are known, and 8 for each host of a shard. Beyond it the contents of the least used clusters (half-life 5 min) are left out, and choices for them go on without; they come back when with them 80 % are filled at most, or others with less than half as many requests can make room. Shared data takes four times as much, for VMs that serve different clusters; a shard beyond that is answered with a NACK. Tables of hosts are always taken",
        ),
    ]
}

fn cluster_fields() -> Vec<Field> {
    vec![
        field(
            "enabled",
            json!("x"),
            "`false`: its requests are left to Envoy as they come, but for the header that names hosts, which is removed. Tables are kept up to date, so that `true` takes effect with the configuration",
        ),
        field(
            "table",
            json!(""),
            "weir-control's name for it. `null`: the same; required for `*`",
        ),
        field(
            "key",
            json!({ "path": "x" }),
            "Data that a host may have cached. `{\"header\": NAME}`, or `{\"path\": \"/v1/{key}/run\"}`: the path's segment at `{key}`; longer paths match, others have no key. In a body of JSON: `{\"json\": \"/session/id\"}`, the value at a pointer (RFC 6901), or `{\"prompt\": {}}`, a language model's prompt as blocks ([keys in bodies](DESIGN.md#keys-in-bodies)), whose first 32 keys are `block_bytes` each (1024; 64 to 65536) and the other 32 more by and by, and `max_bytes` of the body (`\"256KiB\"`; 1KiB to 512KiB; of `json` 256 KiB) are read; the listener's buffer has to take 1 MiB, Envoy's default, or four times `max_bytes`. **Both need the plugin's `allow_on_headers_stop_iteration: true`** (Envoy 1.35)",
        ),
        field(
            "key_separator",
            json!("a"),
            "The key is a list in prefix order, as of the blocks of a prompt: `a;b;c`. Spaces around keys, empty places and keys beyond the 64th do not count. `null`: one key, whatever it holds",
        ),
        field(
            "key_salt",
            json!("x"),
            "The content of weir-control's `keys.salt_file` for this cluster. Where the two differ no key is found at any host, choices go by load, and Envoy's log says so once. Envoy's admin page `/config_dump` shows it",
        ),
        field(
            "priority_header",
            json!("A"),
            "Header with the priority's name",
        ),
        field(
            "user",
            json!({ "header": "A" }),
            "User of the request: `{\"header\": NAME}`, or `\"peer_certificate\"`, the URI in the caller's certificate. Without a user each request draws a user priority",
        ),
        field(
            "prefill",
            json!({ "table": "t", "above_bytes": "1GiB" }),
            "With `key.prompt`: other hosts read prompts for those of this cluster, which write the answers. `{\"table\": NAME, \"header\": \"x-prefiller-host-port\", \"above_bytes\": \"4KiB\"}`: weir-control's name for them, which is needed; the header that names one to the host that writes, and which is removed of whatever caller; how much of a prompt that host may lack and still read it itself (the range beside this; less than 272 of `block_bytes`). The salt of keys is the same ([prefill](DESIGN.md#prefill))",
        ),
    ]
}

/// The right values, as a refusal names them.
fn range(refused: &str) -> String {
    let begins = [
        ("is not in ", ""),
        ("is not ", ""),
        ("expected ", ""),
        ("limit of ", "at most "),
    ];
    let said = begins.iter().find_map(|(begin, shown)| {
        let (_, said) = refused.split_once(begin)?;
        Some(format!("{shown}{said}"))
    });
    let said = said.unwrap_or_else(|| panic!("no range in {refused:?}"));
    let said = said.split(" at line ").next().unwrap_or(&said);
    said.replace("..=", " to ")
}

fn rows(page: &mut String, fields: &[Field], prefix: &str, defaults: &Value) {
    let names: Vec<_> = fields.iter().map(|field| field.name).collect();
    let mut sorted: Vec<_> = defaults
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    sorted.sort_by_key(|name| names.iter().position(|known| known == name));
    assert_eq!(sorted, names, "the fields that are accepted, each once");
    for Field { name, bad, meaning } in fields {
        let bad = bad.as_ref().map(|bad| match prefix {
            _ if bad.get(name).is_some() => bad.clone(),
            "" => json!({ *name: bad }),
            _ => json!({ "clusters": { "X": { *name: bad } } }),
        });
        let refused = bad.map(|bad| Config::parse(bad.to_string().as_bytes()).unwrap_err());
        let range = refused.map_or_else(|| "–".to_owned(), |refused| range(&refused.to_string()));
        let default = &defaults[name];
        let _ = writeln!(
            page,
            "| `{prefix}{name}` | `{default}` | {range} | {meaning} |"
        );
    }
}

#[test]
fn reference_of_configuration_is_of_this_code() {
    let mut page = weir_reference::head("Configuration of the filter", "the parser of its JSON");
    page.push_str("
Every field may be left out; nothing at all is the default. An unknown field or a value out of range refuses the configuration, with a line in Envoy's log; after a reload Envoy then keeps the old one. Durations are a whole number with `ms` or `s`, sizes one with `KiB`, `MiB` or `GiB`.

| field | default | range | meaning |
|---|---|---|---|
");
    let whole = serde_json::to_value(Written::default()).unwrap();
    rows(&mut page, &fields(), "", &whole);
    let cluster = serde_json::to_value(WrittenCluster::default()).unwrap();
    rows(&mut page, &cluster_fields(), "clusters.X.", &cluster);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    weir_reference::hold(&folder.join("CONFIGURATION.md"), &page);
}
