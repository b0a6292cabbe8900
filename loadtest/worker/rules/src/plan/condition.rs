// SPDX-License-Identifier: Apache-2.0
//! Conditions.

use std::collections::HashSet;
use std::sync::Arc;

use regex::Regex;

use super::Operand;
use crate::date::Moment;

#[derive(Debug, Clone)]
pub(crate) enum Condition {
    /// Only the optimiser makes these.
    Constant(bool),
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Test(Test),
}

/// One filter on one field, or its complement.
#[derive(Debug, Clone)]
pub(crate) struct Test {
    pub(crate) field: Arc<str>,
    pub(crate) not: bool,
    pub(crate) filter: Filter,
}

/// None of these but [`Filter::Empty`] holds where a side is absent.
#[derive(Debug, Clone)]
pub(crate) enum Filter {
    Empty,
    Text {
        relation: TextRelation,
        value: Operand,
        ignore_case: bool,
    },
    Number {
        relation: Relation,
        value: Side<f64>,
    },
    Regex(Pattern),
    List(List),
    Date {
        relation: DateRelation,
        value: Side<Moment>,
    },
}

/// The right side of a comparison: `None` where the request's text is not a number or a date.
#[derive(Debug, Clone)]
pub(crate) enum Side<T> {
    Static(Option<T>),
    Field(Arc<str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextRelation {
    Equal,
    Contains,
    StartsWith,
    EndsWith,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DateRelation {
    Before,
    After,
    On,
}

/// A regular expression and what it was made of.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub(crate) regex: Regex,
    pub(crate) source: Arc<str>,
    pub(crate) ignore_case: bool,
}

/// Texts compare as text and numbers as numbers.
#[derive(Debug, Clone)]
pub(crate) struct List {
    /// In lower case if case is ignored.
    pub(crate) texts: HashSet<Box<str>>,
    /// Sorted.
    pub(crate) numbers: Vec<f64>,
    pub(crate) ignore_case: bool,
}

impl Condition {
    /// Calls `visit` with each field that is read.
    pub(crate) fn reads<'a>(&'a self, visit: &mut dyn FnMut(&'a Arc<str>)) {
        match self {
            Condition::Constant(_) => {}
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter().for_each(|part| part.reads(visit));
            }
            Condition::Test(test) => {
                visit(&test.field);
                if let Some(other) = test.filter.field() {
                    visit(other);
                }
            }
        }
    }
}

impl Filter {
    /// The field on the right side.
    fn field(&self) -> Option<&Arc<str>> {
        match self {
            Filter::Text { value, .. } => value.field(),
            Filter::Number {
                value: Side::Field(name),
                ..
            } => Some(name),
            Filter::Date {
                value: Side::Field(name),
                ..
            } => Some(name),
            _ => None,
        }
    }
}
