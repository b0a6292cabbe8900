// SPDX-License-Identifier: Apache-2.0
//! Certificates that live as long as a test.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};

/// An authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, PEM.
    pub(crate) certificate: String,
}

/// A certificate and its key, PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = named("authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            certificate,
        }
    }

    /// A certificate for a DNS name or a URI, as of a server or a client.
    pub(crate) fn sign(&self, name: &str) -> Pair {
        self.sign_with(name, |_| {})
    }

    /// One that is good from the first day of a year to that of another.
    #[allow(dead_code)] // Only some tests are about time.
    pub(crate) fn sign_between(&self, name: &str, from: i32, until: i32) -> Pair {
        self.sign_with(name, |params| {
            params.not_before = rcgen::date_time_ymd(from, 1, 1);
            params.not_after = rcgen::date_time_ymd(until, 1, 1);
        })
    }

    /// Its own certificate and key, as somebody shows who signed for himself.
    #[allow(dead_code)] // Only some tests show it.
    pub(crate) fn itself(&self) -> Pair {
        Pair {
            certificate: self.certificate.clone(),
            key: self.issuer.key().serialize_pem(),
        }
    }

    fn sign_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Pair {
        let mut params = named(name);
        change(&mut params);
        params.subject_alt_names = vec![match name.contains("://") {
            true => SanType::URI(name.try_into().unwrap()),
            false => SanType::DnsName(name.try_into().unwrap()),
        }];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

/// Envoy takes a certificate whose subject is its issuer's for one that signed itself.
fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
