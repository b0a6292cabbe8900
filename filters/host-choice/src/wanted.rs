// SPDX-License-Identifier: Apache-2.0
//! Which of a request's headers may say something to the filter. Most do not, and to compare each with all names that do
//! takes longer than to choose a host.

/// Names with this prefix are the filter's own.
pub(crate) const OWN_PREFIX: &[u8] = b"x-weir-";

/// How long it may take, as Envoy reads it of its callers. It removes what it has read, so that the end of a request does
/// not tell who chose.
pub(crate) const TIME_OUTS: [&[u8]; 3] = [
    b"x-envoy-upstream-rq-timeout-ms",
    b"x-envoy-upstream-rq-per-try-timeout-ms",
    b"grpc-timeout",
];

/// Configured names, [`TIME_OUTS`] and all that begin with [`OWN_PREFIX`]; as a Bloom filter of one word.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted(u64);

impl Wanted {
    pub(crate) fn of<'a>(configured: impl IntoIterator<Item = &'a str>) -> Self {
        let names = configured.into_iter().map(str::as_bytes).chain(TIME_OUTS);
        Self(names.fold(0, |bits, name| bits | bit(name)))
    }

    /// Of a name that is in the set always, of few others.
    #[inline]
    pub(crate) fn may_have(&self, name: &[u8]) -> bool {
        self.0 & bit(name) != 0 || matches!(name, [b'x', b'-', b'w', ..])
    }
}

/// By its length, and its first and last byte.
#[inline]
fn bit(name: &[u8]) -> u64 {
    let [first, .., last] = name else {
        return 1;
    };
    let mixed = name.len() + 7 * usize::from(*first) + 3 * usize::from(*last);
    1 << (mixed & 63)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_name_of_the_set_may_be_there_and_each_of_the_filters_own(
            names in prop::collection::vec("[a-z-]{0,40}", 0..8),
            rest in "[a-z-]{0,40}",
        ) {
            let wanted = Wanted::of(names.iter().map(String::as_str));
            for name in names.iter().map(String::as_bytes).chain(TIME_OUTS) {
                prop_assert!(wanted.may_have(name));
            }
            prop_assert!(wanted.may_have(&[OWN_PREFIX, rest.as_bytes()].concat()));
        }
    }

    #[test]
    fn most_headers_are_passed_over() {
        let config = crate::config::Config::parse(br#"{"clusters":{"rules":{}}}"#).unwrap();
        let wanted = &config.cluster(b"rules").unwrap().wanted;
        let usual = [
            "user-agent",
            "content-type",
            "content-length",
            "accept",
            "accept-encoding",
            "cookie",
            "authorization",
            "traceparent",
            "x-forwarded-for",
            "x-forwarded-proto",
            "x-request-id",
            "x-envoy-attempt-count",
        ];
        let seen = usual.iter().filter(|name| wanted.may_have(name.as_bytes()));
        assert!(seen.clone().count() <= 2, "{:?}", seen.collect::<Vec<_>>());
    }
}
