// SPDX-License-Identifier: Apache-2.0
//! How the result is to be shown.

use serde::Deserialize;

use super::object::objects;

objects!(SortKey, Search);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct SortKey {
    pub(crate) field: String,
    #[serde(default)]
    pub(crate) order: Order,
    #[serde(default, rename = "as")]
    pub(crate) read_as: As,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    #[default]
    Ascending,
    Descending,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum As {
    #[default]
    Text,
    Number,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct Search {
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) fields: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    #[default]
    Ndjson,
    Json,
    Csv,
}
