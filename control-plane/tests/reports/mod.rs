// SPDX-License-Identifier: Apache-2.0
//! How streams of reports end.

use tonic::transport::Channel;
use tonic::{Status, Streaming};
use weir_tables::v1::{Report, ReportAnswer, reports_client::ReportsClient};

/// The end of a stream, after all its answers.
pub(crate) async fn end(answers: &mut Streaming<ReportAnswer>) -> Status {
    loop {
        if let Err(status) = answers.message().await {
            return status;
        }
    }
}

/// The end of a stream with a report that names no proxy, which the service itself refuses.
#[allow(dead_code)] // Only some tests want no more than an answer.
pub(crate) async fn end_of_nameless(client: &mut ReportsClient<Channel>) -> Status {
    match client.stream(tokio_stream::iter([Report::default()])).await {
        Err(status) => status,
        Ok(answer) => end(&mut answer.into_inner()).await,
    }
}
