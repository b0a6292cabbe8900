// SPDX-License-Identifier: Apache-2.0
//! Reports and nodes at a replica that does not lead.

use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Streaming};
use weir_tables::v1::nodes_client::NodesClient;
use weir_tables::v1::reports_client::ReportsClient;
use weir_tables::v1::{NodeReport, Report, ReportAnswer};

use crate::agent::{Agent, program};
use crate::group::{Replica, group};
use crate::waits::{end, within};

type Reporting = (mpsc::Sender<Report>, Streaming<ReportAnswer>);

async fn report(replica: &Replica, proxy: &str, process: &'static str) -> Reporting {
    let endpoint = format!("http://{}", replica.xds);
    let mut client = ReportsClient::connect(endpoint).await.unwrap();
    let (reports, outbound) = mpsc::channel(4);
    let first = Report {
        proxy: proxy.to_owned(),
        ..Default::default()
    };
    reports.send(first).await.unwrap();
    let mut request = Request::new(ReceiverStream::new(outbound));
    let process = MetadataValue::from_static(process);
    request.metadata_mut().insert("x-weir-process", process);
    (reports, client.stream(request).await.unwrap().into_inner())
}

#[tokio::test(flavor = "multi_thread")]
async fn they_reach_the_leader_and_when_that_goes_their_streams_end_and_find_the_next() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, json!({})).await;
    let replicas = group(&agent.url(), &["a", "b"]).await;
    let (a, b) = (&replicas[0], &replicas[1]);
    let (reports, mut answers) = report(b, "p", "1f").await;
    a.counts("weir_control_reports_total ", 1.0).await;
    // The leader's answers come back the same way.
    let answered = async { while answers.message().await.unwrap().unwrap().taken < 1 {} };
    within("an answer", answered).await;
    assert_eq!(b.metric("weir_control_reports_total ").await, Some(0.0));
    // Two processes of a proxy are told apart by what the stream's metadata says.
    let (_other, _answers) = report(b, "p", "2e").await;
    a.counts("weir_control_reports_total ", 2.0).await;
    let again = Report {
        proxy: "p".to_owned(),
        ..Default::default()
    };
    reports.send(again).await.unwrap();
    a.counts("weir_control_reports_total ", 3.0).await;

    let mut nodes = NodesClient::connect(format!("http://{}", b.xds))
        .await
        .unwrap();
    let node = NodeReport {
        cluster: "rules".to_owned(),
        host: "127.0.0.1:1".to_owned(),
        capacity_millicores: 1500,
    };
    let rows = nodes
        .stream(tokio_stream::iter([node.clone()]).chain_pending())
        .await
        .unwrap();
    let mut rows = rows.into_inner();
    assert!(rows.message().await.unwrap().is_some());
    a.counts("weir_control_node_streams ", 1.0).await;

    a.signal("TERM");
    assert_eq!(end(&mut answers).await.code(), Code::Unavailable);
    end(&mut rows).await;
    b.leads().await;
    let (_reports, _answers) = report(b, "p", "1f").await;
    b.counts("weir_control_reports_total ", 1.0).await;
}

/// More streams than one connection takes.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_streams_pass() {
    let Some(program) = program() else { return };
    let agent = Agent::start(&program, json!({})).await;
    let replicas = group(&agent.url(), &["a", "b"]).await;
    let mut open = Vec::new();
    for number in 0..1000 {
        open.push(report(&replicas[1], &format!("p{number}"), "1").await);
    }
    replicas[0]
        .counts("weir_control_reports_total ", 1000.0)
        .await;
    drop(open);
}

trait ChainPending: Sized {
    /// Its items, and then nothing for ever: a stream that stays open.
    fn chain_pending(self) -> impl tokio_stream::Stream<Item = NodeReport> + Send + 'static;
}

impl<S: tokio_stream::Stream<Item = NodeReport> + Send + 'static> ChainPending for S {
    fn chain_pending(self) -> impl tokio_stream::Stream<Item = NodeReport> + Send + 'static {
        tokio_stream::StreamExt::chain(self, tokio_stream::pending())
    }
}
