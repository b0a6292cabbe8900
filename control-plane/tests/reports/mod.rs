// SPDX-License-Identifier: Apache-2.0
//! Streams of reports that are refused.

use tonic::Status;
use tonic::transport::Channel;
use weir_tables::v1::{Report, reports_client::ReportsClient};

use crate::waits::end;

/// The end of a stream with a report that names no proxy, which the service itself refuses.
pub(crate) async fn end_of_nameless(client: &mut ReportsClient<Channel>) -> Status {
    match client.stream(tokio_stream::iter([Report::default()])).await {
        Err(status) => status,
        Ok(answer) => end(&mut answer.into_inner()).await,
    }
}
