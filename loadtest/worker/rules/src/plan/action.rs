// SPDX-License-Identifier: Apache-2.0
//! Actions.

use std::collections::HashMap;
use std::sync::Arc;

use super::condition::Side;
use super::{Operand, Pattern};

#[derive(Debug, Clone)]
pub(crate) enum Action {
    RemoveItem,
    Change { field: Arc<str>, change: Change },
}

/// What becomes of the value of a field.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Remove,
    Set(Operand),
    Case(Case),
    Combine(Vec<Operand>),
    Number(Arithmetic),
    Split { separator: Arc<str>, index: usize },
    Replace(Replace),
    Lookup(Lookup),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Capitalize,
    Lowercase,
    Uppercase,
    Titlecase,
    Trim,
}

#[derive(Debug, Clone)]
pub(crate) struct Arithmetic {
    pub(crate) operation: Operation,
    /// Rounding has none.
    pub(crate) value: Option<Side<f64>>,
    pub(crate) decimals: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Round,
}

#[derive(Debug, Clone)]
pub(crate) enum Replace {
    Text {
        search: Arc<str>,
        replacement: Arc<str>,
    },
    Regex {
        search: Pattern,
        replacement: Vec<Part>,
    },
}

/// Part of what a match is replaced by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Group(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct Lookup {
    pub(crate) table: HashMap<String, Arc<str>>,
    pub(crate) default: Option<Arc<str>>,
}

impl Change {
    /// Whether an item may have the field afterwards that did not have it before.
    pub(crate) fn creates(&self) -> bool {
        match self {
            Change::Set(_) | Change::Combine(_) => true,
            Change::Lookup(lookup) => lookup.default.is_some(),
            Change::Remove
            | Change::Case(_)
            | Change::Number(_)
            | Change::Split { .. }
            | Change::Replace(_) => false,
        }
    }

    /// Whether the result depends on the value the field had.
    pub(crate) fn reads_itself(&self) -> bool {
        !matches!(self, Change::Remove | Change::Set(_) | Change::Combine(_))
    }

    /// Calls `visit` with each field that is named as a value.
    pub(crate) fn reads<'a>(&'a self, visit: &mut dyn FnMut(&'a Arc<str>)) {
        match self {
            Change::Set(value) => value.field().into_iter().for_each(visit),
            Change::Combine(values) => values.iter().filter_map(Operand::field).for_each(visit),
            Change::Number(Arithmetic {
                value: Some(Side::Field(name)),
                ..
            }) => visit(name),
            _ => {}
        }
    }
}
