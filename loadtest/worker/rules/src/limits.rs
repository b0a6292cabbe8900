// SPDX-License-Identifier: Apache-2.0
//! What one request may cost.

/// Bounds on one request: its size is checked by [`crate::Request::parse`] and
/// [`crate::Request::compile`], its results by [`crate::Rules::apply`] and [`crate::Output::write`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Levels of `children` in a condition, the condition itself counted.
    pub condition_depth: usize,
    /// Operators, shared and own together.
    pub operators: usize,
    /// Entries of conditions, children included, of all operators.
    pub conditions: usize,
    /// Actions and else-actions of all operators.
    pub actions: usize,
    /// Entries of one list: of `in_list`, `combine`, `omit`, `search.fields`.
    pub list_length: usize,
    /// Entries of one `lookup` table.
    pub table_entries: usize,
    /// Entries of `sort`.
    pub sort_keys: usize,
    /// Bytes of one text: of a value in the request, and of a value that an action makes.
    pub value_bytes: usize,
    /// Columns of a feed, those that rules add included, and entries of `fields`.
    pub columns: usize,
    /// Regular expressions of a request. Each may hold [`Limits::regex_compiled_bytes`] a few times over.
    pub regexes: usize,
    /// Bytes of a regular expression as written.
    pub regex_pattern_bytes: usize,
    /// Bytes of a regular expression once compiled, and of its search cache.
    pub regex_compiled_bytes: usize,
    /// Bytes of a feed that rules make.
    pub feed_bytes: u64,
    /// Bytes of an answer.
    pub output_bytes: u64,
}

impl Default for Limits {
    /// Far above what feeds of shops need, and low enough that one request cannot take a host down.
    fn default() -> Self {
        Self {
            condition_depth: 32,
            operators: 1000,
            conditions: 10_000,
            actions: 10_000,
            list_length: 100_000,
            table_entries: 100_000,
            sort_keys: 32,
            value_bytes: 64 << 10,
            columns: 10_000,
            regexes: 200,
            regex_pattern_bytes: 4096,
            regex_compiled_bytes: 1 << 20,
            feed_bytes: 4 << 30,
            output_bytes: 1 << 30,
        }
    }
}
