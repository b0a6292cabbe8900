// SPDX-License-Identifier: Apache-2.0
//! Certificates that are replaced while weir-control runs.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use weir_tables::HOST_TABLE_TYPE;

use crate::certificates::{Authority, Pair};
use crate::program::{Program, until};
use crate::sidecar::{Tables, connect};

const CONFIG: &str = "xds: { listen: \"127.0.0.1:0\", \
    tls: { certificate: control.pem, key: control.key, client_ca: ca.pem } }\n\
    admin: { listen: \"127.0.0.1:0\" }\n\
    clusters: { rules: { policy: { stale_after: 300ms }, hosts: [ { address: \"127.0.0.1:1\" } ] } }\n";

fn control(authority: &Authority, pair: &Pair) -> Program {
    let files = [
        ("ca.pem", &*authority.certificate),
        ("control.pem", &*pair.certificate),
        ("control.key", &*pair.key),
    ];
    Program::start(CONFIG, &files)
}

/// Puts a file in the place of another one, as tools that renew certificates do.
fn replace(control: &Program, name: &str, contents: &str) {
    let new = control.path("new");
    std::fs::write(&new, contents).unwrap();
    std::fs::rename(new, control.path(name)).unwrap();
}

fn certificate(pair: &Pair) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()
}

/// What the listener shows; none where it does not let this client in.
fn shown(
    control: SocketAddr,
    authority: &Authority,
    client: &Pair,
) -> Option<CertificateDer<'static>> {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(authority.certificate.as_bytes()).unwrap();
    roots.add(root).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::from_pem_slice(client.key.as_bytes()).unwrap();
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate(client)], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = "weir-control".try_into().unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(control).unwrap();
    let limit = Some(Duration::from_secs(60));
    socket.set_read_timeout(limit).unwrap();
    let mut stream = StreamOwned::new(connection, socket);
    // Whoever is let in is sent SETTINGS.
    stream.read_exact(&mut [0; 9]).ok()?;
    let chain = stream.conn.peer_certificates().unwrap();
    Some(chain[0].clone().into_owned())
}

/// A metric's value.
fn metric(control: &Program, series: &str) -> Option<f64> {
    let page = control.page("/metrics");
    let line = page.lines().find_map(|line| line.strip_prefix(series))?;
    line.trim().parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_listener_certificate_is_served_to_new_connections_and_open_streams_go_on() {
    let authority = Authority::new();
    let (first, second) = (
        authority.sign_between("weir-control", 2020, 2040),
        authority.sign_between("weir-control", 2021, 2041),
    );
    let control = control(&authority, &first);
    let sidecar = authority.sign("sidecar-1");
    let channel = connect(control.xds, &authority, &sidecar).await.unwrap();
    let open = Tables::open(channel, "sidecar-1", HOST_TABLE_TYPE, &["rules"]);
    let mut open = open.await.unwrap();
    open.next().await.unwrap();
    let seen = || shown(control.xds, &authority, &sidecar);
    assert_eq!(seen(), Some(certificate(&first)));

    replace(&control, "control.key", &second.key);
    replace(&control, "control.pem", &second.certificate);
    until("the new certificate", || {
        (seen() == Some(certificate(&second))).then_some(())
    });
    // More tables than could have been under way.
    for _ in 0..5 {
        open.next().await.unwrap();
    }
    let until_2041 = 2_240_611_200.0;
    let series = "weir_control_certificate_expiry_timestamp_seconds{name=\"xds.tls.certificate\"}";
    until("its end", || {
        (metric(&control, series) == Some(until_2041)).then_some(())
    });
}

#[test]
fn a_broken_replacement_changes_nothing_until_it_is_mended() {
    let authority = Authority::new();
    let (first, second) = (
        authority.sign("weir-control"),
        authority.sign("weir-control"),
    );
    let control = control(&authority, &first);
    let sidecar = authority.sign("sidecar-1");
    let seen = || shown(control.xds, &authority, &sidecar);
    // The certificate of another key.
    replace(&control, "control.pem", &second.certificate);
    let refused = "weir_control_config_loads_total{result=\"refused\"}";
    until("a refusal", || {
        metric(&control, refused).filter(|count| *count > 0.0)
    });
    assert_eq!(seen(), Some(certificate(&first)));
    assert!(
        control.log().contains("xds.tls.certificate"),
        "{}",
        control.log()
    );

    replace(&control, "control.key", &second.key);
    until("the new certificate", || {
        (seen() == Some(certificate(&second))).then_some(())
    });
}

#[test]
fn after_the_client_authority_was_replaced_only_certificates_of_the_new_one_are_let_in() {
    let (authority, next) = (Authority::new(), Authority::new());
    let control = control(&authority, &authority.sign("weir-control"));
    let (old, new) = (authority.sign("sidecar-1"), next.sign("sidecar-1"));
    let is_let_in = |pair: &Pair| shown(control.xds, &authority, pair).is_some();
    assert!(is_let_in(&old) && !is_let_in(&new));
    // Both for a while, then the new one alone.
    let both = format!("{}{}", authority.certificate, next.certificate);
    replace(&control, "ca.pem", &both);
    until("the new authority", || is_let_in(&new).then_some(()));
    assert!(is_let_in(&old));
    replace(&control, "ca.pem", &next.certificate);
    until("the end of the old authority", || {
        (!is_let_in(&old)).then_some(())
    });
    assert!(is_let_in(&new));
}
