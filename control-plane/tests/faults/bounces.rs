// SPDX-License-Identifier: Apache-2.0
//! Hosts that give requests back: each behind an Envoy of its own, which counts what the host has.

use std::net::SocketAddr;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::client::{Answer, Caller};
use crate::hosts::{Host, POISON};
use crate::sidecar::Sidecar;
use crate::tools;
use crate::world::{Plan, World, sum};

const SETTINGS: &str = "\"cores\": 1, \"bodies\": true";

/// An application with one core, by what its Envoy is told, and that Envoy.
pub(crate) struct Guarded {
    pub(crate) application: Host,
    pub(crate) envoy: Sidecar,
    pub(crate) address: SocketAddr,
}

impl Guarded {
    /// With these settings of its Envoy's filter beside its role.
    pub(crate) async fn start(settings: &str) -> Self {
        let application = Host::start().await;
        let filter = tools::filter();
        let port = port(application.address);
        let replace = [
            ("/etc/weir/weir_filter.wasm", filter.to_str().unwrap()),
            ("port_value: 9902 }", "port_value: 0 }"),
            (
                "address: 0.0.0.0, port_value: 9001 }",
                "address: 127.0.0.1, port_value: 0 }",
            ),
            ("port_value: 8080 }", &port),
            ("\"cores\": 4, \"bodies\": true", settings),
        ];
        let config = tools::envoy_config("static/host.yaml", &replace);
        // Each VM judges by the runs that it has seen itself.
        let envoy = Sidecar::start(&config).await;
        let address = envoy.listener("inbound").await;
        Self {
            application,
            envoy,
            address,
        }
    }

    /// Takes its core by a request that does not come by the caller's Envoy.
    async fn fill(&self) -> JoinHandle<Answer> {
        let caller = Caller::new(self.address);
        let held = tokio::spawn(async move { caller.send("/held", &Vec::new()).await });
        let holds = async |_: &Sidecar| self.application.holds().then_some(());
        self.envoy
            .wait("a request that holds the core", holds)
            .await;
        held
    }

    /// Lets go of what was sent to take its core.
    async fn release(&self, held: JoinHandle<Answer>) {
        self.application.release();
        assert_eq!(held.await.unwrap().status, Some(200));
    }

    async fn bounced(&self) -> f64 {
        metric(&self.envoy, "weir_inbound_bounced_total").await
    }
}

/// Two hosts, and a caller's sidecar that has its configuration from weir-control.
struct Stage {
    world: World,
    first: Guarded,
    second: Guarded,
}

impl Stage {
    /// By all that they say the second has so many more jobs that the first is named first, and no requests wait at
    /// either.
    async fn start() -> Self {
        let (first, second) = tokio::join!(Guarded::start(SETTINGS), Guarded::start(SETTINGS));
        for (host, jobs) in [(&first, 0), (&second, 20)] {
            host.application.says(jobs, 0);
            host.application.answers_with_load(jobs);
        }
        let row = |host: &Guarded| {
            json!({
                "address": host.address,
                "metrics_address": host.application.address,
                "capacity_millicores": 64_000,
            })
        };
        let rules = json!({"policy": {"stale_after": "30s"}, "scrape": {"interval": "50ms"}});
        let plan = Plan::hosts(vec![row(&first), row(&second)]);
        let world = plan
            .with(json!({"clusters": {"rules": rules}}))
            .start()
            .await;
        let stage = Self {
            world,
            first,
            second,
        };
        stage.settle(&stage.world.caller()).await;
        stage
    }

    /// Waits until all requests go to the first host; so it has seen how long one takes.
    async fn settle(&self, caller: &Caller) {
        let settled = async || {
            // So many do not go there by chance.
            for _ in 0..20 {
                let answer = caller.send("/", &Vec::new()).await;
                let expected = (Some(200), Some(self.first.address));
                ((answer.status, answer.host) == expected).then_some(())?;
            }
            Some(())
        };
        self.world.until("jobs in tables", settled).await;
    }

    /// What has happened so far: requests done by either host, bounces that the caller's Envoy knows, those of either
    /// host's.
    async fn counts(&self) -> ([usize; 2], f64, [f64; 2]) {
        let (first, second) = (&self.first, &self.second);
        let served = [first, second].map(|host| host.application.served());
        let known = metric(&self.world.sidecar, "weir_bounces_total").await;
        let bounced = [first.bounced().await, second.bounced().await];
        (served, known, bounced)
    }

