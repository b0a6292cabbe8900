// SPDX-License-Identifier: Apache-2.0
//! Connections that want nothing, on both ports. What `/metrics` and its neighbours withstand is tried in
//! `weir-pages`.

use std::net::SocketAddr;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::Code;
use weir_control::config::Tls;
use weir_control::server::{Connection, Limits, incoming};
use weir_control::tls::acceptor;
use weir_tables::v1::reports_client::ReportsClient;

use crate::certificates::Authority;
use crate::program::{FREE, Program};
use crate::reports::end_of_nameless;

/// Longer than a test: what ends sooner was ended for another reason.
const HOURS: Duration = Duration::from_secs(7200);
const SHORT: Duration = Duration::from_millis(50);

type Connections = ReceiverStream<std::io::Result<Connection>>;

async fn door(limits: Limits, tls: bool) -> (SocketAddr, Connections, DropGuard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = tls.then(|| {
        let pair = Authority::new().sign("weir-control");
        let tls = Tls {
            certificate: pair.certificate.into_bytes(),
            key: pair.key.into_bytes(),
            client_ca: None,
        };
        watch::channel(acceptor(&tls).unwrap()).1
    });
    let shutdown = CancellationToken::new();
    let connections = incoming(listener, tls, limits, shutdown.clone());
    (address, connections, shutdown.drop_guard())
}

fn limits(handshake: Duration, silence: Duration) -> Limits {
    Limits {
        places: 2,
        handshake,
        silence,
    }
}

/// Returns when the other side has closed it.
async fn closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_given_up() {
    let (address, mut connections, _guard) = door(limits(HOURS, SHORT), false).await;
    let _silent = TcpStream::connect(address).await.unwrap();
    let mut taken = connections.next().await.unwrap().unwrap();
    let error = taken.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
}

#[tokio::test]
async fn a_handshake_that_does_not_come_to_an_end_is_given_up() {
    let (address, _connections, _guard) = door(limits(SHORT, HOURS), true).await;
    let mut slow = TcpStream::connect(address).await.unwrap();
    // The beginning of a TLS record of a handshake.
    slow.write_all(&[22, 3, 1]).await.unwrap();
    closed(slow).await;
}

#[tokio::test]
async fn who_finds_all_places_taken_gets_the_next_that_is_free() {
    let (address, mut connections, _guard) = door(limits(HOURS, HOURS), false).await;
    let mut callers = Vec::new();
    for _ in 0..3 {
        callers.push(TcpStream::connect(address).await.unwrap());
    }
    let first = connections.next().await.unwrap().unwrap();
    let _second = connections.next().await.unwrap().unwrap();
    let third = async { connections.next().await.unwrap().unwrap() };
    tokio::pin!(third);
    // Nothing else comes by which to know that it does not: on a slow machine this sees less, and never fails.
    tokio::select! {
        biased;
        _ = &mut third => panic!("a third of two places"),
        () = tokio::time::sleep(SHORT) => {}
    }
    drop(first);
    third.await;
}

#[tokio::test]
async fn thousands_of_idle_connections_on_both_ports_keep_nobody_out() {
    // Of the callers: a user's processes begin with 1,024.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    let control = Program::start(
        &format!("{FREE}clusters: {{ rules: {{ hosts: [ {{ address: 127.0.0.1:9 }} ] }} }}\n"),
        &[],
    );
    let mut idle = Vec::new();
    for _ in 0..2000 {
        for address in [control.xds, control.admin] {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
    }
    for _ in 0..3 {
        assert_eq!(control.page("/ready"), "ready\n");
        let mut client = ReportsClient::connect(format!("http://{}", control.xds))
            .await
            .unwrap();
        let status = end_of_nameless(&mut client).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    }
    let megabytes = control.most_memory() >> 20;
    assert!(megabytes < 200, "{megabytes} MB for idle connections");
}
