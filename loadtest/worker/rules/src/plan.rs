// SPDX-License-Identifier: Apache-2.0
//! What was checked: a request in the form that is evaluated. After this nothing re-checks.

use std::sync::Arc;

pub(crate) mod action;
pub(crate) mod condition;
pub(crate) mod digest;

pub(crate) use action::{Action, Arithmetic, Case, Change, Lookup, Operation, Part, Replace};
pub(crate) use condition::{
    Condition, DateRelation, Filter, List, Pattern, Relation, Side, Test, TextRelation,
};

use crate::request::{As, Format, Order};

/// The compiled request, split where joblets are.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The rules that requests of other channels may share.
    pub shared: Rules,
    /// The rules of this channel.
    pub own: Rules,
    /// How the result is presented.
    pub output: Output,
    /// Whether results may be kept for later requests.
    pub cache: bool,
}

/// Operators in their order. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Fields that the rules as written may add to items. Each becomes a column even where the
    /// optimiser drops what writes it, so that a CSV header does not depend on the optimiser.
    pub(crate) created: Arc<[Arc<str>]>,
    pub(crate) operators: Arc<[Operator]>,
    id: [u8; 16],
}

impl Rules {
    pub(crate) fn new(created: Arc<[Arc<str>]>, operators: Vec<Operator>) -> Self {
        let id = digest::rules(&created, &operators);
        Self {
            created,
            operators: operators.into(),
            id,
        }
    }

    /// A digest of what these rules do. Names of operators do not count, everything else that can
    /// change a result does.
    #[must_use]
    pub fn id(&self) -> [u8; 16] {
        self.id
    }

    /// Whether the rules leave every feed as it is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.created.is_empty() && self.operators.is_empty()
    }
}

/// Actions for the items a condition holds for, and for the others.
#[derive(Debug, Clone)]
pub(crate) struct Operator {
    /// Its place and name, for errors.
    pub(crate) label: Arc<str>,
    pub(crate) condition: Condition,
    pub(crate) actions: Vec<Action>,
    pub(crate) else_actions: Vec<Action>,
}

/// A value that the request states, or the text of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operand {
    Text(Arc<str>),
    Field(Arc<str>),
}

impl Operand {
    pub(crate) fn field(&self) -> Option<&Arc<str>> {
        match self {
            Operand::Text(_) => None,
            Operand::Field(name) => Some(name),
        }
    }
}

/// How a result is presented: searched, sorted, selected, formatted.
#[derive(Debug, Clone)]
pub struct Output {
    pub(crate) search: Option<Sought>,
    pub(crate) sort: Vec<Key>,
    /// Only these fields, in this order.
    pub(crate) fields: Option<Vec<Arc<str>>>,
    /// Sorted.
    pub(crate) omit: Vec<Arc<str>>,
    pub(crate) format: Format,
}

/// What is searched for.
#[derive(Debug, Clone)]
pub(crate) struct Sought {
    /// In lower case.
    pub(crate) text: Arc<str>,
    /// All fields where absent.
    pub(crate) fields: Option<Vec<Arc<str>>>,
}

/// What items are sorted by.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) field: Arc<str>,
    pub(crate) order: Order,
    pub(crate) read_as: As,
}
