// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::apply::resctrl::Part;
use crate::config::shares::{Division, Network, Peer};
use crate::cores::Bounds;
use crate::cores::blocks::Size;
use crate::cores::heracles::memory::Params as Memory;
use crate::cores::heracles::power::Params as Power;
use crate::cores::{self, Cores, static_plan};
use crate::jobs::Queue;
use crate::jobs::spec::{Batch, Command, OnStop, Source};
use crate::node::Khz;

/// A file with these blocks that is otherwise good; they begin on line 2.
fn blocks(params: &str) -> String {
    format!("service: {{ cgroup: memcached }}\ncore_policy:\n  blocks:\n    {params}\n")
}

fn job(fields: &str) -> String {
    let rest = "service: { pid: 4711 }\ncore_policy: { blocks: {} }\njobs:\n";
    format!("{rest}  - {{ name: a, command: [/bin/true] }}\n  - {{ {fields} }}\n")
}

fn plan(params: &str) -> String {
    let jobs = "jobs: [{ name: a, command: [/bin/true] }, { name: b, command: [/bin/true] }]";
    format!("{jobs}\nservice: {{ pid: 4711 }}\ncore_policy:\n  static_plan:\n{params}\n")
}

fn shares(text: &str) -> Shares {
    said(text).unwrap().shares.unwrap()
}

