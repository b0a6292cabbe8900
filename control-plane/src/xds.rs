// SPDX-License-Identifier: Apache-2.0
//! The delta discovery server (placeholder: the shapes that the rest of weir-control builds on).

/// Standalone mode.
pub mod standalone {
    use serde::Deserialize;

    /// As written.
    #[derive(Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Written {}

    /// As checked.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {}

    impl Written {
        /// Checks what was written; `clusters` are the names in the configuration.
        /// The error is the field below `standalone` and the reason.
        pub fn check(&self, _clusters: &[&str]) -> Result<Config, (String, String)> {
            Ok(Config {})
        }
    }
}
