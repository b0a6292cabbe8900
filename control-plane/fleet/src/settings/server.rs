// SPDX-License-Identifier: Apache-2.0
//! Servers that are asked by HTTP.

use std::fmt;

/// Somebody who is asked by HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// Its address: `http://` or `https://`, and no slash at the end.
    pub url: String,
    /// Contents of a PEM file: only these authorities are trusted. Absent: the system's are.
    pub ca: Option<Vec<u8>>,
    /// What is shown to it: certificate and key, PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl Server {
    /// Whether it is asked by TLS.
    pub fn is_secure(&self) -> bool {
        self.url.starts_with("https://")
    }

    /// Whether what is sent to it stays on this machine.
    pub fn is_loopback(&self) -> bool {
        let Ok(url) = self.url.parse::<http::Uri>() else {
            return false;
        };
        let host = url.host().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let ip = bare.parse::<std::net::IpAddr>();
        ip.map_or(host.eq_ignore_ascii_case("localhost"), |ip| {
            ip.is_loopback()
        })
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("url", &self.url)
            .field("ca", &self.ca.is_some())
            .field("identity", &self.identity.is_some())
            .finish()
    }
}

/// How hosts are asked by HTTPS. Contents of PEM files.
#[derive(Clone, PartialEq, Eq)]
pub struct HostTls {
    /// Only these authorities are trusted. Absent: the system's are.
    pub ca: Option<Vec<u8>>,
    /// What is shown to hosts: certificate and key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The name that hosts' certificates have. Absent: each has the address that it is asked at.
    pub server_name: Option<String>,
}

impl fmt::Debug for HostTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTls")
            .field("ca", &self.ca.is_some())
            .field("identity", &self.identity.is_some())
            .field("server_name", &self.server_name)
            .finish()
    }
}
