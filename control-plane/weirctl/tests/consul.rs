// SPDX-License-Identifier: Apache-2.0
//! `weirctl consul` before the real Consul.

#[allow(dead_code)] // Other tests use more of it.
#[path = "../../tests/consul/agent.rs"]
mod agent;

use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};

use agent::{Agent, program};

const OPTIONS: [&str; 4] = ["--service", "rules", "--caller", "web"];
const MODULE: [&str; 2] = ["--module", "/etc/weir/weir_filter.wasm"];

const MANAGEMENT: &str = "aaaaaaaa-0000-0000-0000-000000000001";
/// Of the house, by the names of its README.
const RULES: &str = include_str!("../../../deploy/consul/token.hcl");
/// Within half a minute.
const ATTEMPTS: u32 = 600;
const PAUSE: Duration = Duration::from_millis(50);

/// A mesh in which nobody reaches anybody without an intention.
fn settings() -> Value {
    json!({"connect": {"enabled": true}, "default_intention_policy": "deny"})
}

/// Of one run of the program.
struct Said {
    code: Option<i32>,
    /// Standard output, in the form for programs.
    json: Value,
    text: String,
    errors: String,
}

struct Mesh {
    agent: Agent,
    token: String,
    /// How many tokens there have been.
    numbered: u32,
}

impl Mesh {
    async fn start() -> Option<Self> {
        let agent = Agent::start(&program()?, settings()).await;
        let token = String::new();
        Some(Self {
            agent,
            token,
            numbered: 0,
        })
    }

    fn run(&self, form: &str, command: &str, more: &[&str]) -> Output {
        let mut run = Command::new(env!("CARGO_BIN_EXE_weirctl"));
        run.args(["-o", form, "consul", command]).args(OPTIONS);
        if command != "remove" {
            run.args(MODULE);
        }
        run.args(more)
            .env("CONSUL_HTTP_ADDR", self.agent.url())
            .env("CONSUL_HTTP_TOKEN", &self.token);
        run.output().unwrap()
    }

    /// The same command in both forms says both; one that changes something is run once.
    fn weirctl(&self, command: &str, more: &[&str]) -> Said {
        let output = self.run("json", command, more);
        let text = match command {
            "check" => self.run("table", command, more).stdout,
            _ => Vec::new(),
        };
        Said {
            code: output.status.code(),
            json: serde_json::from_slice(&output.stdout).unwrap_or_default(),
            text: String::from_utf8(text).unwrap(),
            errors: String::from_utf8(output.stderr).unwrap(),
        }
    }

    async fn write(&self, entry: Value) {
        self.agent.put("/v1/config", entry, &self.token).await;
    }

    async fn get(&self, path: &str) -> Option<Value> {
        let text = self.agent.ask("GET", path, None, &self.token).await?;
        serde_json::from_str(&text).ok()
    }

    async fn entry(&self, kind: &str, name: &str) -> Option<Value> {
        self.get(&format!("/v1/config/{kind}/{name}")).await
    }

    /// All entries without what each change makes another.
    async fn entries(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for kind in ["service-defaults", "service-intentions", "service-resolver"] {
            let list = self.get(&format!("/v1/config/{kind}")).await.unwrap();
            all.extend(list.as_array().unwrap().clone());
        }
        for entry in &mut all {
            let fields = entry.as_object_mut().unwrap();
            fields.retain(|name, _| !["Hash", "CreateIndex", "ModifyIndex"].contains(&&**name));
        }
        all
    }

    /// Registers an instance as weirctl prints it, with checks that pass in place of its own: nobody listens.
    async fn register(&self, kind: &str, name: &str, more: &[&str]) {
        let mut run = Command::new(env!("CARGO_BIN_EXE_weirctl"));
        run.args(["consul", "service", kind, "--id", name, "--name", name]);
        run.args(["--address", "127.0.0.1", "--sidecar-port", "21000"])
            .args(more);
        let printed = run.output().unwrap().stdout;
        let mut service: Value = serde_json::from_slice(&printed).unwrap();
        let passing = json!({"Name": "life", "TTL": "1h", "Status": "passing"});
        let fields = service.as_object_mut().unwrap();
        if fields.contains_key("Check") {
            fields.insert("Check".to_owned(), passing.clone());
        }
        let checks = &mut service["Connect"]["SidecarService"]["Checks"];
        assert!(checks[0]["TCP"].is_string(), "{checks}");
        checks[0] = passing;
        checks[0]["CheckID"] = format!("{name}-life").into();
        let path = "/v1/agent/service/register";
        self.agent.put(path, service, &self.token).await;
    }