fn refused(cases: impl IntoIterator<Item = (String, &'static str)>) {
    for (text, reason) in cases {
        let error = said(&text).err().unwrap_or_default();
        assert!(error.starts_with(reason), "{text}\n{error}\n{reason}");
    }
}

#[test]
fn latency_slack_knows_whether_latency_is_measured_and_wants_it_often() {
    let slack = |tail: &str| {
        format!("service: {{ pid: 4711 }}\ncore_policy: {{ latency_slack: {{}} }}\n{tail}")
    };
    let measured = |tail: &str| {
        let Division::LatencySlack(params) = shares(&slack(tail)).division else {
            panic!("another policy");
        };
        (params.measured, params.window)
    };
    let page = |every: &str| {
        format!(
            "tail: {{ source: prometheus, url: 'http://127.0.0.1:9/', metric: m, every: {every} }}\n"
        )
    };
    let (own, page_of_seven) = ("tail: { window: 3s }\n", page("1s, window: 7s"));
    assert_eq!(measured(""), (false, Duration::from_secs(10)));
    assert_eq!(measured(own), (false, Duration::from_secs(3)));
    assert_eq!(measured(&page_of_seven), (true, Duration::from_secs(7)));
    refused([(
        slack(&page("1100ms")),
        "g.yaml:3: tail.every: at most 1s with latency_slack",
    )]);
}

fn heracles(params: &str, more: &str) -> String {
    let policy = "policy: { performance: {} }";
    format!(
        "service: {{ pid: 4711 }}\ncore_policy: {{ heracles: {{ {params} }} }}\n{policy}\n{more}\n"
    )
}

#[test]
fn heracles_goes_by_network_and_power_where_they_are_configured() {
    let params = |text: &str| {
        let shares = shares(text);
        let Division::Heracles(params) = shares.division else {
            panic!("another policy");
        };
        (params.link, params.power, shares.network)
    };
    assert_eq!(params(&heracles("", "")), (None, None, None));
    let network = "network: { interface: eth0, link: 2.5 Gbit/s }";
    let power = Power {
        guaranteed: Khz(2_600_000),
        watts: Some(85.0),
    };
    let expected = Network {
        interface: "eth0".into(),
        link: 2_500_000_000,
    };
    assert_eq!(
        params(&heracles("guaranteed: 2.6 GHz, tdp: 85 W", network)),
        (Some(expected.link), Some(power), Some(expected))
    );
    let (_, power, _) = params(&heracles("guaranteed: 2.6 GHz", ""));
    assert_eq!(power.unwrap().watts, None, "the machine says it");
}

#[test]
fn resctrl_is_asked_for_by_the_fields_that_need_it_and_gives_what_the_machine_has() {
    let asked = |text: &str| shares(text).division.resctrl();
    assert_eq!(asked(&heracles("", "")), []);
    let field = "memory_bandwidth";
    let mut division = shares(&heracles("memory_bandwidth: 60 GB/s", "")).division;
    assert_eq!(
        division.resctrl(),
        [(field, Part::Cache), (field, Part::Counters)]
    );
    let ways = Some(Bounds { least: 1, most: 10 });
    division.offer(ways, None);
    let Division::Heracles(params) = division else {
        panic!("another policy");
    };
    assert_eq!(params.memory, Some(Memory { peak: 60e9, ways }));
    let parties =
        |fields: &str| heracles("", "").replace("heracles: {", &format!("parties: {{ {fields}"));
    assert_eq!(asked(&parties("")), []);
    assert_eq!(
        asked(&parties("cache_steps: 10, bandwidth_steps: 9")),
        [
            ("cache_steps", Part::Cache),
            ("bandwidth_steps", Part::Bandwidth)
        ]
    );
}

#[test]
fn network_and_power_that_cannot_be_are_refused_where_they_are_written() {
    let network = |fields: &str| heracles("", &format!("network: {{ {fields} }}"));
    let name = "interface: eth0";
    refused([
        (
            heracles("guaranteed: 60 %", ""),
            "g.yaml:2: core_policy.heracles.guaranteed: \"60 %\" is a share",
        ),
        (
            heracles("guaranteed: 2 GHz", "").replace("performance", "powersave"),
            "g.yaml:2: core_policy.heracles.guaranteed: needs policy: { performance: {} }",
        ),
        (
            heracles("tdp: 85 W", ""),
            "g.yaml:2: core_policy.heracles.tdp: nothing reads it without guaranteed",
        ),
        (
            heracles("guaranteed: 2 GHz, tdp: 0 W", ""),
            "g.yaml:2: core_policy.heracles.tdp: \"0 W\" is not a power",
        ),
        (
            heracles("memory_bandwidth: 60", ""),
            "g.yaml:2: core_policy.heracles.memory_bandwidth: \"60\" is not a rate of 100 MB/s",
        ),
        (network(""), "g.yaml:4: network.interface: required"),
        (network(name), "g.yaml:4: network.link: required"),
        (
            network(&format!("{name}, link: 10")),
            "g.yaml:4: network.link: \"10\" is not a rate of 1 Mbit/s",
        ),
        (
            network("interface: -all, link: 1 Gbit/s"),
            "g.yaml:4: network.interface: \"-all\" is not as in eth0",
        ),
        (
            network("interface: a/b, link: 1 Gbit/s"),
            "g.yaml:4: network.interface: \"a/b\" is not as in eth0",
        ),
        (
            heracles("", "").replace("heracles: {", "parties: { network_steps: 2"),
            "g.yaml:2: core_policy.parties.network_steps: needs network",
        ),
        (
            network(&format!("{name}, link: 1 Gbit/s")).replace("heracles", "parties"),
            "g.yaml:4: network: only core policy heracles reads it, and parties with",
        ),
        (
            format!("{}network: {{ {name}, link: 1 Gbit/s }}\n", blocks("{}")),
            "g.yaml:5: network: only core policy heracles reads it",
        ),
        (
            "policy: { performance: {} }\nnetwork: {}\n".into(),
            "g.yaml:2: network: nothing reads it without core_policy",
        ),
    ]);
}

#[test]
fn cores_of_a_policy_that_cannot_be_are_refused_where_they_are_written() {
    refused([
        (
            blocks("small: 0"),
            "g.yaml:4: core_policy.blocks.small: 0: in block reserved, too",
        ),
        (
            blocks("large: 1-3"),
            "g.yaml:4: core_policy.blocks.large: 1: in block small, too",
        ),
        (
            blocks("small: none"),
            "g.yaml:4: core_policy.blocks.small: has no cores",
        ),
        (
            blocks("large: 3-2"),
            "g.yaml:4: core_policy.blocks.large: \"3-2\" is not a list of cores, as in 0-3,8",
        ),
        (
            blocks("large_above: 1.5"),
            "g.yaml:4: core_policy.blocks.large_above: 1.5 is not above 0 and at most 1",
        ),
        (
            blocks("small_below: 0"),
            "g.yaml:4: core_policy.blocks.small_below: 0 is not above 0 and at most 2",
        ),
        (
            blocks("large_above: NaN"),
            "g.yaml:4: core_policy.blocks.large_above: NaN is not in 0 to",
        ),
        (
            blocks("start: medium"),
            "g.yaml:4: core_policy.blocks.start: \"medium\" is unknown; one of small, large",
        ),
        (
            blocks("patience: 2"),
            "g.yaml:4: core_policy.blocks.patience: \"2\" is not a duration",
        ),
        (
            blocks("small_above: 1"),
            "g.yaml:4: unknown field `small_above`",
        ),
        // The default of the large block has core 2.
        (
            blocks("small: 2"),
            "g.yaml:4: core_policy.blocks.large: 2: in block small, too",
        ),
    ]);
    let slack = |params: &str| {
        format!("service: {{ cgroup: memcached }}\ncore_policy:\n  latency_slack: {{ {params} }}\n")
    };
    refused([
        (
            slack("batch: 1"),
            "g.yaml:3: core_policy.latency_slack.batch: 1: in elastic, too",
        ),
        (
            slack("target: 0s"),
            "g.yaml:3: core_policy.latency_slack.target: is nothing",
        ),
        (
            slack("tight: 30 %"),
            "g.yaml:3: core_policy.latency_slack.tight: 0.3 is not above 0 and at most 0.2",
        ),
        (
            slack("loose: 120 %"),
            "g.yaml:3: core_policy.latency_slack.loose: 1.2 is not above 0 and at most 1",
        ),
        (
            slack("loose: much"),
            "g.yaml:3: core_policy.latency_slack.loose: \"much\" is not a share, as in 0.05 or 5 %",
        ),
        (
            slack("loose: inf"),
            "g.yaml:3: core_policy.latency_slack.loose: \"inf\" is not a share",
        ),
        (
            slack("trend: -1"),
            "g.yaml:3: core_policy.latency_slack.trend: -1 is not in 0 to",
        ),
        (
            slack("frequency_steps: 4"),
            "g.yaml:3: core_policy.latency_slack.frequency_steps: needs policy, above which it raises: powersave",
        ),
    ]);
    let parties = |params: &str| {
        format!("service: {{ cgroup: memcached }}\ncore_policy:\n  parties: {{ {params} }}\n")
    };
    refused([
        (
            parties("elastic: 0-1"),
            "g.yaml:3: core_policy.parties.elastic: 0: in least, too",
        ),
        (
            parties("settle: 0s"),
            "g.yaml:3: core_policy.parties.settle: is nothing",
        ),
        (
            parties("frequency_steps: 4"),
            "g.yaml:3: core_policy.parties.frequency_steps: needs policy, above which it raises: powersave",
        ),
        (
            parties("memory_least: 8GiB"),
            "g.yaml:3: core_policy.parties.memory_least: is more than memory_most",
        ),
        (
            parties("memory_most: 512"),
            "g.yaml:3: core_policy.parties.memory_most: \"512\" is not a size",
        ),
        (
            parties("memory_most: 1KiB"),
            "g.yaml:3: core_policy.parties.memory_most: 1KiB is not in 1MiB to",
        ),
        (
            parties("disk_steps: -1"),
            "g.yaml:3: core_policy.parties.disk_steps: \"-1\" is not a whole number",
        ),
    ]);
    let tail = "tail: { source: prometheus, url: 'http://127.0.0.1:9901/m', metric: took }";
    let other = |params: &str| parties(&format!("others: [ {{ {params} }} ]"));
    refused([
        (
            other("least: 7"),
            "g.yaml:3: core_policy.parties.others[0].name: required",
        ),
        (
            other(&format!("name: a, service: {{ cgroup: b }}, {tail}")),
            "g.yaml:3: core_policy.parties.others[0].least: has no cores",
        ),
        (
            other(&format!(
                "name: a, service: {{ cgroup: b }}, least: 1, {tail}"
            )),
            "g.yaml:3: core_policy.parties.others[0].least: 1: somebody else's, too",
        ),
        (
            other(&format!("name: a, least: 7, {tail}")),
            "g.yaml:3: core_policy.parties.others[0].service: required: who it is",
        ),
        (
            other("name: a, service: { cgroup: b }, least: 7"),
            "g.yaml:3: core_policy.parties.others[0].tail.source: required: prometheus, envoy or promql",
        ),
        (
            other(&format!(
                "name: a, service: {{ cgroup: memcached/b }}, least: 7, {tail}"
            )),
            "g.yaml:3: core_policy.parties.others[0].service.cgroup: \"memcached/b\" and service.cgroup \"memcached\": one is in the other",
        ),
    ]);
    let hipster_co = |params: &str| {
        format!("service: {{ cgroup: memcached }}\ncore_policy:\n  hipster_co: {{ {params} }}\n")
    };
    refused([
        (
            hipster_co("batch: 1-3"),
            "g.yaml:3: core_policy.hipster_co.batch: 1: in elastic, too",
        ),
        (
            hipster_co("interval: 0s"),
            "g.yaml:3: core_policy.hipster_co.interval: is nothing",
        ),
        (
            hipster_co("safe: 90 %"),
            "g.yaml:3: core_policy.hipster_co.safe: 0.9 is not above 0 and at most 0.85",
        ),
        (
            hipster_co("frequency_steps: 4"),
            "g.yaml:3: core_policy.hipster_co.frequency_steps: needs policy, above which it raises: powersave",
        ),
    ]);
}

#[test]
fn a_static_plan_that_cannot_be_is_refused_where_it_is_written() {
    refused([
        (
            plan("    {}"),
            "g.yaml:5: core_policy.static_plan: has neither a service nor steps",
        ),
        (
            plan("    service: 0\n    steps: [{ job: a, cores: 1 }]"),
            "g.yaml:6: core_policy.static_plan.steps: b has none",
        ),
        (
            plan("    steps: [{ job: a }, { job: b, cores: 1 }]"),
            "g.yaml:5: core_policy.static_plan.steps[0].cores: has no cores",
        ),
        (
            plan("    steps: [{ cores: 1 }]"),
            "g.yaml:5: core_policy.static_plan.steps[0].job: required",
        ),
        (
            plan("    steps: [{ job: a, cores: 1 }, { job: a, cores: 1 }]"),
            "g.yaml:5: core_policy.static_plan.steps[1].job: \"a\" has a step already",
        ),
        (
            plan("    steps:\n    - { job: a, cores: 1 }\n    - { job: c, cores: 1 }"),
            "g.yaml:7: core_policy.static_plan.steps[1].job: there is no such job",
        ),
        (
            plan(
                "    service: 0-1\n    steps:\n    - { job: a, cores: 1-2 }\n    - { job: b, cores: 2 }",
            ),
            "g.yaml:7: core_policy.static_plan.steps[0].cores: 1: the service's",
        ),
        (
            plan(
                "    steps:\n    - { job: a, cores: 1, after: [b] }\n    - { job: b, cores: 2, after: [a] }",
            ),
            "g.yaml:6: core_policy.static_plan.steps: a after b after a: a circle",
        ),
        (
            plan("    steps:\n    - { job: a, cores: 1 }\n    - { job: b, cores: 2, after: [c] }"),
            "g.yaml:7: core_policy.static_plan.steps[1].after: c: there is no such step",
        ),
        (
            plan("    steps: [{ job: a, cores: 1, node: x }, { job: b, cores: 1 }]"),
            "g.yaml:5: core_policy.static_plan.steps[0].node: there is no node \"x\"",
        ),
        (
            plan("    steps: [{ job: a, cores: 1 }, { job: b, cores: 1 }]"),
            "g.yaml:2: service: static_plan gives it no cores on this node",
        ),
        (
            plan("    nodes: [{ name: x, cores: 0-3 }]"),
            "g.yaml:5: core_policy.static_plan.node: required: which of the nodes this one is",
        ),
    ]);
    let nodes = |rest: &str| {
        plan(&format!(
            "    node: x\n{rest}\n    steps: [{{ job: a, node: x, cores: 1 }}, {{ job: b, node: y, cores: 1 }}]"
        ))
    };
    refused([
        (
            nodes("    nodes: [{ name: x, cores: 0-3 }]\n    service: 0"),
            "g.yaml:7: core_policy.static_plan.service: is for a plan without nodes",
        ),
        (
            nodes("    nodes: [{ name: x, cores: 0-3 }]"),
            "g.yaml:7: core_policy.static_plan.steps[1].node: there is no node \"y\"",
        ),
        (
            nodes("    nodes: [{ name: y, cores: 0-3 }]"),
            "g.yaml:7: core_policy.static_plan.steps[0].node: there is no node \"x\"",
        ),
        (
            nodes("    nodes: [{ name: x, cores: 0 }, { name: y, cores: 1 }]"),
            "g.yaml:7: core_policy.static_plan.steps[0].cores: the machine has cores 0, and no 1",
        ),
        (
            nodes("    nodes: [{ name: x, cores: 0, service: 1 }]"),
            "g.yaml:6: core_policy.static_plan.nodes[0].service: the machine has cores 0, and no 1",
        ),
        (
            nodes("    nodes: [{ name: x, cores: 0 }, { name: x, cores: 0 }]"),
            "g.yaml:6: core_policy.static_plan.nodes[1].name: \"x\" is there already",
        ),
        (
            nodes("    nodes: [{ name: x }]"),
            "g.yaml:6: core_policy.static_plan.nodes[0].cores: has no cores",
        ),
        (
            nodes("    nodes: [{ cores: 0 }]"),
            "g.yaml:6: core_policy.static_plan.nodes[0].name: required",
        ),
        (
            plan(
                "    node: z\n    nodes: [{ name: x, cores: 0-3 }]\n    steps: [{ job: a, node: x, cores: 1 }, { job: b, node: x, cores: 1 }]",
            ),
            "g.yaml:5: core_policy.static_plan.node: \"z\" is none of the plan",
        ),
    ]);
}

#[test]
fn a_service_and_a_policy_are_one_each() {
    let service =
        |fields: &str| format!("core_policy: {{ blocks: {{}} }}\nservice: {{ {fields} }}\n");
    refused([
        (
            "core_policy: { blocks: {} }\n".into(),
            "g.yaml:1: service: required: whose cores core_policy is about; one of cgroup, pid_file, pid",
        ),
        (
            service(""),
            "g.yaml:2: service: says not who it is; one of cgroup, pid_file, pid",
        ),
        (
            service("pid: 7, cgroup: a"),
            "g.yaml:2: service.pid: contradicts cgroup; leave one out",
        ),
        (service("pid: 1"), "g.yaml:2: service.pid: 1 is not in 2 to"),
        (
            service("pid: me"),
            "g.yaml:2: service.pid: \"me\" is not a whole number",
        ),
        (
            service("pid_file: run.pid"),
            "g.yaml:2: service.pid_file: \"run.pid\" is not an absolute path",
        ),
        (
            service("cgroup: /sys/fs/cgroup/a"),
            "g.yaml:2: service.cgroup: \"/sys/fs/cgroup/a\" is not a path below the cgroup mount",
        ),
        (
            service("cgroup: a/../b"),
            "g.yaml:2: service.cgroup: \"a/../b\" is not a path below",
        ),
        (
            service("cgroup: ''"),
            "g.yaml:2: service.cgroup: \"\" is not a path below",
        ),
        (
            "core_policy: {}\n".into(),
            "g.yaml:1: core_policy: names no policy; one of blocks, latency_slack, parties, heracles, hipster_co, static_plan",
        ),
        (
            "core_policy:\n  static_plan: {}\n  blocks: {}\n".into(),
            "g.yaml:3: core_policy.blocks: contradicts static_plan; leave one out",
        ),
        (
            "policy: { three_state: {} }\nservice: { pid: 7 }\n".into(),
            "g.yaml:2: service: nothing reads it without core_policy",
        ),
        (
            "policy: { three_state: {} }\njobs: []\n".into(),
            "g.yaml:2: jobs: nothing reads it without core_policy",
        ),
        (
            "policy: { three_state: {} }\nbatch: {}\n".into(),
            "g.yaml:2: batch: nothing reads it without core_policy",
        ),
    ]);
}

#[test]
fn a_job_that_cannot_be_is_refused_with_its_number() {
    refused([
        (
            job("command: [/bin/true]"),
            "g.yaml:5: jobs[1].name: required",
        ),
        (
            job("name: a, command: [/bin/true]"),
            "g.yaml:5: jobs[1].name: \"a\" is there already",
        ),
        (
            job("name: .b, command: [/bin/true]"),
            "g.yaml:5: jobs[1].name: \".b\" is not 1 to 64 letters",
        ),
        (
            job("name: b/c, command: [/bin/true]"),
            "g.yaml:5: jobs[1].name: \"b/c\" is not 1 to 64 letters",
        ),
        (
            job(&format!("name: {}, command: [/bin/true]", "b".repeat(65))),
            "g.yaml:5: jobs[1].name: \"bbb",
        ),
        (
            job("name: b"),
            "g.yaml:5: jobs[1]: says not what it is; one of command, cgroup",
        ),
        (
            job("name: b, command: [/bin/true], cgroup: c"),
            "g.yaml:5: jobs[1].cgroup: contradicts command; leave one out",
        ),
        (
            job("name: b, command: []"),
            "g.yaml:5: jobs[1].command: is empty",
        ),
        (
            job("name: b, command: ['']"),
            "g.yaml:5: jobs[1].command: \"\" is not a path with a slash",
        ),
        (
            job("name: b, command: [true]"),
            "g.yaml:5: jobs[1].command: \"true\" is not a path with a slash",
        ),
        (
            job("name: b, command: [/bin/no-such-program]"),
            "g.yaml:5: jobs[1].command: /bin/no-such-program: No such file",
        ),
        (
            job("name: b, command: [/etc/passwd]"),
            "g.yaml:5: jobs[1].command: /etc/passwd: cannot be executed",
        ),
        (
            job("name: b, command: [/bin/]"),
            "g.yaml:5: jobs[1].command: /bin/: cannot be executed",
        ),
        (
            job("name: b, command: [./true]"),
            "g.yaml:5: jobs[1].command: \"./true\" is not an absolute path, and there is no directory",
        ),
        (
            job("name: b, command: [./no], directory: /bin"),
            "g.yaml:5: jobs[1].command: /bin/./no: No such file",
        ),
        (
            job("name: b, command: [/bin/true, \"\\0\"]"),
            "g.yaml:5: jobs[1].command: has a NUL",
        ),
        (
            job("name: b, command: [/bin/true], directory: here"),
            "g.yaml:5: jobs[1].directory: \"here\" is not an absolute path",
        ),
        (
            job("name: b, command: [/bin/true], directory: /no/such"),
            "g.yaml:5: jobs[1].directory: \"/no/such\" is no directory",
        ),
        (
            job("name: b, command: [/bin/true], environment: { 'A=B': 1 }"),
            "g.yaml:5: jobs[1].environment.A=B: is no name of a variable",
        ),
        (
            job("name: b, command: [/bin/true], user: no-such-user"),
            "g.yaml:5: jobs[1].user: /etc/passwd has no \"no-such-user\"",
        ),
        (
            job("name: b, command: [/bin/true], user: 4294967295"),
            "g.yaml:5: jobs[1].user: 4294967295 is no user",
        ),
        (
            job("name: b, command: [/bin/true], threads: 0"),
            "g.yaml:5: jobs[1].threads: 0 is not in 1 to 4096",
        ),
        (
            job("name: b, command: [/bin/true], queue: huge"),
            "g.yaml:5: jobs[1].queue: \"huge\" is unknown; one of short, medium, long",
        ),
        (
            job("name: b, command: [/bin/true], takes: 0s"),
            "g.yaml:5: jobs[1].takes: 0s is not in 1ms to",
        ),
        (
            job("name: b, cgroup: c, user: root"),
            "g.yaml:5: jobs[1].user: only a command reads it",
        ),
        (
            job("name: b, cgroup: ../c"),
            "g.yaml:5: jobs[1].cgroup: \"../c\" is not a path below",
        ),
        (
            job("name: b, cgroup: weir/c"),
            "g.yaml:5: jobs[1].cgroup: \"weir/c\" and batch.cgroup \"weir\": one is in the other",
        ),
        (
            job("name: b, cgroup: c } \n  - { name: c, cgroup: c/d"),
            "g.yaml:6: jobs[2].cgroup: \"c/d\" and jobs[1].cgroup \"c\": one is in the other",
        ),
        (
            job("name: b, cgroup: c } \nbatch: { on_stop: kill"),
            "g.yaml:6: batch.on_stop: \"kill\" is unknown; one of keep, end",
        ),
        (
            job("name: b, cgroup: c } \nbatch: { grace: 1h"),
            "g.yaml:6: batch.grace: 1h is not in 0s to 600s",
        ),
        (
            job("name: b, cgroup: c } \nbatch: { logs: log"),
            "g.yaml:6: batch.logs: \"log\" is not an absolute path",
        ),
        (
            job("name: b, cgroup: c } \nbatch: { cgroup: /"),
            "g.yaml:6: batch.cgroup: \"/\" is not a path below",
        ),
        (
            "service: { cgroup: a/b }\ncore_policy: { blocks: {} }\nbatch: { cgroup: a }\n".into(),
            "g.yaml:3: batch.cgroup: \"a\" and service.cgroup \"a/b\": one is in the other",
        ),
    ]);
}

#[test]
fn a_file_without_frequencies_has_the_defaults_of_the_document() {
    let config = said("service: { pid: 4711 }\ncore_policy: { blocks: {} }\n").unwrap();
    assert_eq!(config.policy, None);
    let shares = config.shares.unwrap();
    assert_eq!(shares.service, Some(Service::Pid(4711)));
    assert_eq!(
        shares.division,
        Division::Blocks(cores::blocks::Params::default())
    );
    assert_eq!(shares.jobs, []);
    let batch = Batch {
        cgroup: "weir".into(),
        logs: "/var/log/weir".into(),
        on_stop: OnStop::Keep,
        grace: Duration::from_secs(10),
    };
    assert_eq!(shares.batch, batch);
    let slack = "service: { pid: 4711 }\ncore_policy: { latency_slack: {} }\n";
    let default = cores::latency_slack::Params::default();
    assert_eq!(
        super::shares::shares(slack).division,
        Division::LatencySlack(default)
    );
}

#[test]
fn everything_that_is_written_arrives() {
    let text = "service: { pid_file: /run/m.pid }\ncore_policy: { blocks: { reserved: '0,2', small: 1, large: 3-4, large_above: 1.5, small_below: 2.5, calm: 3s, start: small, patience: 1s } }\njobs:\n  - name: a\n    queue: long\n    threads: 3\n    command: [./true, --threads, \"{threads}\", 7]\n    directory: /bin\n    environment: { OMP_NUM_THREADS: \"{threads}\", N: 7 }\n    user: 0\n    takes: 20m\n  - { name: b.1_c-d, cgroup: user.slice/b }\nbatch: { cgroup: lab/batch, logs: /tmp/logs, on_stop: end, grace: 0s }\n";
    let shares = shares(text);
    assert_eq!(shares.service, Some(Service::PidFile("/run/m.pid".into())));
    let wanted = cores::blocks::Params {
        calm: Duration::from_secs(3),
        reserved: [0, 2].into(),
        small: [1].into(),
        large: [3, 4].into(),
        large_above: 1.5,
        small_below: 2.5,
        start: Size::Small,
        patience: Duration::from_secs(1),
    };
    assert_eq!(shares.division, Division::Blocks(wanted));
    let [a, b] = &shares.jobs[..] else {
        panic!("{shares:?}");
    };
    let command = Command {
        line: ["./true", "--threads", "{threads}", "7"]
            .map(str::to_owned)
            .to_vec(),
        directory: Some("/bin".into()),
        environment: [("N", "7"), ("OMP_NUM_THREADS", "{threads}")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        user: Some((0, 0)),
    };
    assert_eq!(a.source, Source::Command(command));
    assert_eq!((a.job.queue, a.job.threads), (Queue::Long, 3));
    assert_eq!(a.takes, Some(Duration::from_secs(1200)));
    assert_eq!(b.source, Source::Cgroup("user.slice/b".into()));
    assert_eq!(
        (b.job.queue, b.job.threads, b.takes),
        (Queue::Medium, 1, None)
    );
    assert_eq!(shares.batch.on_stop, OnStop::End);
    assert_eq!(
        shares.jobs_alone(&Cores::from([0, 1, 2, 3, 4])),
        [3, 4].into()
    );
}

#[test]
fn on_two_cores_jobs_have_what_the_service_leaves() {
    let machine = Cores::from([0, 1]);
    for policy in ["blocks: { large: none }", "latency_slack: { batch: '' }"] {
        let text = format!("service: {{ pid: 4711 }}\ncore_policy: {{ {policy} }}\n");
        let shares = shares(&text);
        shares.policy(&machine).unwrap();
        assert_eq!(shares.jobs_alone(&machine), [1].into(), "{policy}");
    }
}

#[test]
fn a_plan_of_one_node_is_about_the_machine() {
    let text = plan(
        "    service: 0\n    steps:\n    - { job: a, cores: 1-3 }\n    - { job: b, cores: 2, after: [a] }",
    );
    let shares = shares(&text);
    let machine = Cores::from([0, 1, 2, 3]);
    shares.policy(&machine).unwrap();
    assert_eq!(shares.jobs_alone(&machine), [1, 2, 3].into());
    let error = shares.policy(&Cores::from([0, 1])).unwrap_err().to_string();
    let reason =
        ":7: core_policy.static_plan.steps[0].cores: the machine has cores 0-1, and no 2-3";
    assert!(error.ends_with(reason), "{error}");
}

#[test]
fn of_a_plan_of_several_nodes_only_this_ones_jobs_have_to_be_there() {
    let text = "jobs: [{ name: a, command: [/bin/true] }, { name: b, command: [/no/such], user: nobody-here, directory: /no }]\ncore_policy:\n  static_plan:\n    node: x\n    nodes: [{ name: x, cores: 0-3 }, { name: y, cores: 0-7, service: 0 }]\n    steps: [{ job: a, node: x, cores: 1 }, { job: b, node: y, cores: 1 }]\n";
    let shares = shares(text);
    assert_eq!(shares.service, None);
    let names: Vec<&str> = shares.jobs.iter().map(|spec| &spec.job.name[..]).collect();
    assert_eq!(names, ["a"]);
    let Division::StaticPlan(plan) = &shares.division else {
        panic!("{shares:?}");
    };
    let [step] = &plan.plan.steps[..] else {
        panic!("{plan:?}");
    };
    let wanted = static_plan::Step {
        job: "a".into(),
        node: "x".into(),
        cores: [1].into(),
        after: vec![],
    };
    assert_eq!(*step, wanted);
    let machine = Cores::from([0, 1, 2, 3, 4]);
    shares.policy(&machine).unwrap();
    assert_eq!(shares.jobs_alone(&machine), [0, 1, 2, 3].into());
    let error = shares.policy(&Cores::from([0, 1])).unwrap_err().to_string();
    let reason =
        ":5: core_policy.static_plan.nodes[0].cores: the machine has cores 0-1, and no 2-3";
    assert!(error.ends_with(reason), "{error}");
    let there = text.replace("node: x\n", "node: y\n");
    let error = said(&there).unwrap_err();
    assert!(error.starts_with("g.yaml:1: jobs[1]."), "{error}");
}

/// A plan of three nodes, as x has it: `b` of y waits for `a` of x, and `c` of x for both.
fn three_nodes(url: &str, more: &str) -> String {
    let job = |name| format!("{{ name: {name}, command: [/bin/true] }}");
    let jobs = [job("a"), job("b"), job("c")].join(", ");
    let x = "{ name: x, cores: 0-1, url: 'http://127.0.0.1:9414' }";
    let steps = "{ job: a, node: x, cores: 1 }, { job: b, node: y, cores: 1, after: [a] }, { job: c, node: x, cores: 1, after: [a, b] }";
    format!(
        "jobs: [{jobs}]\ncore_policy:\n  static_plan:\n    node: x\n    nodes: [{x},\n      {{ name: y, cores: 0-1{url} }}]\n    steps: [{steps}]{more}\n"
    )
}

#[test]
fn of_other_nodes_those_are_asked_whose_jobs_are_waited_for() {
    let text = three_nodes(", url: 'http://127.0.0.1:9415/'", "");
    let peers = |text: &str| {
        let shares = shares(text);
        shares.policy(&Cores::from([0, 1])).unwrap();
        shares.division.peers().0.to_vec()
    };
    let peer = |node: &str, port, job: &str| Peer {
        node: node.into(),
        url: format!("http://127.0.0.1:{port}"),
        jobs: vec![job.into()],
    };
    assert_eq!(peers(&text), [peer("y", 9415, "b")]);
    let there = text.replace("node: x\n", "node: y\n");
    assert_eq!(peers(&there), [peer("x", 9414, "a")]);
}

#[test]
fn whom_nobody_can_ask_is_refused_where_it_is_written() {
    let nowhere = three_nodes("", "");
    let reason = "core_policy.static_plan.steps[2].after: b: runs on node \"y\", which has no url";
    let there = nowhere.replace("node: x\n", "node: y\n");
    for text in [nowhere, there] {
        let error = said(&text).err().unwrap_or_default();
        assert!(
            error.starts_with("g.yaml:7: ") && error.contains(reason),
            "{error}"
        );
    }
    let of = |url: &str, more: &str| three_nodes(&format!(", url: {url:?}"), more);
    refused([
        (
            of("http://10.0.0.2:9414", ""),
            "g.yaml:6: core_policy.static_plan.nodes[1].url: not loopback: https:// is required",
        ),
        (
            of("y:9414", ""),
            "g.yaml:6: core_policy.static_plan.nodes[1].url: \"y:9414\" is not https://name:port",
        ),
        (
            of("https://y:9414", ""),
            "g.yaml:4: core_policy.static_plan.authority: required with https://",
        ),
        (
            of("http://127.0.0.1:1", "\n    authority: ca.pem"),
            "g.yaml:8: core_policy.static_plan.authority: only an https:// url reads it",
        ),
        (
            of("https://y:9414", "\n    authority: no.pem"),
            "g.yaml:8: core_policy.static_plan.authority: cannot read no.pem",
        ),
        (
            of("http://127.0.0.1:1", "").replace("after: [a, b]", "after: [a, d]"),
            "g.yaml:7: core_policy.static_plan.steps[2].after: d: there is no such step",
        ),
    ]);
    let open = of("http://10.0.0.2:9414", "\n    plaintext: true");
    assert_eq!(
        shares(&open).division.peers().0[0].url,
        "http://10.0.0.2:9414"
    );
}

#[test]
fn more_cores_than_the_machine_has_are_refused_with_what_it_has() {
    let shares = shares(&blocks("large: 2-5"));
    shares.policy(&(0..6).collect()).unwrap();
    let error = shares.policy(&(0..4).collect()).unwrap_err().to_string();
    let reason = ":4: core_policy.blocks.large: the machine has cores 0-3, and no 4-5";
    assert!(error.ends_with(reason), "{error}");
}

#[test]
fn users_are_those_of_the_machine_and_numbers_stand_for_themselves() {
    let user = |user: &str| {
        let text = job(&format!("name: b, command: [/bin/true], user: {user}"));
        match &shares(&text).jobs[1].source {
            Source::Command(command) => command.user,
            source => panic!("{source:?}"),
        }
    };
    assert_eq!(user("root"), Some((0, 0)));
    let batch = |line: &str| {
        let text = format!(
            "{}{line}\n",
            job("name: b, command: [/bin/true], user: 7654321")
        );
        let jobs = shares(&text).jobs;
        [&jobs[0], &jobs[1]].map(|spec| match &spec.source {
            Source::Command(command) => command.user,
            source => panic!("{source:?}"),
        })
    };
    let second = Some((7_654_321, 7_654_321));
    assert_eq!(
        batch("batch: { user: 4123456 }"),
        [Some((4_123_456, 4_123_456)), second]
    );
    // Nobody is root by silence.
    let silent = batch("batch: { grace: 1s }")[0];
    match rustix::process::geteuid().is_root() {
        true => assert!(
            silent.is_some_and(|(user, group)| user > 0 && group > 0),
            "{silent:?}"
        ),
        false => assert_eq!(silent, None),
    }
    assert_eq!(batch("")[0], silent);
    let wrong = format!(
        "{}batch:\n  user: no-such-user\n",
        job("name: b, command: [/bin/true]")
    );
    let error = said(&wrong).unwrap_err();
    assert!(
        error.contains("batch.user: /etc/passwd has no \"no-such-user\""),
        "{error}"
    );
    assert_eq!(user("4123456"), Some((4_123_456, 4_123_456)));
}

#[test]
fn the_state_directory_is_known_also_when_a_program_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.yaml");
    let text = job("name: b, command: [/bin/no-such-program]");
    std::fs::write(&path, format!("{text}state_directory: /run/lab\n")).unwrap();
    assert!(load(&path).is_err());
    assert_eq!(state_directory(&path).unwrap(), Path::new("/run/lab"));
    std::fs::write(&path, format!("{text}state_directory: lab\n")).unwrap();
    let error = state_directory(&path).unwrap_err().to_string();
    assert!(
        error.ends_with("state_directory: \"lab\" is not an absolute path"),
        "{error}"
    );
}

#[test]
fn latency_slack_without_a_latency_is_allowed_and_told() {
    let warnings = |more: &str| {
        let text = format!(
            "service: {{ pid: 7 }}\ncore_policy: {{ latency_slack: {{}} }}\njobs: [{{ name: a, cgroup: a }}]\n{more}\n"
        );
        said(&text).unwrap().warnings()
    };
    let [warning] = &warnings("")[..] else {
        panic!("{:?}", warnings(""));
    };
    assert!(warning.contains("goes by CPU use alone"), "{warning}");
    for policy in ["parties", "hipster_co"] {
        let text = format!(
            "service: {{ pid: 7 }}\ncore_policy: {{ {policy}: {{}} }}\njobs: [{{ name: a, cgroup: a }}]\n"
        );
        let [warning] = &said(&text).unwrap().warnings()[..] else {
            panic!("no warning");
        };
        assert!(
            warning.contains(&format!("{policy} goes by latency alone"))
                && warning.contains("the service keeps all"),
            "{warning}"
        );
    }
    assert_eq!(warnings("functions: [{ id: 1 }]"), [""; 0]);
    let query = "tail: { source: promql, url: 'http://127.0.0.1:9090', query: x }";
    assert_eq!(warnings(query), [""; 0]);
    for policy in ["powersave", "schedutil"] {
        let text = format!("policy: {{ {policy}: {{}} }}\n");
        assert_eq!(said(&text).unwrap().warnings(), [""; 0]);
    }
    let [warning] = &said(&blocks("{}")).unwrap().warnings()[..] else {
        panic!("no warning");
    };
    assert!(warning.contains("no jobs"), "{warning}");
}

#[test]
fn a_policy_that_nobody_tells_of_calls_is_allowed_and_told() {
    let warnings = |more: &str| {
        let text = format!("policy: {{ three_state: {{}} }}\n{more}\n");
        said(&text).unwrap().warnings()
    };
    let [warning] = &warnings("")[..] else {
        panic!("{:?}", warnings(""));
    };
    assert!(
        warning.contains("policy.three_state keeps every core slow"),
        "{warning}"
    );
    assert_eq!(warnings("functions: [{ id: 1 }]"), [""; 0]);
}
