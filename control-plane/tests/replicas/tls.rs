// SPDX-License-Identifier: Apache-2.0
//! Replicas that know each other by certificates.

use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::Request;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};
use weir_tables::v1::Report;
use weir_tables::v1::reports_client::ReportsClient;

use crate::agent::{Agent, program};
use crate::certificates::{Authority, Pair};
use crate::group::Replica;

/// What a replica trusts and shows, in files that live as long as this.
struct Shown {
    folder: TempDir,
}

impl Shown {
    fn new(trusted: &Authority, pair: &Pair) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        write("ca.pem", &trusted.certificate).unwrap();
        write("pair.pem", &pair.certificate).unwrap();
        write("pair.key", &pair.key).unwrap();
        Self { folder }
    }

    fn config(&self) -> Value {
        let file = |name: &str| self.folder.path().join(name);
        let (ca, certificate, key) = (file("ca.pem"), file("pair.pem"), file("pair.key"));
        json!({
            "xds": { "tls": { "certificate": certificate, "key": key, "client_ca": ca } },
            "replicas": { "ca": ca, "certificate": certificate, "private_key": key },
        })
    }
}

/// A sidecar's report to a replica, whose answers are not waited for.
async fn report(replica: &Replica, authority: &Authority) {
    let pair = authority.sign("sidecar-1");
    let tls = ClientTlsConfig::new()
        .domain_name("weir-control")
        .ca_certificate(Certificate::from_pem(&authority.certificate))
        .identity(Identity::from_pem(&pair.certificate, &pair.key));
    let endpoint = Endpoint::from_shared(format!("https://{}", replica.xds)).unwrap();
    let channel = endpoint.tls_config(tls).unwrap().connect().await.unwrap();
    let report = Report {
        proxy: "p".to_owned(),
        ..Default::default()
    };
    let reports = tokio_stream::iter([report]);
    let mut client = ReportsClient::new(channel);
    client.stream(Request::new(reports)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn they_follow_and_pass_reports_on_among_themselves_and_take_nobody_else_for_a_leader() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, json!({})).await;
    let (authority, other) = (Authority::new(), Authority::new());
    let ours = Shown::new(&authority, &authority.sign("weir-control"));
    let start = |name, shown: &Shown| Replica::start(Some(&agent.url()), name, shown.config());
    let a = start("a", &ours);
    a.leads().await;
    let b = start("b", &ours);
    b.follows(&a).await;
    report(&b, &authority).await;
    a.counts("weir_control_reports_total ", 1.0).await;
    assert_eq!(b.metric("weir_control_reports_total ").await, Some(0.0));

    // Whom the leader does not let in, and who does not take the leader for one.
    let strangers = [
        Shown::new(&authority, &other.sign("weir-control")),
        Shown::new(&other, &authority.sign("weir-control")),
    ];
    for (stranger, why) in strangers
        .iter()
        .zip(["received fatal alert", "invalid peer certificate"])
    {
        let stranger = start("stranger", stranger);
        stranger.says(why).await;
        let (status, _) = stranger.page("/ready").await.unwrap();
        assert_eq!(status, 503, "{}", stranger.log());
    }
    b.ready().await;
}