    /// What has happened since.
    async fn since(&self, before: ([usize; 2], f64, [f64; 2])) -> ([usize; 2], f64, [f64; 2]) {
        let now = self.counts().await;
        let served = [now.0[0] - before.0[0], now.0[1] - before.0[1]];
        let bounced = [now.2[0] - before.2[0], now.2[1] - before.2[1]];
        (served, now.1 - before.1, bounced)
    }
}

/// As the static files have it.
fn port(address: SocketAddr) -> String {
    format!("port_value: {} }}", address.port())
}

/// What nothing has counted yet is 0.
pub(crate) async fn metric(envoy: &Sidecar, name: &str) -> f64 {
    let page = envoy.wait("metrics", async |envoy: &Sidecar| {
        envoy.page("/stats/prometheus").await
    });
    sum(&page.await, name).unwrap_or(0.0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_hosts_request_goes_to_the_next_and_is_done_once() {
    let stage = Stage::start().await;
    let held = stage.first.fill().await;
    let before = stage.counts().await;
    let answer = stage.world.caller().send("/", &Vec::new()).await;
    assert_eq!(
        (answer.status, answer.host),
        (Some(200), Some(stage.second.address))
    );
    assert_eq!(stage.since(before).await, ([0, 1], 1.0, [1.0, 0.0]));
    stage.first.release(held).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_request_by_a_changed_configuration_is_given_back_like_any_other() {
    let mut stage = Stage::start().await;
    let held = stage.first.fill().await;
    let attempts = async |envoy: &Sidecar| {
        let page = envoy
            .page("/stats?filter=weir-attempt.config_reload")
            .await?;
        page.trim().rsplit_once(": ")?.1.parse::<u64>().ok()
    };
    let known = stage.world.sidecar.wait("attempts", attempts).await;
    // Attempts are told whose they may be.
    let listener = |name: &str, cluster: &str| json!({"name": name, "address": "127.0.0.1:0", "cluster": cluster});
    stage.world.configure(json!({
        "clusters": {"others": {"hosts_file": "hosts.yaml"}},
        "standalone": {"listeners": [listener("egress", "rules"), listener("second", "others")]},
    }));
    let is_changed = async |envoy: &Sidecar| (attempts(envoy).await? > known).then_some(());
    let sidecar = &stage.world.sidecar;
    sidecar.wait("what attempts are told", is_changed).await;
    let before = stage.counts().await;
    let answer = stage.world.caller().send("/", &Vec::new()).await;
    assert_eq!(answer.status, Some(200));
    assert_eq!(stage.since(before).await, ([0, 1], 1.0, [1.0, 0.0]));
    stage.first.release(held).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_all_hosts_are_full_the_last_one_named_takes_the_request() {
    let stage = Stage::start().await;
    // Also the second knows how long a request takes.
    let direct = Caller::new(stage.second.address);
    assert_eq!(direct.send("/", &Vec::new()).await.status, Some(200));
    let held = [stage.first.fill().await, stage.second.fill().await];
    let before = stage.counts().await;
    let answer = stage.world.caller().send("/", &Vec::new()).await;
    assert_eq!(
        (answer.status, answer.host),
        (Some(200), Some(stage.second.address))
    );
    assert_eq!(stage.since(before).await, ([0, 1], 1.0, [1.0, 0.0]));
    for (host, held) in [&stage.first, &stage.second].into_iter().zip(held) {
        host.release(held).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_does_not_retry_bounces_shows_one_and_the_log_says_what_to_do() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    let stage = Stage::start().await;
    let filter = tools::filter();
    let (xds, first, second) = (
        port(stage.world.xds),
        port(stage.first.address),
        port(stage.second.address),
    );
    let replace = [
        ("id: sidecar-1", "id: sidecar-2"),
        ("/etc/weir/weir_filter.wasm", filter.to_str().unwrap()),
        ("port_value: 9901 }", "port_value: 0 }"),
        ("port_value: 15001 }", "port_value: 0 }"),
        ("port_value: 18000 }", &*xds),
        ("port_value: 9001 }", &first),
        ("port_value: 9002 }", &second),
        (
            "\"control_cluster\"",
            "\"debug\": true, \"control_cluster\"",
        ),
        (",retriable-headers", ""),
    ];
    let config = tools::envoy_config("static/envoy.yaml", &replace);
    // What follows a bounce that nobody retries is of the VM that sees it.
    let sidecar = Sidecar::start(&config).await;
    let caller = Caller::new(sidecar.listener("egress").await);
    stage.settle(&caller).await;
    let held = stage.first.fill().await;
    let before = stage.counts().await;
    assert_eq!(caller.send("/", &Vec::new()).await.status, Some(429));
    assert_eq!(stage.since(before).await, ([0, 0], 0.0, [1.0, 0.0]));
    let says = async |sidecar: &Sidecar| {
        let log = sidecar.log();
        (log.contains("retriable-headers") && log.contains("x-weir-bounced")).then_some(())
    };
    sidecar.wait("advice in the log", says).await;
    for _ in 0..3 {
        assert_eq!(caller.send("/", &Vec::new()).await.status, Some(200));
    }
    let (served, _, bounced) = stage.since(before).await;
    assert_eq!((served.iter().sum::<usize>(), bounced), (3, [1.0, 0.0]));
    stage.first.release(held).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_goes_on_in_whole_and_one_too_large_to_keep_stays_where_it_is() {
    let stage = Stage::start().await;
    let held = stage.first.fill().await;
    let before = stage.counts().await;
    let caller = stage.world.caller();
    let body = "0123456789abcdef".repeat(512);
    let answer = caller.post(&Vec::new(), body.clone()).await;
    assert_eq!(
        (answer.status, answer.host),
        (Some(200), Some(stage.second.address))
    );
    assert!(answer.body.ends_with(&body), "{}", answer.body);
    assert_eq!(stage.since(before).await, ([0, 1], 1.0, [1.0, 0.0]));

    // Nor does a caller's own word bring it back.
    let large = "x".repeat(300 << 10);
    let own = vec![("x-weir-may-wait", "0".to_owned())];
    let answer = caller.post(&own, large.clone()).await;
    assert_eq!(
        (answer.status, answer.host),
        (Some(200), Some(stage.first.address))
    );
    assert!(answer.body.ends_with(&large));
    assert!(!answer.body.contains("x-weir-may-wait"));
    assert_eq!(stage.since(before).await, ([1, 1], 1.0, [1.0, 0.0]));
    stage.first.release(held).await;
}

/// Envoy retries no request whose end it does not have.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_body_comes_late_is_given_back_when_it_is_there() {
    if !weir_needs::nightly_or_skip() {
        return;
    }
    let stage = Stage::start().await;
    let held = stage.first.fill().await;
    let before = stage.counts().await;
    let mut connection = TcpStream::connect(stage.world.egress).await.unwrap();
    let head = "POST / HTTP/1.1\r\nhost: rules\r\nconnection: close\r\ncontent-length: 8\r\n\r\n";
    connection.write_all(head.as_bytes()).await.unwrap();
    // Beside the one that holds the core.
    let is_there = async |envoy: &Sidecar| {
        let page = envoy.page("/stats/prometheus").await?;
        let active = "envoy_http_downstream_rq_active{envoy_http_conn_manager_prefix=\"inbound\"}";
        (sum(&page, active)? >= 2.0).then_some(())
    };
    stage.first.envoy.wait("the headers", is_there).await;
    connection.write_all(b"the body").await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with("the body"), "{answer}");
    assert_eq!(stage.since(before).await, ([0, 1], 1.0, [1.0, 0.0]));
    stage.first.release(held).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_caller_says_of_its_own_waiting_does_not_reach_a_host() {
    let stage = Stage::start().await;
    let own = vec![("x-weir-may-wait", "31337;id=00000000feedbeef".to_owned())];
    let answer = stage.world.caller().send("/", &own).await;
    assert_eq!(answer.status, Some(200));
    for part in ["31337", "feedbeef"] {
        assert!(!answer.body.contains(part), "{}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_may_not_give_a_request_back_cannot_have_it_tried_again() {
    let stage = Stage::start().await;
    let caller = stage.world.caller();
    let before = stage.counts().await;
    let poison = vec![(POISON, "bounces".to_owned())];
    // The first may, the last may not.
    let answer = caller.send("/", &poison).await;
    assert_eq!(answer.host, Some(stage.second.address));
    assert_eq!(stage.since(before).await, ([1, 1], 1.0, [0.0, 0.0]));
    // Too large to keep.
    stage.settle(&caller).await;
    let before = stage.counts().await;
    let answer = caller.post(&poison, "x".repeat(300 << 10)).await;
    assert_eq!(answer.host, Some(stage.first.address));
    assert_eq!(stage.since(before).await, ([1, 0], 0.0, [0.0, 0.0]));
    // Nobody takes the route for one that does not retry.
    let held = stage.first.fill().await;
    let before = stage.counts().await;
    let answer = caller.send("/", &Vec::new()).await;
    assert_eq!(answer.status, Some(200));
    assert_eq!(stage.since(before).await, ([0, 1], 1.0, [1.0, 0.0]));
    stage.first.release(held).await;
}
