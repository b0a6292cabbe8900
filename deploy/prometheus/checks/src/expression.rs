// SPDX-License-Identifier: Apache-2.0
//! Which metrics an expression asks for.

use std::collections::BTreeSet;

/// Names of Weir's metrics and of recorded series in PromQL, and `up`. Texts in quotes are skipped.
#[must_use]
pub fn metrics(expression: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let outside = expression.split('"').step_by(2);
    for part in outside {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
        let words = part.split(|c| !is_part(c));
        let ours = |word: &&str| word.starts_with("weir") || *word == "up";
        names.extend(words.filter(ours).map(str::to_owned));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_labels_and_texts_are_not() {
        let expression = r#"sum by (cluster) (rate(weir_a_total{b="weir_c"}[1m])) / weir:d:e > up"#;
        let names: Vec<String> = metrics(expression).into_iter().collect();
        assert_eq!(names, ["up", "weir:d:e", "weir_a_total"]);
    }
}
