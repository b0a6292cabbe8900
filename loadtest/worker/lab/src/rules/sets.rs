// SPDX-License-Identifier: Apache-2.0
//! The rules that are measured, each written three times.

/// The same rules for the engine, for jq and for Python.
#[derive(Debug)]
pub(super) struct RuleSet {
    pub(super) name: &'static str,
    /// A request to the engine.
    pub(super) request: &'static str,
    /// Makes one item of one item, or nothing.
    pub(super) jq: &'static str,
    /// Reads the file it is given and writes items to its output.
    pub(super) python: &'static str,
}

pub(super) const ALL: [RuleSet; 2] = [
    RuleSet {
        name: "Listing 1",
        request: include_str!("light.json"),
        jq: include_str!("light.jq"),
        python: concat!(include_str!("number.py"), include_str!("light.py")),
    },
    HEAVY,
];

/// Fourteen rules with regular expressions, a list, a table and arithmetic.
pub(super) const HEAVY: RuleSet = RuleSet {
    name: "14 rules",
    request: include_str!("heavy.json"),
    jq: include_str!("heavy.jq"),
    python: concat!(include_str!("number.py"), include_str!("heavy.py")),
};
