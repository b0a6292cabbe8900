// SPDX-License-Identifier: Apache-2.0
//! The files of `deploy/consul`, with their placeholders filled.

use anyhow::{Result, ensure};

/// What a user takes, and the mesh as well.
pub(crate) const AGENT: &str = include_str!("../../../deploy/consul/agent.hcl");
pub(crate) const SERVICE_HOST: &str = include_str!("../../../deploy/consul/service-host.json");
pub(crate) const SERVICE_CALLER: &str = include_str!("../../../deploy/consul/service-caller.json");
pub(crate) const SERVICE_CONTROL: &str =
    include_str!("../../../deploy/consul/service-weir-control.json");
pub(crate) const STATIC_CLUSTER: &str = include_str!("../../../deploy/consul/static-cluster.json");
pub(crate) const STATS_TAGS: &str = include_str!("../../../deploy/consul/stats-tags.yaml");

/// The text with `@NAME@` replaced by its value, wherever it is.
///
/// # Errors
/// A placeholder is left.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> Result<String> {
    let replace =
        |text: String, (name, value): &(&str, &str)| text.replace(&format!("@{name}@"), value);
    let text = values.iter().fold(template.to_owned(), replace);
    // `@type` of an Any is none.
    let left = text.split('@').skip(1).step_by(1).find(|part| {
        !part.is_empty()
            && part
                .chars()
                .all(|letter| letter.is_ascii_uppercase() || letter == '_')
    });
    ensure!(
        left.is_none(),
        "nothing is known for the placeholder @{}@",
        left.unwrap_or_default()
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_and_none_is_left() {
        let text = fill("a @X@ b @X@, \"@type\": @Y_Z@", &[("X", "1"), ("Y_Z", "2")]);
        assert_eq!(text.unwrap(), "a 1 b 1, \"@type\": 2");
        let error = fill("a @X@ b @Y@", &[("X", "1")]).unwrap_err();
        assert!(error.to_string().contains("@Y@"), "{error}");
    }
}
