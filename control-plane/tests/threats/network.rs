// SPDX-License-Identifier: Apache-2.0
//! Who reaches which port.

use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};

use weir_needs::Need;

use crate::program::{FREE, Program};

/// An address of this machine that is not loopback; nothing is sent for it.
fn outer() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

#[test]
fn neither_port_is_reached_from_another_address_unless_that_is_written() {
    let Some(outer) = outer() else {
        return weir_needs::skip(Need::Network, "no address but loopback");
    };
    let reached = |port: SocketAddr| TcpStream::connect((outer, port.port())).is_ok();
    let control = Program::start(
        &format!("{FREE}clusters: {{ rules: {{ hosts: [ {{ address: 127.0.0.1:9 }} ] }} }}\n"),
        &[],
    );
    assert!(TcpStream::connect(control.admin).is_ok());
    assert!(!reached(control.admin) && !reached(control.xds));
    // The defaults are loopback too.
    let default = weir_control::config::load(&control.path("c.yaml"));
    let default = default.map_err(|(error, _)| error).unwrap();
    std::fs::write(
        control.path("d.yaml"),
        "clusters: { rules: { hosts: [ { address: 127.0.0.1:9 } ] } }\n",
    )
    .unwrap();
    let plain = weir_control::config::load(&control.path("d.yaml"));
    let plain = plain.map_err(|(error, _)| error).unwrap();
    for config in [&default.config, &plain.config] {
        assert!(config.admin.ip().is_loopback() && config.xds.listen.ip().is_loopback());
    }
    let open = format!(
        "xds: {{ listen: \"127.0.0.1:0\" }}\nadmin: {{ listen: \"{outer}:0\" }}\nclusters: {{ rules: {{ hosts: [ {{ address: 127.0.0.1:9 }} ] }} }}\n"
    );
    std::fs::write(control.path("d.yaml"), &open).unwrap();
    let (refused, _) = weir_control::config::load(&control.path("d.yaml")).unwrap_err();
    assert!(refused.to_string().contains("admin.listen: not loopback"));
    let meant = open.replace(":0\" }\nclusters", ":0\", plaintext: true }\nclusters");
    let meant = Program::start(&meant, &[]);
    assert!(reached(meant.admin));
}