    async fn register_all(&self) {
        let host = ["--port", "9001", "--millicores", "4000"];
        self.register("host", "rules", &host).await;
        self.register("control", "weir-control", &[]).await;
        let upstreams = ["--upstream", "rules=9100,weir-control=9101"];
        self.register("caller", "web", &upstreams).await;
        let registered =
            |said: &Said| said.broken("instances").is_empty() && said.broken("callers").is_empty();
        self.checked("every instance", registered).await;
    }

    /// What check says when it says that: the agent tells its servers of instances by and by.
    async fn checked(&self, what: &str, holds: impl Fn(&Said) -> bool) -> Said {
        for _ in 0..ATTEMPTS {
            let said = self.weirctl("check", &[]);
            if holds(&said) {
                return said;
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!("{what}: {}", self.weirctl("check", &[]).text);
    }

    /// What `apply` says when it refuses to write for this reason.
    async fn until_refused(&self, reason: &str) -> String {
        let mut said = String::new();
        for _ in 0..ATTEMPTS {
            let applied = self.weirctl("apply", &["--dry-run"]);
            said = applied.errors;
            if applied.code == Some(1) && said.contains(reason) {
                let applied = self.weirctl("apply", &[]);
                assert_eq!(applied.code, Some(1), "{said}");
                return said;
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!("{reason}: {said}");
    }

    /// One with the token of such rules in place of its own.
    async fn with(self, rules: &str) -> Self {
        let name = format!("rules-{}", self.numbered);
        let policy = json!({"Name": name, "Rules": rules});
        self.agent.put("/v1/acl/policy", policy, MANAGEMENT).await;
        let token = json!({"Policies": [{"Name": name}]});
        let token = self.agent.put("/v1/acl/token", token, MANAGEMENT).await;
        let token: Value = serde_json::from_str(&token).unwrap();
        let token = token["SecretID"].as_str().unwrap().to_owned();
        let numbered = self.numbered + 1;
        let agent = self.agent;
        Self {
            agent,
            token,
            numbered,
        }
    }
}

impl Said {
    /// Kind, name and outcome of each entry; a refused one has none.
    fn outcomes(&self) -> Vec<String> {
        let rows = self.json["entries"]
            .as_array()
            .unwrap_or_else(|| panic!("{}", self.errors));
        let outcome = |row: &Value| row["outcome"].as_str().unwrap_or("refused").to_owned();
        rows.iter().map(outcome).collect()
    }

    /// What is said of an entry.
    fn of(&self, kind: &str, name: &str) -> String {
        let rows = self.json["entries"].as_array().unwrap();
        let row = rows
            .iter()
            .find(|row| row["kind"] == kind && row["name"] == name);
        row.unwrap()["said"].to_string()
    }

    /// Findings of a link that do not hold.
    fn broken(&self, link: &str) -> Vec<String> {
        let findings = self
            .json
            .as_array()
            .unwrap_or_else(|| panic!("{}", self.errors));
        let of_link = findings
            .iter()
            .filter(|one| one["link"] == link && one["verdict"] == "broken");
        of_link
            .map(|one| format!("{}: {} -> {}", one["at"], one["said"], one["mend"]))
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_written_once_checked_and_taken_out_without_a_rest() {
    let Some(mesh) = Mesh::start().await else {
        return;
    };
    let dry = mesh.weirctl("apply", &["--dry-run"]);
    assert_eq!(
        (dry.code, dry.outcomes()),
        (Some(0), vec!["created".to_owned(); 5])
    );
    assert!(mesh.entries().await.is_empty(), "a dry run");
    let first = mesh.weirctl("apply", &[]);
    assert_eq!(
        (first.code, first.outcomes()),
        (Some(0), vec!["created".to_owned(); 5])
    );
    let written = mesh.entries().await;
    let again = mesh.weirctl("apply", &[]);
    assert_eq!(
        (again.code, again.outcomes()),
        (Some(0), vec!["same".to_owned(); 5])
    );
    assert_eq!(mesh.entries().await, written);
    let alone = mesh.weirctl("check", &[]);
    assert_eq!(alone.code, Some(1));
    assert_eq!(
        (
            alone.broken("instances").len(),
            alone.broken("callers").len()
        ),
        (2, 1)
    );
    mesh.register_all().await;
    let checked = mesh.weirctl("check", &[]);
    assert_eq!(checked.code, Some(0), "{}", checked.text);
    assert!(
        checked.text.contains("all of Consul's part holds"),
        "{}",
        checked.text
    );
    // Another wish is written over the one before, and check says what differs.
    let trusting = ["--trust", "any"];
    let said = mesh.weirctl("check", &trusting).broken("entry");
    assert!(
        said.len() == 1 && said[0].contains("trust nothing → \\\"any\\\""),
        "{said:?}"
    );
    assert_eq!(mesh.weirctl("apply", &trusting).outcomes()[4], "changed");
    let removed = mesh.weirctl("remove", &[]);
    assert_eq!(
        (removed.code, removed.outcomes()),
        (Some(0), vec!["removed".to_owned(); 5]),
        "{}",
        removed.errors
    );
    assert!(mesh.entries().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_caller_needs_stays_when_one_goes() {
    let Some(mesh) = Mesh::start().await else {
        return;
    };
    let other = ["--caller", "mobile"];
    assert_eq!(mesh.weirctl("apply", &other).outcomes(), ["created"; 6]);
    let one = mesh.weirctl("remove", &[]);
    let expected = ["removed", "changed", "changed", "same", "same"];
    assert_eq!(one.outcomes(), expected, "{}", one.errors);
    assert!(
        one.of("service-defaults", "rules")
            .contains("other callers need it")
    );
    let rest = mesh.weirctl("remove", &other);
    assert_eq!(rest.code, Some(0), "{}", rest.errors);
    assert!(mesh.entries().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_others_choose_keeps_its_protocol() {
    let Some(mesh) = Mesh::start().await else {
        return;
    };
    let run = |command: &str, more: &[&str]| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_weirctl"));
        run.args(["consul", command, "--service", "web", "--caller", "mobile"]);
        let run = run.args(["--address", &mesh.agent.url()]).args(more);
        assert!(run.output().unwrap().status.success(), "{command}");
    };
    assert_eq!(mesh.weirctl("apply", &[]).code, Some(0));
    run("apply", &MODULE);
    let removed = mesh.weirctl("remove", &[]);
    assert_eq!(removed.code, Some(0), "{}", removed.errors);
    let web = mesh.entry("service-defaults", "web").await.unwrap();
    assert_eq!(web["Protocol"], "http");
    run("remove", &[]);
    assert!(mesh.entries().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_who_apply_at_once_one_has_its_way_and_every_entry_stands() {
    let Some(mesh) = Mesh::start().await else {
        return;
    };
    let said: Vec<_> = std::thread::scope(|scope| {
        let mesh = &mesh;
        let apply = |trust| scope.spawn(move || mesh.weirctl("apply", &["--trust", trust]));
        let running = ["any", "mtls", "none"].map(apply);
        running.map(|one| one.join().unwrap()).into()
    });
    let (won, lost): (Vec<_>, Vec<_>) = said.iter().partition(|one| one.code == Some(0));
    assert!(!won.is_empty());
    for one in lost {
        assert!(
            one.errors.contains("changed it meanwhile"),
            "{}",
            one.errors
        );
    }
    assert_eq!(mesh.entries().await.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_have_written_stays_to_the_last_field() {
    let Some(mesh) = Mesh::start().await else {
        return;
    };
    let theirs = json!({
        "Kind": "service-defaults", "Name": "web", "Protocol": "http", "Meta": {"team": "a"},
        "MaxInboundConnections": 7, "LocalRequestTimeoutMs": 900, "BalanceInboundConnections": "exact_balance",
        "EnvoyExtensions": [{"Name": "builtin/lua", "Required": true, "Arguments": {
            "ProxyType": "connect-proxy", "Listener": "inbound", "Script": "function envoy_on_request(request) end"}}],
        "UpstreamConfig": {
            "Defaults": {"ConnectTimeoutMs": 50, "PassiveHealthCheck": {"Interval": "1s", "MaxFailures": 3,
                "BaseEjectionTime": "5s"}},
            "Overrides": [{"Name": "other", "Limits": {"MaxConnections": 3}}, {"Name": "rules", "ConnectTimeoutMs": 60}],
        },
    });
    mesh.write(theirs).await;
    mesh.write(json!({"Kind": "service-intentions", "Name": "rules",
        "Sources": [{"Name": "other", "Action": "deny", "Description": "why"}]}))
        .await;
    let before = mesh.entries().await;
    assert_eq!(mesh.weirctl("apply", &[]).code, Some(0));
    let web = mesh.entry("service-defaults", "web").await.unwrap();
    let extensions = web["EnvoyExtensions"].as_array().unwrap();
    let names: Vec<_> = extensions.iter().map(|one| &one["Name"]).collect();
    assert_eq!(names, ["builtin/lua", "builtin/wasm", "builtin/lua"]);
    let stood = before.iter().find(|entry| entry["Name"] == "web").unwrap();
    assert_eq!(
        web["UpstreamConfig"]["Defaults"],
        stood["UpstreamConfig"]["Defaults"]
    );
    assert_eq!(
        web["UpstreamConfig"]["Overrides"].as_array().unwrap().len(),
        3
    );
    assert_eq!(mesh.weirctl("apply", &[]).outcomes(), ["same"; 5]);
    let removed = mesh.weirctl("remove", &[]);
    assert_eq!(removed.code, Some(0), "{}", removed.errors);
    assert_eq!(mesh.entries().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_one_entry_is_refused_none_is_written() {
    let Some(mesh) = Mesh::start().await else {
        return;
    };
    let cluster = json!({"name": "own"}).to_string();
    let own = json!({"Kind": "service-defaults", "Name": "web", "Protocol": "http",
        "UpstreamConfig": {"Overrides": [{"Name": "rules", "EnvoyClusterJSON": cluster}]}});
    mesh.write(own).await;
    let denies = json!({"Kind": "service-intentions", "Name": "weir-control", "Sources": [{"Name": "web", "Action": "deny"}]});
    mesh.write(denies).await;
    let before = mesh.entries().await;
    let refused = mesh.weirctl("apply", &[]);
    assert_eq!(refused.code, Some(1));
    assert_eq!(
        refused.outcomes(),
        ["created", "created", "created", "refused", "refused"]
    );
    assert!(
        refused
            .of("service-defaults", "web")
            .contains("override of rules")
    );
    assert!(
        refused
            .of("service-intentions", "weir-control")
            .contains("deny")
    );
    assert_eq!(mesh.entries().await, before);
    // Somebody gives the cluster up; the intention is nobody's to turn round.
    let adopted = mesh.weirctl("apply", &["--adopt"]);
    let expected = ["created", "created", "created", "refused", "changed"];
    assert_eq!(adopted.outcomes(), expected);
    assert_eq!(mesh.entries().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_consul_itself_refuses_is_told_and_what_was_written_is_put_back() {
    let Some(mesh) = Mesh::start().await else {
        return;
    };
    assert_eq!(mesh.weirctl("apply", &[]).code, Some(0));
    // What routes requests needs the protocol that is to go last.
    let splitter =
        json!({"Kind": "service-splitter", "Name": "rules", "Splits": [{"Weight": 100}]});
    mesh.write(splitter).await;
    let before = mesh.entries().await;
    let removed = mesh.weirctl("remove", &[]);
    assert_eq!(removed.code, Some(1));
    for words in [
        "nothing has changed in Consul",
        "service-defaults rules",
        "protocol",
    ] {
        assert!(removed.errors.contains(words), "{}", removed.errors);
    }
    assert_eq!(mesh.entries().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_switches_the_override_off_is_said_loudly_by_apply_and_check() {
    let Some(mesh) = Mesh::start().await else {
        return;
    };
    mesh.register_all().await;
    assert_eq!(mesh.weirctl("apply", &[]).code, Some(0));
    let route = json!({"Match": {"HTTP": {"PathPrefix": "/a"}}, "Destination": {"NumRetries": 2}});
    let beside = [
        json!({"Kind": "service-router", "Name": "rules", "Routes": [route]}),
        json!({"Kind": "service-splitter", "Name": "rules", "Splits": [{"Weight": 100}]}),
        json!({"Kind": "service-resolver", "Name": "rules", "LoadBalancer": {"Policy": "maglev"}}),
        json!({"Kind": "service-resolver", "Name": "rules", "ConnectTimeout": "3s"}),
        json!({"Kind": "service-resolver", "Name": "rules", "Subsets": {"v1": {"Filter": "Service.Meta.v == 1"}}}),
    ];
    for entry in beside {
        mesh.write(entry.clone()).await;
        let kind = entry["Kind"].as_str().unwrap();
        let checked = mesh.weirctl("check", &[]);
        let said = checked.broken("override");
        assert!(
            said.len() == 1 && said[0].contains(kind) && said[0].contains("NOBODY FOLLOWS"),
            "{said:?}"
        );
        assert_eq!(checked.code, Some(1));
        let applied = mesh.weirctl("apply", &[]);
        assert_eq!(
            (applied.code, applied.outcomes()),
            (Some(1), vec!["same".to_owned(); 5])
        );
        assert!(applied.json["findings"].to_string().contains(kind));
        let path = format!("/v1/config/{kind}/rules");
        mesh.agent.ask("DELETE", &path, None, "").await.unwrap();
        assert_eq!(mesh.weirctl("check", &[]).code, Some(0));
    }
    // One that changes nothing is none.
    mesh.write(json!({"Kind": "service-resolver", "Name": "rules"}))
        .await;
    assert_eq!(mesh.weirctl("check", &[]).code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_by_which_requests_would_fail_are_refused_and_nothing_is_written() {
    let Some(mesh) = Mesh::start().await else {
        return;
    };
    mesh.register_all().await;
    let refused = || mesh.until_refused("ITS REQUESTS FAIL");
    // Consul gives the cluster of this data centre to an upstream of another one, too.
    let upstreams = "rules=9100,rules@dc2=9102,weir-control=9101";
    mesh.register("caller", "web", &["--upstream", upstreams])
        .await;
    assert!(refused().await.contains("\"rules\" of dc2"));
    mesh.register_all().await;
    // And it has another name for that of an upstream with a time-out of its own.
    let timeout = json!({"Defaults": {"ConnectTimeoutMs": 3000}});
    mesh.write(json!({"Kind": "service-defaults", "Name": "web", "UpstreamConfig": timeout}))
        .await;
    assert!(refused().await.contains("connect_timeout_ms"));
    let before = mesh.entries().await;
    assert_eq!(before.len(), 1, "{before:#?}");
    mesh.write(json!({"Kind": "service-defaults", "Name": "web"}))
        .await;
    for _ in 0..ATTEMPTS {
        if mesh.weirctl("apply", &[]).code == Some(0) {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
    panic!("{}", mesh.weirctl("apply", &[]).errors);
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_transparent_proxy_it_is_said_that_no_header_is_believed() {
    let Some(mesh) = Mesh::start().await else {
        return;
    };
    mesh.register_all().await;
    assert_eq!(mesh.weirctl("apply", &[]).code, Some(0));
    mesh.register("caller", "web", &["--transparent"]).await;
    let unbelieved = |said: &Said| said.broken("callers").join("").contains("BELIEVES NONE");
    mesh.checked("transparent", unbelieved).await;
    assert_eq!(mesh.weirctl("apply", &["--trust", "any"]).code, Some(0));
    let checked = mesh.weirctl("check", &["--trust", "any"]);
    assert_eq!(checked.code, Some(0), "{}", checked.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn intentions_protocols_and_instances_that_keep_sidecars_away_are_named() {
    let Some(mesh) = Mesh::start().await else {
        return;
    };
    mesh.register_all().await;
    assert_eq!(mesh.weirctl("apply", &[]).code, Some(0));
    // Of more than one, the intention that counts.
    mesh.write(
        json!({"Kind": "service-intentions", "Name": "weir-control", "Sources": [
        {"Name": "web", "Action": "deny"}, {"Name": "*", "Action": "allow"}]}),
    )
    .await;
    let said = mesh.weirctl("check", &[]).broken("intentions");
    assert!(
        said.len() == 1
            && said[0].contains("web to weir-control")
            && said[0].contains("of \\\"web\\\""),
        "{said:?}"
    );
    let permission = json!({"Action": "allow", "HTTP": {"PathPrefix": "/"}});
    mesh.write(json!({"Kind": "service-intentions", "Name": "rules", "Sources": [{"Name": "web", "Permissions": [permission]}]}))
        .await;
    let checked = mesh.weirctl("check", &[]);
    assert!(
        checked
            .text
            .contains("web to rules: what is allowed depends on the request"),
        "{}",
        checked.text
    );
    let mine = json!({"Kind": "proxy-defaults", "Name": "global", "EnvoyExtensions": [
        mesh.entry("service-defaults", "web").await.unwrap()["EnvoyExtensions"][0]]});
    mesh.write(mine).await;
    assert_eq!(mesh.weirctl("check", &[]).broken("extensions").len(), 1);
    mesh.agent
        .put("/v1/agent/check/fail/weir-control-life", json!({}), "")
        .await;
    let ill = |said: &Said| said.broken("instances").concat().contains("is critical");
    mesh.checked("an ill instance", ill).await;
    let one = ["--upstream", "rules=9100"];
    mesh.register("caller", "web", &one).await;
    let lacks = |said: &Said| said.broken("callers").concat().contains("no upstream");
    mesh.checked("an upstream that is missing", lacks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_of_a_service_of_the_mesh_is_taken_by_consul_and_needs_an_upstream() {
    let Some(mesh) = Mesh::start().await else {
        return;
    };
    mesh.register_all().await;
    let checksum = "a".repeat(64);
    let run = |command: &str| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_weirctl"));
        run.args(["consul", command])
            .args(OPTIONS)
            .args(["--address", &mesh.agent.url()]);
        run.args([
            "--module",
            "http://files/weir.wasm",
            "--module-service",
            "files",
        ]);
        let output = run.args(["--module-sha256", &checksum]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run("apply").contains("written"));
    assert!(run("check").contains("has no upstream \"files\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn with_acls_a_token_of_the_documented_rules_will_do_and_less_is_told_by_its_rule() {
    let Some(program) = program() else { return };
    let mut settings = settings();
    settings["acl"] = json!({"enabled": true, "default_policy": "deny",
        "tokens": {"initial_management": MANAGEMENT, "agent": MANAGEMENT}});
    let agent = Agent::start(&program, settings).await;
    let token = MANAGEMENT.to_owned();
    let mesh = Mesh {
        agent,
        token,
        numbered: 0,
    };
    mesh.register_all().await;
    let rules = RULES.replace("\"caller", "\"web");
    let without = |rule: &str| {
        let mut parts = rules.split_inclusive("}\n");
        let part = parts.find(|part| part.contains(rule)).unwrap();
        rules.replace(part, "")
    };
    let before = mesh.entries().await;
    // Whoever may only read.
    let mesh = mesh.with(&rules.replace("\"write\"", "\"read\"")).await;
    assert_eq!(mesh.weirctl("apply", &["--dry-run"]).code, Some(0));
    assert!(mesh.weirctl("check", &[]).errors.is_empty());
    let denied = mesh.weirctl("apply", &[]);
    assert_eq!(denied.code, Some(1));
    assert!(
        denied
            .errors
            .contains("the token needs service \"rules\" { policy = \"write\" }"),
        "{}",
        denied.errors
    );
    // In the middle: what was written before goes again.
    let no_intentions = rules.replace("intentions = \"write\"", "intentions = \"read\"");
    let mesh = mesh.with(&no_intentions).await;
    let denied = mesh.weirctl("apply", &[]);
    assert!(
        denied
            .errors
            .contains("service \"rules\" { intentions = \"write\" }"),
        "{}",
        denied.errors
    );
    assert!(
        denied.errors.contains("nothing has changed in Consul"),
        "{}",
        denied.errors
    );
    let mut mesh = mesh;
    mesh.token = MANAGEMENT.to_owned();
    assert_eq!(mesh.entries().await, before);
    // Exactly these.
    mesh = mesh.with(&rules).await;
    let applied = mesh.weirctl("apply", &[]);
    assert_eq!(applied.code, Some(0), "{}", applied.errors);
    let checked = mesh.weirctl("check", &[]);
    assert_eq!(checked.code, Some(0), "{}", checked.text);
    for (rule, needed) in [
        (
            "service \"rules\"",
            "service \"rules\" { policy = \"read\" }",
        ),
        (
            "service \"rules-sidecar-proxy\"",
            "service \"rules-sidecar-proxy\" { policy = \"read\" }",
        ),
        ("service \"web\"", "service \"web\" { policy = \"read\" }"),
        (
            "service \"weir-control\"",
            "service \"weir-control\" { policy = \"read\" }",
        ),
        ("node_prefix", "node_prefix \"\" { policy = \"read\" }"),
    ] {
        mesh = mesh.with(&without(rule)).await;
        let said = mesh.weirctl("check", &[]);
        assert_eq!(said.code, Some(1), "{rule}");
        assert!(
            said.json.to_string().contains(&needed.replace('"', "\\\"")),
            "{rule}: {}",
            said.text
        );
    }
    // Whose callers cannot be looked at is told by who writes, too.
    mesh = mesh.with(&without("node_prefix")).await;
    let blind = mesh.weirctl("apply", &[]);
    assert_eq!(blind.code, Some(1), "{}", blind.errors);
    let said = blind.json.to_string();
    assert!(said.contains("cannot be read"), "{said} {}", blind.errors);
    mesh = mesh.with(&rules).await;
    let removed = mesh.weirctl("remove", &[]);
    assert_eq!(removed.code, Some(0), "{}", removed.errors);
}
