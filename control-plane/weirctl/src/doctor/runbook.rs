// SPDX-License-Identifier: Apache-2.0
//! Sections of the runbooks: those of alerts that fire by what the doctor finds.

use std::fmt;

use serde::{Serialize, Serializer};

/// Pages, and of each the alerts that a finding names.
macro_rules! runbooks {
    ($($page:ident: $($alert:ident)*;)*) => {
        /// The section of an alert.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Runbook {
            $($($alert,)*)*
        }

        impl Runbook {
            /// Every one that a finding may name.
            pub const ALL: &[Self] = &[$($(Self::$alert,)*)*];

            /// Name of the page and of the alert.
            fn names(self) -> [&'static str; 2] {
                match self {
                    $($(Self::$alert => [stringify!($page), stringify!($alert)],)*)*
                }
            }
        }
    };
}

runbooks! {
    control:
        WeirControlDown WeirConfigurationRefused WeirTableMissing WeirHealthIgnored WeirHostsDown WeirNoHostUp WeirPanic
        WeirPolicyWithdrawn WeirHostsKept WeirHostsStale WeirMostHostsStale WeirPollsFail WeirReportsImplausible WeirCacheContentsDropped;
    sidecars:
        WeirTablesRefused WeirSidecarReportsRefused WeirSidecarAlone WeirCacheContentsLeftOut WeirSidecarStale
        WeirChoicesIgnored WeirSidecarsOfOneId WeirChoosesBlindly;
    governors:
        WeirGovernorSilent;
}

/// Its path in the repository, with the anchor of the section.
impl fmt::Display for Runbook {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [page, alert] = self.names();
        let anchor = alert.to_ascii_lowercase();
        write!(to, "deploy/prometheus/runbooks/{page}.md#{anchor}")
    }
}

impl Serialize for Runbook {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_section_that_a_finding_may_name_exists() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for runbook in Runbook::ALL {
            let named = runbook.to_string();
            let (path, anchor) = named.split_once('#').unwrap();
            let page = std::fs::read_to_string(repository.join(path)).unwrap();
            let heads = page.lines().filter_map(|line| line.strip_prefix("## "));
            let is_there = heads
                .map(str::to_ascii_lowercase)
                .any(|head| head == anchor);
            assert!(is_there, "{named}");
        }
    }
}
