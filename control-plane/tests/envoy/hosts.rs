// SPDX-License-Identifier: Apache-2.0
//! Hosts that say who they are and what reached them.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A host that answers with its address and the request's head, in lower case.
pub(crate) async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(answer(connection, address));
        }
    });
    address
}

async fn answer(mut connection: TcpStream, address: SocketAddr) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(connection.read_u8().await?);
    }
    let body = format!(
        "{address}\n{}",
        String::from_utf8_lossy(&head).to_lowercase()
    );
    let length = body.len();
    let answer =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    connection.write_all(answer.as_bytes()).await
}
