// SPDX-License-Identifier: Apache-2.0
//! One GET, with a limit on the body.

use std::net::SocketAddr;

use anyhow::ensure;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// An Envoy with many clusters shows less where the path says which: `?filter=`.
const MOST_BYTES: usize = 4 << 20;

/// So much is told of the first line that comes with a status that is no success: servers say there what is wrong.
const TOLD: usize = 300;

/// The page, if the answer is a good one.
pub(crate) async fn get(address: SocketAddr, path: &str) -> anyhow::Result<String> {
    let stream = TcpStream::connect(address).await?;
    get_over(stream, &address.to_string(), path).await
}

/// The same over a connection that is there. `host` is the other side's name.
pub(crate) async fn get_over(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    host: &str,
    path: &str,
) -> anyhow::Result<String> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = hyper::Request::get(path)
        .header(hyper::header::HOST, host)
        .body(Empty::<Bytes>::new())?;
    let answer = async {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MOST_BYTES).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!(error))?.to_bytes();
        let text = String::from_utf8_lossy(&body);
        let begin: String = text
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(TOLD)
            .collect();
        ensure!(status.is_success(), "status {status}: {begin:?}");
        Ok(text.into_owned())
    };
    tokio::pin!(answer);
    tokio::select! {
        answer = &mut answer => answer,
        ended = connection => {
            ended?;
            answer.await
        }
    }
}
