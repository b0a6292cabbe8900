// SPDX-License-Identifier: Apache-2.0
//! Callers that weir-control lets in when it has certificates.

mod certificates;
#[allow(dead_code)] // Other tests use more of it.
mod inside;
mod reports;
#[allow(dead_code)] // Other tests use more of it.
mod waits;

use std::net::SocketAddr;

use certificates::{Authority, Pair};
use reports::end_of_nameless;
use tokio_util::sync::DropGuard;
use tonic::Code;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use weir_tables::v1::reports_client::ReportsClient;

/// weir-control with certificates of this authority.
async fn control(authority: &Authority, pair: &Pair) -> (SocketAddr, tempfile::TempDir, DropGuard) {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("ca.pem", &authority.certificate);
    write("control.pem", &pair.certificate);
    write("control.key", &pair.key);
    write(
        "c.yaml",
        "xds: { listen: \"127.0.0.1:0\", tls: { certificate: control.pem, key: control.key, client_ca: ca.pem } }\n\
         admin: { listen: \"127.0.0.1:0\" }\nclusters: { rules: { hosts: [ { address: 127.0.0.1:9 } ] } }\n",
    );
    let path = folder.path().join("c.yaml");
    let control = inside::start(path).await;
    (control.xds, folder, control.ends)
}

/// Whether a report gets through: the server's answer to an empty proxy name is its own.
async fn report(control: SocketAddr, tls: ClientTlsConfig) -> Result<Code, String> {
    let endpoint = Endpoint::from_shared(format!("https://{control}")).unwrap();
    let channel: Channel = endpoint
        .tls_config(tls.domain_name("weir-control"))
        .unwrap()
        .connect()
        .await
        .map_err(|error| format!("{error:?}"))?;
    let status = end_of_nameless(&mut ReportsClient::new(channel)).await;
    match status.code() {
        Code::InvalidArgument => Ok(status.code()),
        _ => Err(format!("{status:?}")),
    }
}

fn trusting(authority: &Authority) -> ClientTlsConfig {
    ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&authority.certificate))
}

fn showing(tls: ClientTlsConfig, pair: &Pair) -> ClientTlsConfig {
    tls.identity(Identity::from_pem(&pair.certificate, &pair.key))
}

#[tokio::test]
async fn only_a_certificate_of_the_authority_is_let_in() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (control, _folder, _guard) = control(&authority, &authority.sign("weir-control")).await;
    let ours = showing(trusting(&authority), &authority.sign("sidecar-1"));
    assert_eq!(report(control, ours).await, Ok(Code::InvalidArgument));

    let refused = [
        ("no certificate", trusting(&authority)),
        (
            "one of another authority",
            showing(trusting(&authority), &other.sign("sidecar-1")),
        ),
    ];
    for (what, tls) in refused {
        // An alert, or a connection that is gone before it is read.
        report(control, tls).await.expect_err(what);
    }
}

#[tokio::test]
async fn a_sidecar_refuses_a_server_that_is_not_weir_control() {
    let (authority, other) = (Authority::new(), Authority::new());
    for pair in [authority.sign("someone-else"), other.sign("weir-control")] {
        let (control, _folder, _guard) = control(&authority, &pair).await;
        let ours = showing(trusting(&authority), &authority.sign("sidecar-1"));
        let error = report(control, ours).await.unwrap_err();
        assert!(error.contains("InvalidCertificate"), "{error}");
    }
}
