// SPDX-License-Identifier: Apache-2.0
//! CONFIGURATION.md: every field that is accepted, with its default as `check` has it.

use std::path::Path;

use super::{load, written};

/// Each policy, and each way to say who the service is and where its latency comes from.
const FILES: [&str; 20] = [
    "policy: { performance: {} }\nuprobes: [ { function: 1, binary: /bin/true, symbol: main, pid: 1 } ]",
    "policy: { powersave: {} }\nuprobes: [ { function: 1, binary: /bin/true, symbol: main, cgroup: a } ]",
    "policy: { ondemand: {} }\ntail: { source: prometheus, url: 'http://127.0.0.1:1/m', metric: m }",
    "policy: { schedutil: {} }",
    "policy: { two_state: {} }\ntail: { source: promql, url: 'http://127.0.0.1:1', query: q }",
    "policy: { three_state: {} }\nmesh: { control: 'https://c:1', authority: cert.pem, cluster: c, host: '127.0.0.1:1' }",
    "policy: { multi_state: { ladder: [ { after: 0s, frequency: 100 % } ], by_load: {} } }\nfunctions: [ { id: 1, ladder: [ { after: 0s, frequency: 100 % } ] } ]",
    "policy: { iso_latency: {} }",
    "policy: { slow_to_fast: {} }",
    "policy: { adaptive: {} }",
    "policy: { rubik: {} }",
    "policy: { octopus_man: {} }",
    "policy: { hipster: {} }",
    "core_policy: { blocks: {} }\nservice: { cgroup: a }\njobs: [ { name: j, command: [/bin/true], directory: / }, { name: k, cgroup: b } ]\nbatch: {}",
    "core_policy: { latency_slack: {} }\nservice: { pid_file: /a }",
    "core_policy: { parties: { others: [ { name: a, service: { cgroup: b }, least: 7, tail: { source: promql, url: 'http://127.0.0.1:1', query: q } }, { name: c, service: { pid_file: /c }, least: 8, tail: { source: envoy, url: 'http://127.0.0.1:1/m', metric: m } }, { name: d, service: { pid: 3 }, least: 9, tail: { source: promql, url: 'http://127.0.0.1:1', query: q } } ] } }\nservice: { pid_file: /a }",
    "core_policy: { heracles: {} }\nservice: { pid_file: /a }\nnetwork: { interface: eth0, link: 10 Gbit/s }",
    "core_policy: { hipster_co: {} }\nservice: { pid_file: /a }",
    "core_policy: { blocks: {} }\nservice: { pid: 2 }",
    "core_policy: { static_plan: { node: n, nodes: [ { name: n, cores: 0-1, service: 0 }, { name: m, cores: 0, url: 'https://m:1' } ], authority: cert.pem, steps: [ { job: j, node: n, cores: 1 } ] } }\nservice: { pid: 2 }\njobs: [ { name: j, cgroup: b } ]",
];
/// A plan of this machine, whose service has its cores beside the steps.
const PLAN: &str = "core_policy: { static_plan: { service: 0, steps: [ { job: j, cores: 1 } ] } }\nservice: { pid: 2 }\njobs: [ { name: j, cgroup: b } ]";

#[test]
fn reference_of_configuration_is_of_this_code() {
    let folder = tempfile::tempdir().unwrap();
    let pair = rcgen::generate_simple_self_signed(["c".to_owned()]).unwrap();
    std::fs::write(folder.path().join("cert.pem"), pair.cert.pem()).unwrap();
    let path = folder.path().join("g.yaml");
    let mut seen = Vec::new();
    for text in FILES.into_iter().chain([PLAN]) {
        std::fs::write(&path, text).unwrap();
        let (loaded, more) = weir_settings::observe(|| load(&path));
        loaded.unwrap_or_else(|error| panic!("{text}: {error}"));
        seen.extend(more);
    }
    let head = weir_reference::head(
        "Configuration of weir-governor",
        "the parser of weir-governor.yaml",
    );
    let notes = "
Every field may be left out unless it is required; unknown fields are refused. Durations are written `50ms`, `1.5s`; frequencies `2.0 GHz`, `800 MHz`, or as a share of the core's range, `62 %`. A core takes the next frequency that it has from there on; one that is beyond what every core can do is refused. Cores are written as the kernel does, `0-3,8`, or `none`. A policy refuses numbers that cannot be meant within these ranges, with its reason. [weir-governor.yaml](weir-governor.yaml) is a file with the defaults, with one policy: one that goes by CPU use. `policy: { three_state: {} }`, for programs that tell of their hot functions, means 1.0, 2.0 and 2.6 GHz: where no core has one of them, write shares, `{ idle: 0 %, hot: 62 %, over: 100 % }`.
";
    let page = head + notes + &weir_reference::fields::<written::File>(&seen);
    let readme = Path::new(env!("CARGO_MANIFEST_DIR"));
    weir_reference::hold(&readme.join("CONFIGURATION.md"), &page);
}
