// SPDX-License-Identifier: Apache-2.0
//! Credits by which a host's proxy limits the requests of each VM of its callers (overload policy `breakwater`).
//!
//! ```text
//!  caller's proxy: exchange.rs ── demand: 7;id ──> inbound.rs ──> application
//!     ^                                               │  └─ 429 where all wait too long ─┐
//!     └── feedback.rs <── credits: 5 ─────────────────┴──────────────────────────────────┘
//! ```

use crate::headers::Headers;

/// How many requests a VM wants to have at the host; further on, which VM it is.
pub(crate) const DEMAND: &str = "x-weir-demand";
/// On answers: how many it may have there.
pub(crate) const CREDITS: &str = "x-weir-credits";
const ID: &str = ";id=";

/// A VM of a caller's proxy, and how many requests it wants to have at the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) vm: u64,
    pub(crate) requests: u32,
}

impl Demand {
    /// In the header's form.
    pub(crate) fn written(self) -> String {
        format!("{}{ID}{:016x}", self.requests, self.vm)
    }

    /// By a header's value; none where it is malformed.
    pub(crate) fn read(value: &[u8]) -> Option<Self> {
        let (requests, vm) = std::str::from_utf8(value).ok()?.split_once(ID)?;
        Some(Self {
            vm: u64::from_str_radix(vm, 16).ok()?,
            requests: requests.parse().ok()?,
        })
    }
}

/// The credits on an answer; none where it has none, or such that nobody can read.
pub(crate) fn given(headers: &Headers) -> Option<u32> {
    std::str::from_utf8(headers.get(CREDITS)?)
        .ok()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::headers::serialize;

    proptest! {
        #[test]
        fn what_is_written_is_read(vm: u64, requests: u32) {
            let demand = Demand { vm, requests };
            prop_assert_eq!(Demand::read(demand.written().as_bytes()), Some(demand));
        }

        #[test]
        fn any_value_is_read_without_a_panic(value in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = (Demand::read(&value), given(&Headers::new(serialize(&[(CREDITS, value)]))));
        }
    }

    #[test]
    fn what_is_malformed_is_neither_demand_nor_credits() {
        for bad in [
            "",
            "7",
            "7;id=",
            ";id=1",
            "-1;id=1",
            "4294967296;id=1",
            "7;id=x",
            "1e3;id=1",
        ] {
            assert_eq!(Demand::read(bad.as_bytes()), None, "{bad}");
        }
        for bad in ["", "x", "-1", "1.5", "4294967296", "5 "] {
            assert_eq!(
                given(&Headers::new(serialize(&[(CREDITS, bad)]))),
                None,
                "{bad}"
            );
        }
    }
}
