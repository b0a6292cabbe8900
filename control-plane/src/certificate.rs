// SPDX-License-Identifier: Apache-2.0
//! What a certificate says: whose it is, and from when until when. Whether that is to be believed, rustls decides.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// When a certificate is good, in seconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Not before.
    pub from: i64,
    /// Not after.
    pub until: i64,
}

/// Of the certificate in a PEM file that ends first; none where there is none that can be read.
pub fn validity(pem: &[u8]) -> Option<Validity> {
    let all = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
    let validities = all.filter_map(|der| {
        let (_, certificate) = X509Certificate::from_der(&der).ok()?;
        let validity = certificate.validity();
        Some(Validity {
            from: validity.not_before.timestamp(),
            until: validity.not_after.timestamp(),
        })
    });
    validities.min_by_key(|validity| validity.until)
}

/// The first URI among the subject's alternative names, as SPIFFE has it (X.509-SVID, section 2), else the first DNS
/// name; none where there is neither. The same order as Envoy's for the name of a peer.
pub fn identity(der: &CertificateDer<'_>) -> Option<Arc<str>> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let names = certificate.subject_alternative_name().ok()??.value;
    let uri = names.general_names.iter().find_map(|name| match name {
        GeneralName::URI(uri) => Some(*uri),
        _ => None,
    });
    let dns = || {
        names.general_names.iter().find_map(|name| match name {
            GeneralName::DNSName(dns) => Some(*dns),
            _ => None,
        })
    };
    uri.or_else(dns).map(Arc::from)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, SanType};

    use super::*;

    fn signed(names: Vec<SanType>, until: i32) -> rcgen::Certificate {
        let mut params = CertificateParams::default();
        params.subject_alt_names = names;
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap()
    }

    #[test]
    fn a_uri_is_whose_a_certificate_is_and_else_a_dns_name() {
        let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
        let uri = |name: &str| SanType::URI(name.try_into().unwrap());
        let ip = SanType::IpAddress([127, 0, 0, 1].into());
        for (names, whose) in [
            (
                vec![dns("a.example"), uri("spiffe://mesh/a"), uri("urn:b")],
                Some("spiffe://mesh/a"),
            ),
            (
                vec![ip.clone(), dns("a.example"), dns("b")],
                Some("a.example"),
            ),
            (vec![ip], None),
            (vec![], None),
        ] {
            let found = identity(signed(names.clone(), 2030).der());
            assert_eq!(found.as_deref(), whose, "{names:?}");
        }
        assert_eq!(
            identity(&CertificateDer::from(b"nonsense".as_slice())),
            None
        );
    }

    #[test]
    fn of_several_certificates_the_one_counts_that_ends_first() {
        let [late, early] = [2040, 2030].map(|until| signed(vec![], until).pem());
        let both = format!("{late}{early}");
        assert_eq!(validity(both.as_bytes()).unwrap().until, 1_893_456_000);
        assert_eq!(validity(late.as_bytes()).unwrap().until, 2_208_988_800);
        assert_eq!(validity(b"nonsense"), None);
    }
}
