// SPDX-License-Identifier: Apache-2.0
//! The certificate authorities of an image, for `https://` without `ca`: Mozilla's, as `Cargo.lock` pins them.
//!
//! An image has no system whose authorities could be asked. Another bundle is mounted over the file.

use std::fmt::Write;

use base64::prelude::{BASE64_STANDARD, Engine as _};

/// Where Debian, and so the most of programs, look for them.
pub(crate) const FILE: &str = "etc/ssl/certs/ca-certificates.crt";

/// In PEM, RFC 7468.
pub(crate) fn pem() -> String {
    let mut pem = String::new();
    for authority in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        pem.push_str("-----BEGIN CERTIFICATE-----\n");
        let text = BASE64_STANDARD.encode(authority);
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(64));
            let _ = writeln!(pem, "{line}");
            rest = after;
        }
        pem.push_str("-----END CERTIFICATE-----\n");
    }
    pem
}
