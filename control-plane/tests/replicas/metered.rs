// SPDX-License-Identifier: Apache-2.0
//! A wire that can be cut, and a host that is asked for its metrics.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes bytes on, as long as it is not cut. What is on the way then waits.
pub(crate) struct Wire {
    pub(crate) address: SocketAddr,
    whole: watch::Sender<bool>,
}

impl Wire {
    pub(crate) async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (whole, passes) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let passes = passes.clone();
                tokio::spawn(async move {
                    let mut waits = passes.clone();
                    let Ok(_) = waits.wait_for(|whole| *whole).await.map(drop) else {
                        return;
                    };
                    let Ok(far) = TcpStream::connect(target).await else {
                        return;
                    };
                    let (near_in, near_out) = near.into_split();
                    let (far_in, far_out) = far.into_split();
                    tokio::select! {
                        () = pass(near_in, far_out, passes.clone()) => {}
                        () = pass(far_in, near_out, passes) => {}
                    }
                });
            }
        });
        Self { address, whole }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Nobody is told, as by a network that swallows everything.
    pub(crate) fn cut(&self) {
        self.whole.send_replace(false);
    }

    pub(crate) fn mend(&self) {
        self.whole.send_replace(true);
    }
}

async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut passes: watch::Receiver<bool>,
) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let Ok(read @ 1..) = from.read(&mut buffer).await else {
            return;
        };
        if passes.wait_for(|whole| *whole).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// A host whose metrics say that it runs one job.
pub(crate) async fn host() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(connection.read_u8().await?);
                }
                let page = "weir_host_in_progress 1\nweir_host_queued 0\n";
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
                    page.len()
                );
                connection.write_all(answer.as_bytes()).await
            });
        }
    });
    address
}
